"""Delta tables as source and output."""

from slackwater.core.commands import reset_command
from slackwater.core.facts import Facts, Severity, Unknown
from slackwater.diagnose.checks.common.check import Findings, Found, check, move_checkpoint_away
from slackwater.diagnose.checks.kafka import lacking
from slackwater.diagnose.checks.sink import is_query, only_other_application


@check("SW-DELTA-006", Severity.STOP, risk="loss", goal="reset", needs=("positions",))
def log_cleaned(facts: Facts) -> Findings:
    """The log of the source table starts after the position of the stream.

    Condition: the stream's next table version is older than the oldest entry in `_delta_log`.
    Effect: Delta fails with DELTA_MISSING_FILES_UNEXPECTED_VERSION. With `failOnDataLoss=false` it also fails
    if the newest batch's version is missing (DELTA_STREAMING_TRAILING_COMMIT_MISSING); otherwise rows are skipped
    silently.
    How to confirm: list `_delta_log` below the table; `slackwater inspect STREAM` shows the version.
    Remedy: process the whole table, which has all rows not deleted, into a new output that replaces the old output:
    `slackwater plan reset STREAM --from earliest`.
    Safety: yes, if no row of the table was deleted or updated; the undo restores the old output.
    `failOnDataLoss` set to false loses the rows.
    References: Delta Lake documentation, "Table streaming reads and writes", property delta.logRetentionDuration
    """
    yield from lacking(
        facts,
        "versions-cleaned",
        "the log of the table that source {source} reads lacks {records} versions after the position of the stream",
        at_stake="the rows of {records} versions",
        next_command=reset_command(facts.snapshot),
        advice="the table itself has their rows, unless they were deleted: it is processed whole, and replaces the "
        "output",
    )


@check("SW-DELTA-005", Severity.STOP, risk="stuck", goal="reset", needs=("positions",), at_start=True)
def table_replaced(facts: Facts) -> Findings:
    """The source table was created again.

    Condition: the stream's position has a different table id than the Delta table at the recorded path.
    Effect: Delta refuses to continue with DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE.
    How to confirm: compare the id in `slackwater inspect STREAM` with `DESCRIBE DETAIL` of the table.
    Remedy: restore the old table; or, if the new table has all rows, process it into a new output: `slackwater plan
    reset STREAM --from earliest`. If it has only new rows, add `--output keep`.
    Safety: a replaced output has exactly the new table's rows; the undo restores the old output. With
    `--output keep` rows copied into the new table are doubled.
    References: Delta Lake documentation, "Table streaming reads and writes"
    """
    yield from lacking(
        facts,
        "table-replaced",
        "the Delta table that source {source} reads was created again: the position belongs to a different table",
        next_command=reset_command(facts.snapshot),
        advice="restore the old table; otherwise the new one is processed whole, and replaces the output: if it "
        "has new rows only, add --output keep to the reset",
    )


@check("SW-DELTA-001", Severity.STOP, risk="skip", goal="backfill", certainty="likely", needs=("sink",))
def transaction_ahead(facts: Facts) -> Findings:
    """The output has transactions of a different application that are ahead of the checkpoint.

    Condition: the Delta table's log has only transactions of a different application id, with numbers at or above the
    checkpoint's next batch.
    Effect: a batch function that passes this id as `txnAppId` silently writes nothing until its batches pass
    that number. The cause is often a new checkpoint with an old id.
    How to confirm: look for `txn` in the newest entries of `_delta_log`, and for `txnAppId` in the batch function.
    Remedy: if the checkpoint is newer than the transactions, none of its batches was written: give the function a
    new `txnAppId`, move the checkpoint away, and start the query at this checkpoint's first position. If the checkpoint
    was restored from a backup, give the function a new `txnAppId`, delete the rows of the next and later batches from
    the table, and continue.
    Safety: yes, if the new id comes with a new checkpoint: with the old checkpoint an interrupted batch is
    written twice.
    References: Delta Lake documentation, "Idempotent table writes in foreachBatch"
    """
    # An id with the form of a query id is that of a sink which takes it from the query (SW-LOG-014).
    other = only_other_application(facts)
    if other is None or isinstance(facts.sink, Unknown):
        return
    application, newest = other
    if not is_query(application) and newest >= facts.marks.next_batch:
        set_aside = move_checkpoint_away(facts.checkpoint)
        yield Found(
            f"the table has transactions of {application} up to {newest}: a batch function that writes with this "
            f"txnAppId skips batches {facts.marks.next_batch} to {newest} silently",
            where=facts.sink.seen.location,
            expected=f"transactions below {facts.marks.next_batch}",
            found=f"{newest}",
            advice="give the batch function a new txnAppId; if the checkpoint is newer than the transactions, none of "
            f"its batches has written anything; then start the query where this one started, after {set_aside}",
            facts={
                "application": application,
                "newest": newest,
                "batch": facts.marks.next_batch,
                "set_aside": set_aside,
            },
        )


@check("SW-DELTA-004", Severity.WARNING, risk="duplicate", goal="resume", certainty="possible", needs=("sink",))
def transaction_expired(facts: Facts) -> Findings:
    """The output does not know the batch that runs again.

    Condition: the next batch is planned, but the output's log has no transaction of the query: it expired, or the
    batch function writes without transactions.
    Effect: Delta's and Iceberg's own sinks skip only batches in their log. Without the transaction, for example
    after `delta.setTransactionRetentionDuration`, the batch is written again.
    How to confirm: look for `txn` with the query id in `_delta_log`, and for the batch's time in the table's history.
    Remedy: before a start, compare the newest output rows with the batch's range in `slackwater inspect LOCATION`;
    delete rows already written.
    Safety: yes, if only rows of this batch are deleted. Without the checkpoint all rows are written again.
    References: Delta Lake documentation, "Idempotent table writes in foreachBatch"
    """
    # A single other application is SW-LOG-014 or SW-DELTA-001.
    checkpoint, query_id = facts.checkpoint, facts.checkpoint.report.query_id
    if isinstance(facts.sink, Unknown) or facts.sink.transactions is None or query_id is None:
        return
    if checkpoint.committed < 0 or not checkpoint.marks.next_is_planned or query_id in facts.sink.transactions:
        return
    if only_other_application(facts) is None:
        yield Found(
            f"batch {facts.marks.next_batch} will run again, and the output has no transaction of query {query_id}: "
            "if the batch was written before, its rows are written a second time",
            where=facts.sink.seen.location,
            expected=f"a transaction of query {query_id}",
            found="none",
            at_stake=f"the rows of batch {facts.marks.next_batch}",
            advice=f"compare the newest rows of the output with the range of batch {facts.marks.next_batch}, and "
            "delete those that are there, before the query is started",
            facts={"query_id": query_id, "batch": facts.marks.next_batch},
        )
