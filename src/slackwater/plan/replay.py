"""The scope of a replay: process the batches from a given one on again."""

from __future__ import annotations

from dataclasses import replace

from slackwater.errors import Refused
from slackwater.plan.basis import BEFORE_ALL, Basis, Scope, check_cut, check_since_start
from slackwater.plan.rebuild import check_shown, recomputed
from slackwater.plan.resume import kept_scope
from slackwater.plan.words import BATCH


def kept_scope_of_replay(basis: Basis) -> Scope | None:
    """What continuing after the batch before the first one takes, ``None`` where its state has to be recomputed.

    Raises Refused where the output does not hold the batches, or cannot be treated as asked for.
    """
    target = _target(basis)
    if basis.request.output == "keep":
        _check_kept(basis, target)
    kept = kept_scope(basis, target)
    if kept is None:
        return None
    scope = replace(kept, keeps_pending=False)
    check_cut(basis, scope)
    return scope


def recomputed_scope_of_replay(basis: Basis) -> Scope:
    """The same with recomputed state. Raises Refused where that is not recorded or cannot be exact."""
    target = _target(basis)
    if not basis.batches.is_whole(target):
        oldest = next((batch for batch in basis.batches.batches if basis.batches.is_whole(batch)), None)
        raise Refused(
            "target-unknown",
            f"The range of batch {target}, after which the replay would start, is not recorded",
            expected="batch 0" if oldest is None else f"batch 0, or batch {oldest + 1} or later",
            found=f"{BATCH}{target + 1}",
            hint=f"slackwater plan replay {basis.snapshot.stream.full_name} --from earliest",
        )
    return recomputed(basis, target)


def _target(basis: Basis) -> int:
    written = basis.written
    target = written - 1 if basis.target is None else basis.target
    if target >= 0:
        check_shown(basis, written)
    if not BEFORE_ALL <= target < written:
        raise Refused(
            "target-unwritten",
            f"The sink of stream {basis.snapshot.stream.name} does not hold batch {target + 1}, so that it cannot be "
            "processed again",
            expected=f"a batch from 0 to {written}" if written >= 0 else "a stream that has written something",
            found=str(target + 1),
            hint=f"slackwater status {basis.snapshot.stream.full_name}",
        )
    check_since_start(basis, target)
    return target


def _check_kept(basis: Basis, target: int) -> None:
    """Only an output that does not skip batches by their id can keep what it holds of those that are run again."""
    for output in basis.snapshot.outputs:
        if output.written is not None or output.batches_skipped:
            raise Refused(
                "output-skips",
                f"The output cannot be kept: it skips batches that it has by their id, so that the batches from "
                f"{target + 1} on would change nothing",
                where=output.location,
                expected="--output cut",
                found="--output keep",
                hint=f"slackwater plan replay {basis.snapshot.stream.full_name} --from {BATCH}{target + 1}",
            )
