"""Kafka topics that no longer have the next batch's position."""

from contextlib import suppress

from slackwater.core.commands import reset_command, run_command
from slackwater.core.errors import FormatError
from slackwater.core.facts import Facts, Severity, Unknown
from slackwater.diagnose.checks.common.check import Findings, Found, check
from slackwater.sources import kind_of
from slackwater.sources.common.contract import SourceRange


def lacking(
    facts: Facts,
    problem: str,
    text: str,
    *,
    at_stake: str | None = None,
    next_command: str | None = None,
    advice: str | None = None,
    **more: str,
) -> Findings:
    """A finding for each source with the problem; the texts can name its ``source``, ``parts`` and ``records``."""
    for source in facts.sources:
        found = () if isinstance(source.unserved, Unknown) else source.unserved
        mine = [one for one in found if one.problem == problem]
        if mine:
            first = mine[0]
            values = {
                "source": source.name,
                "place": first.place,
                "expected": first.expected,
                "found": first.found,
                "parts": len(mine),
                "records": sum(one.records for one in mine),
            }
            yield Found(
                text.format_map(values),
                where=first.place,
                expected=first.expected,
                found=first.found,
                at_stake=at_stake and at_stake.format_map(values),
                next=next_command,
                advice=advice,
                facts={**values, **more},
            )


_TIMES = 10
_FEWEST_RUNS = 2
_UNSUCCESSFUL = (None, "killed", "failed", "interrupted")
"""Ends of a run without success; ``None`` until the next start records a kill."""


@check("SW-KAFKA-013", Severity.WARNING, risk="stuck", goal="resume", certainty="likely", needs=("history",))
def batch_too_large(facts: Facts) -> Findings:
    """A planned batch is far larger than any batch before it, and runs do not complete it.

    Condition: the planned batch has at least ten times the records of the largest recorded batch, or no batch is
    recorded, and at least the last two runs did not complete it.
    Effect: Spark keeps the planned range, even under a new limit. Without enough memory or time, the batch
    never completes, and later data is never read.
    How to confirm: `slackwater ledger STREAM` shows how the runs ended; `slackwater inspect LOCATION` shows the range.
    Remedy: use more memory and executors until the batch is committed, and limit later batches:
    `maxOffsetsPerTrigger`.
    Safety: yes. Without a limit, a reset or rebuild plans the same range again.
    References: Structured Streaming + Kafka Integration Guide, option maxOffsetsPerTrigger
    """
    marks = facts.snapshot.marks
    if not marks.next_is_planned or facts.snapshot.holder is not None:
        return
    runs = 0
    if not isinstance(facts.history, Unknown):
        done = max((batch.run or 0 for batch in facts.batches), default=0)
        generation = facts.snapshot.generation.number
        runs = sum(
            run.id > done and run.generation == generation and run.end in _UNSUCCESSFUL for run in facts.history.runs
        )
    rows = 0
    for source in facts.sources:
        with suppress(FormatError):
            span = SourceRange(source.name, source.start, source.end)
            rows += kind_of(source.end or "", {}).rows(span) or 0
    largest = max((batch.input_rows for batch in facts.batches), default=0)
    if runs >= _FEWEST_RUNS and rows > max(largest, 1) * _TIMES:
        yield Found(
            f"batch {marks.planned} reads {rows} records, the largest batch before it {largest}, and the last {runs} "
            "runs did not complete it",
            where=f"batch {marks.planned}",
            expected=f"a batch of about {largest}",
            found=f"{rows} records",
            advice="start the query with more memory or executors until the batch is committed; then set "
            "maxOffsetsPerTrigger",
            next=run_command(facts.snapshot.stream),
            facts={"batch": marks.planned, "rows": rows, "largest": largest, "runs": runs},
        )


@check(
    "SW-KAFKA-002", Severity.STOP, risk="loss", goal="reset", needs=("positions",), also=("KAFKA-14",), at_start=True
)
def behind_position(facts: Facts) -> Findings:
    """A partition ends before the position of the stream.

    Condition: the topic was created again, its log was cut, or the brokers belong to a different cluster. No recorded
    topic id or record time shows the cause.
    Effect: with `failOnDataLoss` the query fails. Without it Spark continues at the lower end and never reads
    records already in a new topic.
    How to confirm: `kafka-get-offsets.sh --time -1` lists the ends; `slackwater offsets STREAM` the stream's positions.
    Remedy: find the cause. Read a new topic from its beginning: `slackwater plan reset STREAM --from earliest
    --output keep`. If the log was cut, continue at its end: `slackwater plan reset STREAM --from shift:0 --output
    keep`.
    Safety: `earliest` doubles old records that remain; `shift:0` skips a new topic's records. A lagging
    broker briefly reports a lower end: compare again first.
    References: Structured Streaming + Kafka Integration Guide, option failOnDataLoss; KAFKA-7703
    """
    again, cut = (reset_command(facts.snapshot, "--output", "keep", start=one) for one in ("earliest", "shift:0"))
    ways = f"if the topic was created again: {again}; if its log was cut at its end: {cut}" if facts.recorded else ""
    yield from lacking(
        facts,
        "behind-position",
        "{parts} partitions of source {source} end before the position of the stream: the topic was "
        "created again, its log was cut, or this is a different cluster",
        ways=ways,
        advice=ways,
    )


@check("SW-KAFKA-015", Severity.STOP, risk="loss", goal="reset", needs=("positions",), at_start=True)
def log_cut(facts: Facts) -> Findings:
    """The log of a topic was cut at its end.

    Condition: a partition ends before the stream's position, in a topic with the recorded id or, if no id is
    recorded, with records as old as the batch. A replica without the newest records became the leader
    (`unclean.leader.election.enable`).
    Effect: with `failOnDataLoss` the query fails. Without it Spark continues at the lower end, or waits for the
    old position: records written until then are never read.
    How to confirm: `kafka-get-offsets.sh --time -1` lists the ends; `slackwater offsets STREAM` the stream's positions;
    the brokers' logs have the election.
    Remedy: continue at the present end, with the same output and other positions: `slackwater plan reset STREAM
    --from shift:0 --output keep`.
    Safety: yes, for the removed records, which the stream has read. To read records written after the cut,
    give the first offset with `--from offsets:FILE`.
    References: Apache Kafka documentation, "Unclean leader election"; Structured Streaming + Kafka Integration Guide,
    option failOnDataLoss
    """
    yield from lacking(
        facts,
        "log-cut",
        "{parts} partitions of source {source} were cut at their end: {records} offsets before the "
        "position of the stream are gone, and are given to other records",
        next_command=reset_command(facts.snapshot, "--output", "keep", start="shift:0"),
    )


@check("SW-KAFKA-005", Severity.WARNING, risk="loss", needs=("positions",))
def partition_added(facts: Facts) -> Findings:
    """A partition was added that does not start at offset 0.

    Condition: a subscribed partition without a position in the stream has an oldest offset other than 0.
    Effect: Spark reads an added partition from its oldest record, whatever `startingOffsets` says, and reports
    earlier records as lost: with `failOnDataLoss` it fails.
    How to confirm: `kafka-get-offsets.sh --time -2` lists the oldest offsets; `slackwater offsets STREAM` the stream's.
    Remedy: start once with `failOnDataLoss=false`, and set it back to true.
    Safety: yes, if the removed records are not needed. An added old topic is read from its beginning.
    References: Structured Streaming + Kafka Integration Guide, option failOnDataLoss
    """
    yield from lacking(
        facts,
        "partition-added",
        "{parts} partitions were added to source {source} and do not start at offset 0: {records} "
        "records were removed before the stream could read them",
        at_stake="{records} records",
        advice="if these records are not wanted, start once with failOnDataLoss=false, and set it to true again",
    )


@check("SW-KAFKA-004", Severity.STOP, risk="loss", needs=("positions",))
def partitions_gone(facts: Facts) -> Findings:
    """Partitions that the stream reads do not exist, or are not subscribed.

    Condition: the stream's position has partitions that the brokers or the recorded subscription lack.
    Effect: with `failOnDataLoss` the query fails. Without it Spark drops their positions: if a topic comes
    back, its rows are doubled.
    How to confirm: `kafka-topics.sh --describe` lists the partitions; `slackwater offsets STREAM` the stream's
    positions.
    Remedy: create the topic again under a different name, or subscribe to it; if it was removed on purpose, start once
    with `failOnDataLoss=false`, and set it back to true.
    Safety: unread records of a deleted topic are lost. If the option stays false, later losses are silent.
    References: Structured Streaming + Kafka Integration Guide, option failOnDataLoss
    """
    yield from lacking(
        facts,
        "partitions-gone",
        "{parts} partitions in the position of source {source} do not exist, or are not subscribed any more",
        advice="subscribe to the topic again; if it was removed on purpose, start once with failOnDataLoss=false",
    )


@check("SW-KAFKA-001", Severity.STOP, risk="loss", goal="backfill", needs=("positions",))
def records_expired(facts: Facts) -> Findings:
    """The brokers have removed records that the next batch starts with.

    Condition: the next batch starts before the oldest offset of a partition.
    Effect: with `failOnDataLoss` the query fails; without it the records are skipped silently.
    How to confirm: `kafka-get-offsets.sh --time -2` lists the oldest offsets; `slackwater offsets STREAM` the stream's.
    Remedy: if an archive has the records, backfill them; then start once with `failOnDataLoss=false`, and set it
    back to true.
    Safety: the counted records are lost. If the option stays false, later losses are silent; a new
    checkpoint with `startingOffsets=latest` also loses the remaining records.
    References: Structured Streaming + Kafka Integration Guide, option failOnDataLoss; SPARK-47135
    """
    start = (run_command(facts.snapshot.stream) if facts.recorded else None) or "start the query"
    yield from lacking(
        facts,
        "records-expired",
        "the brokers have removed {records} records of {parts} partitions that source {source} has not read",
        start=start,
        at_stake="{records} records",
        advice=f"read the records from an archive; then set failOnDataLoss=false for one start; {start}; then set "
        "failOnDataLoss to true again",
    )


@check(
    "SW-KAFKA-003",
    Severity.STOP,
    risk="loss",
    goal="reset",
    certainty="likely",
    needs=("positions",),
    also=("KAFKA-02",),
    at_start=True,
)
def topic_recreated(facts: Facts) -> Findings:
    """A topic was created again.

    Condition: the topic's id changed since the stream's run started. If no id is recorded: all records before the
    stream's position are newer than the batch that read up to it.
    Effect: offsets start at 0 again. Once the new topic has more records than the old topic, the query silently
    continues at the old position, and never reads the records before it.
    How to confirm: `kafka-topics.sh --describe` shows the topic id; compare the time of the partition's oldest record
    with the newest batch in `slackwater offsets STREAM`.
    Remedy: read the new topic from its beginning: `slackwater plan reset STREAM --from earliest --output keep`.
    Safety: yes, if the new topic repeats no old record. Linked clusters, and producers with future
    timestamps, look like a new topic: then `slackwater plan resume STREAM` keeps position and state, without comparing
    earlier runs.
    References: Structured Streaming + Kafka Integration Guide, option failOnDataLoss
    """
    yield from lacking(
        facts,
        "topic-recreated",
        "{parts} partitions of source {source} are of a topic that was created again: its records before "
        "the position of the stream are never read",
        at_stake="{records} records",
        next_command=reset_command(facts.snapshot, "--output", "keep"),
    )
