"""The scope of a reset: the stream starts at a position of its sources, with empty state."""

from __future__ import annotations

from slackwater.errors import Refused
from slackwater.plan.basis import BEFORE_ALL, Basis, Scope, check_cut
from slackwater.plan.contributing import StateBounds


def scope_of_reset(basis: Basis) -> Scope:
    """What starting at the positions of the request takes.

    Where the output is kept, batches are numbered after the newest that it has: a sink that is keyed by ids skips none.
    Else they are numbered from 0. Raises Refused where the output cannot be treated as asked for.
    """
    keep = basis.request.output == "keep"
    last = _newest(basis) if keep else BEFORE_ALL
    scope = Scope(
        last,
        last + 1,
        None,
        StateBounds(stateful=False, retention_ms=None, delay_ms=None),
        keeps_pending=False,
        state_until=last if last >= 0 else None,
        starts=basis.request.starts,
    )
    if last == BEFORE_ALL:
        _check_from_the_first_batch(basis)
    check_cut(basis, scope)
    return scope


def _newest(basis: Basis) -> int:
    """The newest batch that an output has; of one that does not show it, the newest that was planned."""
    snapshot = basis.snapshot
    if snapshot.marks.written is not None:
        return max(snapshot.shown)
    return max(snapshot.marks.planned, snapshot.recorded.planned, snapshot.known_committed, *snapshot.shown, BEFORE_ALL)


def _check_from_the_first_batch(basis: Basis) -> None:
    """Spark reads all files of the first batch of a file source: it cannot start behind some of them."""
    for start in basis.request.starts:
        if start.first is None:
            raise Refused(
                "target-unsupported",
                f"Source {start.source} cannot be at this position before batch 0, as the output would be cleared",
                where=f"stream {basis.snapshot.stream.full_name}",
                expected="earliest, or --output keep",
                found=basis.request.target,
                hint=f"keep what the output has: slackwater plan reset {basis.snapshot.stream.full_name} "
                f"--from {basis.request.target} --output keep",
            )
