"""What bounds the state of a query: how far behind the watermark rows matter, and whether a replay can be exact."""

from __future__ import annotations

from slackwater.errors import Refused
from slackwater.model.profile import QueryProfile
from slackwater.plan.basis import Basis
from slackwater.plan.contributing import StateBounds

NOT_REPRODUCIBLE = {
    "DeduplicateWithinWatermark": "dropDuplicatesWithinWatermark: the first row of a key wins, and the order of rows "
    "inside a batch is not fixed",
    "FlatMapGroupsInPandasWithState": "applyInPandasWithState: a function of the user's own",
    "FlatMapGroupsWithState": "flatMapGroupsWithState: a function of the user's own",
    "TransformWithState": "transformWithState: a function of the user's own",
    "TransformWithStateInPandas": "transformWithState: a function of the user's own",
    "TransformWithStateInPySpark": "transformWithState: a function of the user's own",
    "GlobalLimit": "limit: which rows come first is not fixed",
}


def check_reproducible(profile: QueryProfile, stream: str) -> None:
    """Raises Refused where the query keeps state that no replay recomputes exactly."""
    for operator in profile.operators:
        if operator in NOT_REPRODUCIBLE:
            raise Refused(
                "state-not-reproducible",
                f"The state of stream {stream} cannot be recomputed exactly: {NOT_REPRODUCIBLE[operator]}",
                expected="windowed aggregations, dropDuplicates, joins",
                found=operator,
                hint="run the query under a new stream name into a new output: it then reads everything from the start",
            )


def state_bounds(basis: Basis) -> StateBounds:
    """What bounds the state to be recomputed: by the present query where it was read, else by the recorded one."""
    recorded, given = basis.snapshot.profile, basis.request.retention_ms
    complete = basis.snapshot.stream.output_mode == "complete"
    profile = basis.query or recorded
    if profile is None:
        retention = None if complete else given
        stateful = basis.snapshot.marks.state is not None or given is not None
        return StateBounds(stateful=stateful, retention_ms=retention, delay_ms=None)
    check_reproducible(profile, basis.snapshot.stream.name)
    # The recorded watermarks were made with the recorded delay, whatever the query's delay is now.
    delays = recorded.watermark_delays_ms if recorded is not None else ()
    retention = profile.retention_ms if given is None else given
    return StateBounds(
        stateful=profile.stateful or given is not None,
        # In complete mode Spark drops no key: each batch writes the whole result.
        retention_ms=None if complete else retention,
        delay_ms=delays[0] if len(delays) == 1 else None,
    )
