"""Modes of processing that leave other logs."""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.facts import Facts, Severity
from slackwater.diagnose.checks.common.check import Check, Found, has_gaps_by_design


@Check[Facts]("SW-MODE-003", Severity.INFO, risk="stuck", goal="resume", certainty="likely")
def asynchronous_gaps(facts: Facts) -> Iterator[Found]:
    """The logs have the gaps of asynchronous progress tracking.

    Condition: `offsets/` and `commits/` lack the same batches, including the batch before the newest, as after
    asynchronous progress tracking.
    Effect: a start without asynchronous progress tracking fails with "batch N doesn't exist". After a crash all
    batches since the newest entry run again as a single batch.
    How to confirm: `slackwater inspect LOCATION` lists the entries of both logs.
    Remedy: start with asynchronous progress tracking. To switch it off, first run at least two batches with the
    option asyncProgressTrackingCheckpointIntervalMs=0.
    Safety: yes; with the option Spark writes an entry for each batch. Deleting or adding entries by hand
    changes ranges.
    References: Structured Streaming performance tips, Asynchronous progress tracking
    """
    ids = facts.checkpoint.offset_ids
    if len(ids) > 1 and ids[-1] - 1 not in ids and has_gaps_by_design(facts.checkpoint):
        missing = ids[-1] - 1
        yield Found(
            'the logs have the gaps of asynchronous progress tracking: a start without it is refused with "batch '
            f"{missing} doesn't exist\"",
            where=f"{facts.checkpoint.location}/offsets",
            advice=(
                "start the query with asynchronous progress tracking; before it is switched off, run two batches with "
                "asyncProgressTrackingCheckpointIntervalMs=0"
            ),
            facts={"missing": missing, "newest": ids[-1]},
        )


@Check[Facts]("SW-MODE-004", Severity.INFO, risk="stuck", goal="resume")
def continuous_entries(facts: Facts) -> Iterator[Found]:
    """The newest batch was written by the continuous trigger.

    Condition: the newest entry of `offsets/` has an empty metadata line.
    Effect: a start with micro-batches fails with a NullPointerException (currentWatermark), although the
    documentation calls all triggers interchangeable.
    How to confirm: `slackwater inspect LOCATION` shows no time of planning; line 2 of the newest file in `offsets/` is
    empty.
    Remedy: keep the continuous trigger. For micro-batches, give the query a new checkpoint that starts at the
    newest entry's positions; first check how the output treats batch ids from 0.
    Safety: the continuous trigger stays at-least-once. A metadata line added by hand avoids the exception,
    but some sources' offsets differ in continuous mode.
    References: Structured Streaming performance tips, Continuous Processing
    """
    newest = facts.checkpoint.newest_offset
    if newest is not None and newest.metadata is None:
        yield Found(
            f"batch {facts.checkpoint.planned} was written by the continuous trigger: a start with micro-batches "
            "fails with a NullPointerException",
            where=f"{facts.checkpoint.location}/offsets/{facts.checkpoint.planned}",
            advice="keep the continuous trigger, or give the query a new checkpoint for micro-batches",
            facts={"batch": facts.checkpoint.planned},
        )
