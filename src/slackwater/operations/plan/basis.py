from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, replace
from typing import Protocol

from slackwater.core.commands import command
from slackwater.core.errors import Refused
from slackwater.core.profile import ARBITRARY, QueryProfile, not_reproducible
from slackwater.core.records import History, StreamRecord
from slackwater.core.sink import BackfillDirectory, Cut
from slackwater.core.snapshot import Snapshot
from slackwater.ledger.recording.batch_history import BatchHistory, offsets_by_source
from slackwater.operations.goals.common.goal import goal_named
from slackwater.operations.plan.contributing import Code, StateBounds
from slackwater.operations.plan.plan import BEFORE_ALL, Request, SourceStart
from slackwater.operations.plan.stream_facts import StreamFacts
from slackwater.operations.plan.words import plan_command


class Continues(Protocol):
    def continued_after(self, request: Request, /) -> int | None:
        """As ``Goal`` has it. Raises UsageError (``target``)."""


@dataclass(frozen=True, slots=True)
class Basis:
    """``query`` is the present code's profile, if it was needed and read. ``side`` replaces the stream's output.
    ``readers`` have read rows that the operation changes; ``replaced`` is all that a swap replaces. ``leader`` is the
    plan's first stream with its request.
    """

    facts: StreamFacts
    request: Request
    asked: Continues
    query: QueryProfile | None = None
    side: BackfillDirectory | None = None
    readers: tuple[str, ...] = ()
    replaced: Cut | None = None
    leader: tuple[str, Request] | None = None

    @property
    def goal(self) -> str:
        return self.request.goal

    @property
    def target(self) -> int | None:
        """The batch to continue after; ``None``: the last written batch."""
        return self.asked.continued_after(self.request)

    @property
    def snapshot(self) -> Snapshot:
        return self.facts.snapshot

    @property
    def history(self) -> History:
        return self.facts.history

    @property
    def code(self) -> Code:
        if self.query is None:
            return Code(self.facts.pipeline.digest)
        return Code(self.facts.pipeline.digest, self.query.rows_digest, self.query.spark_version)

    @property
    def profile(self) -> QueryProfile | None:
        """The present profile if it was read, else the recorded profile."""
        return self.query or self.snapshot.profile

    @property
    def states(self) -> frozenset[int]:
        return self.facts.checkpoint.states

    @property
    def batches(self) -> BatchHistory:
        return BatchHistory(self.history)

    @property
    def written(self) -> int:
        """The newest batch in the sink, -1 for none; if the sink cannot show it, the newest committed batch."""
        return self.snapshot.written_or_committed


@dataclass(frozen=True, slots=True)
class Scope:
    """``first`` to ``target`` are replayed without output; ``pending`` stays planned after them. ``copied``: state and
    ranges come from the checkpoint in use, without Spark. ``keeps_pending``: outputs keep ``pending``, and skip it when
    it runs again. ``state_until`` is the newest batch with state. ``starts`` replace the recorded end of ``target``.
    ``added``: a batch with its own range runs under the next id.
    """

    target: int
    first: int
    pending: int | None
    state: StateBounds
    copied: bool = False
    state_until: int | None = None
    starts: tuple[SourceStart, ...] | None = None
    keeps_pending: bool = True
    added: bool = False

    @property
    def planned(self) -> int:
        return self.target if self.pending is None else self.pending


def is_cut(basis: Basis, scope: Scope) -> bool:
    """A kept ``pending`` has the same range, so that outputs need not be cut."""
    shown = basis.snapshot.shown
    return bool(shown) and max(shown) > (scope.planned if scope.keeps_pending else scope.target)


def check_since_start(basis: Basis, target: int) -> None:
    """Raises Refused for a batch before a reset or backfill: it continues other batches."""
    begins, stream = basis.history.begins, basis.snapshot.stream
    if target < begins - 1:
        raise Refused(
            "target-unknown",
            f"Batch {target + 1} predates the last reset or backfill of stream {stream.name} and cannot be used: "
            "another range was read in between",
            where=f"stream {stream.full_name}",
            expected=f"to continue after batch {begins - 1} or a newer one",
            found=f"to continue after batch {target}" if target >= 0 else "the beginning",
            hint=f"process everything again: {command('plan', 'reset', stream.full_name, '--from', 'earliest')}",
        )


def written_text(snapshot: Snapshot) -> str:
    return ", ".join(str(one.written) for one in snapshot.outputs)


def batches_used(first: int, target: int, pending: int | None) -> range:
    return range(max(min(first, target) - 1, 0), (target if pending is None else pending) + 1)


def ends_after(batches: BatchHistory, target: int) -> dict[str, int]:
    """Last inherited log entries (-1: none), without sources that inherit all."""
    if target < 0:
        return dict.fromkeys(batches.history.sources, -1)
    ends = offsets_by_source(batches.offset(target))
    cuts = {source: batches.kind(source, text).cut_entry(text) for source, text in ends.items()}
    return {batches.log_of(source): entry for source, entry in cuts.items() if entry is not None}


def query_id(basis: Basis, target: int) -> str:
    """Raises Refused (``query-id-unknown``)."""
    recorded, generation = basis.history.metadata, basis.snapshot.generation
    if recorded is not None:
        return str(json.loads(recorded)["id"])
    if generation.query_id is not None:
        return generation.query_id
    if target == BEFORE_ALL:
        # Killed before Spark had written its metadata: no id was ever used. The same each time the plan is derived.
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{basis.snapshot.stream.id}/{basis.facts.next_generation}"))
    raise Refused(
        "query-id-unknown",
        f"The query id of stream {basis.snapshot.stream.name} is not recorded",
        where=generation.location,
        hint="restore the file metadata of the checkpoint from a backup",
    )


def check_reproducible(
    profile: QueryProfile, stream: StreamRecord, request: Request, leader: tuple[str, Request] | None = None
) -> None:
    """Raises Refused if a replay cannot recompute the state exactly. ``leader``: see ``Basis``."""
    if (found := not_reproducible(profile, request.row_order)) is None:
        return
    what, reason = found
    name, asked = leader or (stream.full_name, request)
    at_word = replace(asked, row_order="any")
    takes_word = goal_named(asked.goal).accepts(at_word)
    remains = _with_no_state(stream.full_name, None if leader is None else name, stage_first=not takes_word)
    helps = takes_word and not_reproducible(profile, "any") is None
    raise Refused(
        "state-not-reproducible",
        f"The state of stream {stream.name} cannot be recomputed exactly: {reason}",
        expected="windowed aggregations, dropDuplicates, joins",
        found=what,
        hint=f"if it gives the same for any order of the rows in a batch: {plan_command(name, at_word)}; else {remains}"
        if helps
        else remains,
    )


def _with_no_state(stream: str, leader: str | None, *, stage_first: bool) -> str:
    """A later stage alone would read rows again that the plan removes from the output before it. It can be reset first
    only if the plan restarts that output without state, so that it reads all from its first batch on.
    """
    if leader is None:
        return (
            f"process everything again: {command('plan', 'reset', stream, '--from', 'earliest')}; "
            "or run the query under a new stream name into a new output"
        )
    if stage_first:
        return f"process {stream} again before that: {command('plan', 'reset', stream, '--from', 'earliest')}"
    return f"process everything again: {command('plan', 'reset', leader, '--from', 'earliest', '--downstream')}"


def state_bounds(basis: Basis) -> StateBounds:
    given, output_mode = basis.request.retention_ms, basis.snapshot.stream.output_mode
    if basis.profile is None:
        retention = None if output_mode == "complete" else given
        stateful = basis.snapshot.marks.state is not None or given is not None
        return StateBounds(stateful=stateful, retention_ms=retention, delay_ms=None)
    return bounds_of(basis.profile, basis.snapshot.profile, output_mode, given)


def bounds_of(
    profile: QueryProfile, recorded: QueryProfile | None, output_mode: str, given: int | None = None
) -> StateBounds:
    """Bounds for batches that ran as ``recorded``. ``given``: a requested retention."""
    # What a batch recorded counts only if its query had the present delay; the recorded one is that of the newest run,
    # perhaps of code that was rolled back. Too long a delay makes event times newer, and replays more.
    delays, present = recorded.watermark_delays_ms if recorded is not None else (), profile.watermark_delays_ms
    # In complete mode Spark drops no key: each batch writes the whole result.
    # What a function of the user's own keeps of older rows is unknown, whatever the watermark is.
    unbounded = output_mode == "complete" or not_reproducible(replace(profile, by_order=())) is not None
    return StateBounds(
        stateful=profile.stateful or given is not None,
        retention_ms=None if unbounded else profile.retention_ms if given is None else given,
        delay_ms=max(*delays, *present) if len(delays) == len(present) == 1 else None,
        any_row_order=not ARBITRARY.isdisjoint(profile.operators),
        several=max(len(delays), len(present)) > 1,
        session_gap_ms=None if unbounded else profile.session_gap_ms,
        window_starts_ms=None if given is not None else profile.window_starts_ms,
    )
