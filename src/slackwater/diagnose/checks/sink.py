"""A file sink's log and place, and batches that are written again."""

import re

from slackwater.core.commands import run_command
from slackwater.core.escaping import quoted
from slackwater.core.facts import Facts, Severity, SinkFacts, Unknown
from slackwater.core.units import counted
from slackwater.diagnose.checks.common.check import Findings, Found, check
from slackwater.diagnose.checks.common.snapshot import sink_kind

_QUERY_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def is_query(application: str) -> bool:
    """Whether it has the form of a query id, which the sinks of Delta and Iceberg use."""
    return _QUERY_ID.fullmatch(application) is not None


def only_other_application(facts: Facts) -> tuple[str, int] | None:
    """The output's only application, unless it is the query, and its newest transaction."""
    if isinstance(facts.sink, Unknown) or not facts.sink.transactions:
        return None
    applications = facts.sink.transactions
    if facts.checkpoint.report.query_id in applications or len(applications) > 1:
        return None
    return next(iter(applications.items()))


LIMIT = 100_000
"""A line has about 200 bytes: from here on each compaction reads and writes 20 MB."""


@check("SW-FSINK-009", Severity.WARNING, risk="stuck", needs=("sink",))
def log_large(facts: Facts) -> Findings:
    """The log of the file sink is large.

    Condition: the output's log lists more than 100,000 files.
    Effect: each compaction, by default every tenth batch, rewrites the whole list: these batches slow down, and
    the driver needs more memory until it fails.
    How to confirm: compare the times of every tenth batch with the others; `slackwater status STREAM` shows them.
    Remedy: write fewer and larger files, with a longer trigger interval or a `repartition` before the sink; or, if
    no reader needs old files, set the sink's option `retention`.
    Safety: the first is. With `retention` readers of the log no longer see old files. Do not delete the
    log: the next compaction fails, and readers see interrupted batches.
    References: SPARK-30462
    """
    if not isinstance(facts.sink, Unknown) and facts.sink.listed > LIMIT:
        yield Found(
            f"the log of the output lists {facts.sink.listed} files, and each compaction reads and writes all of "
            "them: batches become slower, and the driver can run out of memory",
            where=facts.sink.seen.location,
            expected=f"{LIMIT} files at most",
            found=f"{facts.sink.listed}",
            advice="write fewer and larger files; or set the option retention of the sink, where no reader needs the "
            "old files",
            facts={"files": facts.sink.listed, "limit": LIMIT},
        )


@check("SW-MOVE-003", Severity.STOP, risk="loss", needs=("sink",), also=("MOVE-05",))
def output_moved(facts: Facts) -> Findings:
    """The log of the output lists files under a different path.

    Condition: addresses in the output's log are not below its directory: it was moved, copied or is reached under
    another scheme or host.
    Effect: readers that use the log silently skip these files. The stream continues without an error.
    How to confirm: compare the addresses in the output's log with its directory.
    Remedy: move the output back; or back up the log, then replace the old address in all its files, and keep the
    version lines.
    Safety: yes, while no query writes to the output. Do not delete the log: readers then see files of
    interrupted batches, and the next compaction fails.
    References: Structured Streaming Programming Guide, Output Sinks
    """
    if isinstance(facts.sink, SinkFacts):
        location = facts.snapshot.output.location or ""
        for folder, files in sorted(facts.sink.elsewhere.items()):
            in_words = counted(files, "file")
            yield Found(
                f"the output lists {in_words} in {folder}, outside of its own path: readers silently skip these rows",
                where=location,
                expected=f"files below {location}",
                found=f"files below {folder}",
                at_stake=f"the rows of {in_words}",
                advice=f"move the output back to {folder}; or copy its log, and replace {folder} by the address of "
                f"{location} in every file of the log",
                facts={"folder": folder, "files": files, "location": location},
            )


@check(
    "SW-SINK-003",
    Severity.WARNING,
    risk="duplicate",
    goal="resume",
    certainty="possible",
    needs=("sink",),
    also=("SINK-04", "SINK-05"),
    explains=("at-least-once",),
)
def written_again(facts: Facts) -> Findings:
    """An interrupted batch will be written a second time.

    Condition: the newest batch is planned and not committed, and the sink cannot recognise it: a batch function, a
    JDBC writer that appends, Spark's own Kafka sink.
    Effect: the sink may have all rows of the batch, some, or none. The next start writes all: rows already
    written are silently doubled.
    How to confirm: `slackwater inspect LOCATION` shows the range of the batch; look for its rows in the output.
    Remedy: delete the rows of the batch from the output and start the query. If the output has all of them, and the
    query keeps no state, you can mark the batch as done instead: copy the previous entry of `commits/` to its number.
    Safety: yes, while no query runs. Without the checkpoint every batch is written a second time.
    References: Structured Streaming Programming Guide, ForeachBatch; docs/decisions/0120-sinks-that-show-nothing.md
    """
    snapshot = facts.snapshot
    delivery, marks = snapshot.output.delivery, snapshot.marks
    if delivery is None or delivery.guarantee != "at-least-once" or not marks.next_is_planned:
        return
    if marks.planned < 0:
        # The batches of a lost checkpoint are those of checkpoint-lost.
        return
    if snapshot.holder is None and snapshot.stream.output_mode in ("", "append"):
        start = run_command(snapshot.stream) or "start the query"
        sink = sink_kind(snapshot)
        done, commits = "", f"{facts.checkpoint.location.rstrip('/')}/commits"
        before, after = f"{commits}/{marks.planned - 1}", f"{commits}/{marks.planned}"
        if not facts.checkpoint.report.operators and facts.checkpoint.has(f"commits/{marks.planned - 1}"):
            done = (
                f"; if the output has all of them, copy {before} to {after} and start the query"
                if "://" in commits
                else f"; if the output has all of them, start the query after: cp {quoted(before)} {quoted(after)}"
            )
        yield Found(
            f"batch {marks.planned} was interrupted, and the {sink} sink does not show which rows were written: the "
            "next start writes all of them again",
            where=f"{facts.checkpoint.location}/offsets/{marks.planned}",
            expected=f"no row of batch {marks.planned} in the output",
            found=f"no entry {marks.planned} in commits/",
            at_stake=f"the rows of batch {marks.planned}",
            advice=f"delete the rows of batch {marks.planned} that are in the output; then: {start}{done}",
            facts={"batch": marks.planned, "sink": sink, "start": start, "done": done},
        )
