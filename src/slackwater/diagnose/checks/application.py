"""How a query is run: its batches, and modes of processing that leave other logs."""

from slackwater.core.commands import command
from slackwater.core.facts import Facts, Severity, Unknown
from slackwater.diagnose.checks.common.check import (
    Findings,
    Found,
    check,
    has_gaps_by_design,
    lag_of,
    never_falls,
    with_rows,
)

_LAG_GROWS_BATCHES = 10


@check("SW-APP-010", Severity.WARNING, risk="loss", certainty="likely", needs=("history",))
def lag_grows(facts: Facts) -> Findings:
    """A batch takes longer than its rows take to arrive.

    Condition: in ten recorded batches with rows, the backlog never fell; the newest batch left more rows than it
    read, and twice as many as the first.
    Effect: results get later. Rows that the source's retention removes unread are lost.
    How to confirm: `slackwater status STREAM` shows the backlog. After a first start it is large, but does not grow.
    Remedy: use more cores or fewer shuffle partitions, merge small files, or raise a source limit
    (maxOffsetsPerTrigger) below the arrival rate.
    Safety: yes. A query with state keeps the number of shuffle partitions of its first batch.
    References: Structured Streaming Programming Guide, "Monitoring Streaming Queries"; `SourceProgress`
    (`latestOffset`)
    """
    batches = with_rows(facts, _LAG_GROWS_BATCHES)
    waiting = [rows for rows in map(lag_of, batches) if rows is not None]
    if len(waiting) < _LAG_GROWS_BATCHES or not never_falls(waiting):
        return
    before, after = waiting[0], waiting[-1]
    first, last = batches[0].batch_id, batches[-1].batch_id
    if after > max(2 * before, batches[-1].input_rows):
        yield Found(
            f"{after} rows wait in the sources after batch {last}, {before} after batch {first}: the batches "
            "cannot keep up with the input",
            where=f"batches {first} to {last}",
            expected=f"{before} rows or fewer",
            found=f"{after} rows",
            at_stake="the rows that the retention of the source removes before they are read",
            next=command("status", facts.name),
            advice="give the query more cores or fewer shuffle partitions, or raise the limit of its source",
            facts={"before": before, "after": after, "first": first, "last": last},
        )


_SLOWER_THAN_TRIGGER_BATCHES = 10


@check("SW-APP-012", Severity.WARNING, risk="none", needs=("history",))
def slower_than_trigger(facts: Facts) -> Findings:
    """Batches take longer than the interval of their trigger.

    Condition: most of the ten newest recorded batches with rows took longer than their trigger interval.
    Effect: results are late, and the backlog grows if rows arrive faster than they are read.
    How to confirm: `slackwater ledger STREAM` shows the durations in the column `took`.
    Remedy: use more cores or fewer shuffle partitions, limit the batches (maxOffsetsPerTrigger,
    maxFilesPerTrigger), or set a longer interval.
    Safety: yes. A query with state keeps the number of shuffle partitions of its first batch.
    References: Structured Streaming Programming Guide, "Triggers"; `StreamingQueryProgress` (`durationMs`)
    """
    batches = with_rows(facts, _SLOWER_THAN_TRIGGER_BATCHES)
    runs = {one.run for one in batches}
    if isinstance(facts.history, Unknown) or len(runs) != 1:
        return
    interval_ms = next((run.trigger_ms for run in facts.history.runs if run.id in runs), None)
    took = [one.durations_ms.get("triggerExecution", 0) for one in batches]
    long = [one for one in took if interval_ms is not None and one > interval_ms]
    if interval_ms is not None and 2 * len(long) > _SLOWER_THAN_TRIGGER_BATCHES:
        longest_ms, first, last = max(long), batches[0].batch_id, batches[-1].batch_id
        yield Found(
            f"{len(long)} of the batches {first} to {last} took longer than the {interval_ms} ms of their trigger",
            where=f"batches {first} to {last}",
            expected=f"{interval_ms} ms at most",
            found=f"up to {longest_ms} ms",
            advice="give the query more cores, limit how much a batch reads, or set a longer interval",
            next=command("ledger", facts.name),
            facts={
                "batches": len(long),
                "longest_ms": longest_ms,
                "interval_ms": interval_ms,
                "first": first,
                "last": last,
            },
        )


@check("SW-MODE-003", Severity.INFO, risk="stuck", goal="resume", certainty="likely")
def asynchronous_gaps(facts: Facts) -> Findings:
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
            advice="start the query with asynchronous progress tracking; before it is switched off, run two batches "
            "with asyncProgressTrackingCheckpointIntervalMs=0",
            facts={"missing": missing, "newest": ids[-1]},
        )


@check("SW-MODE-004", Severity.INFO, risk="stuck", goal="resume")
def continuous_entries(facts: Facts) -> Findings:
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
