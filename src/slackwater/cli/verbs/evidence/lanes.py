"""The places that keep batches as lanes of the number line: which batches each of them still has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from slackwater.checkpoint.layout import COMMITS, OFFSETS
from slackwater.cli.verbs.evidence.model import Lane
from slackwater.core.facts import CheckpointSeen, Facts
from slackwater.core.state import StateInventory


def lanes_of(facts: Facts | None, recorded: Sequence[int] | None) -> tuple[Lane, ...]:
    """The lanes from the plan of a batch to its rows. ``recorded``: the batches of which the ledger has progress."""
    return (*(_of_files(facts) if facts is not None else ()), *(_of_ledger(recorded) if recorded is not None else ()))


def _of_files(facts: Facts) -> Iterator[Lane]:
    checkpoint, marks = facts.checkpoint, facts.marks
    yield Lane("planned", marks.planned, intervals(checkpoint.offset_ids), _damaged(checkpoint, OFFSETS))
    yield Lane("committed", marks.committed, intervals(checkpoint.commit_ids), _damaged(checkpoint, COMMITS))
    if marks.state is not None:
        yield Lane("state", marks.state, intervals(_batches_with_state(checkpoint.inventory)))
    shown = marks.written
    yield Lane("written", shown, ((0, shown),) if shown is not None and shown >= 0 else ())


def _damaged(checkpoint: CheckpointSeen, log: str) -> tuple[int, ...]:
    """The batches with a file in the log that cannot be read; one that is missing is not kept."""
    names = (item.path.rpartition("/")[2] for item in checkpoint.damage_below(log) if item.kind != "missing")
    return tuple(sorted({int(name) for name in names if name.isascii() and name.isdigit()}))


def _of_ledger(recorded: Sequence[int]) -> Iterator[Lane]:
    yield Lane("recorded", max(recorded, default=-1), intervals(recorded))


def _batches_with_state(inventory: StateInventory) -> frozenset[int]:
    """The batches after which the state of every partition of every store can be loaded: batch N made version N+1."""
    versions = [store.loadable for _, _, _, store in inventory.each()]
    common = frozenset.intersection(*versions) if versions else frozenset[int]()
    return frozenset(version - 1 for version in common if version > 0)


def intervals(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """The first and last number of each run of consecutive ones: a file's name can claim batch 10**17."""
    known = sorted(set(numbers))
    if not known:
        return ()
    breaks = [(before, after) for before, after in pairwise(known) if after != before + 1]
    firsts = [known[0], *(after for _, after in breaks)]
    lasts = [*(before for before, _ in breaks), known[-1]]
    return tuple(zip(firsts, lasts, strict=True))
