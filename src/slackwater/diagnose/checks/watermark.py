import sys
from itertools import pairwise

from slackwater.core.commands import check_command, reset_command
from slackwater.core.facts import Facts, Severity
from slackwater.core.program import parsed_program
from slackwater.core.units import duration_text, utc_text
from slackwater.diagnose.checks.common.check import Findings, Found, check, never_falls, rebuild, replay_from
from slackwater.diagnose.checks.common.settings import newest_committed


@check("SW-WM-005", Severity.WARNING, risk="wrong", goal="rebuild")
def commit_behind(facts: Facts) -> Findings:
    """The newest commit has an older watermark than its batch.

    Condition: the newest entry of `commits/` has a lower watermark than its batch was planned with. Spark never
    writes that: the entry was edited.
    Effect: the next batch counts rows that an uninterrupted run drops as late.
    How to confirm: `slackwater inspect STREAM` shows the watermark of each batch.
    Remedy: `slackwater plan rebuild STREAM`. It uses the recorded watermarks.
    Safety: yes; the output is not touched.
    References: Structured Streaming Programming Guide, "Handling Late Data and Watermarking"
    """
    checkpoint = facts.checkpoint
    entry, commit = newest_committed(checkpoint), checkpoint.newest_commit
    if entry is None or commit is None or commit.next_batch_watermark_ms >= entry.watermark_ms:
        return
    after = commit.next_batch_watermark_ms
    planned = utc_text(entry.watermark_ms)
    committed = utc_text(after) if after else "none"
    yield Found(
        f"the commit of batch {checkpoint.committed} has an older watermark than the batch was planned with: the "
        "next batch would count rows that are late",
        where=f"{facts.checkpoint.location}/commits/{checkpoint.committed}",
        expected=f"a watermark of {planned} or later",
        found=committed,
        advice=f"restore commits/{checkpoint.committed} from a copy of the checkpoint",
        next=rebuild(facts),
        facts={"batch": checkpoint.committed, "planned": planned, "committed": committed},
    )


def _text(milliseconds: int) -> str:
    return f"{utc_text(milliseconds)} ({milliseconds})" if milliseconds else "none"


@check("SW-WM-008", Severity.WARNING, risk="wrong", goal="rebuild", certainty="likely")
def commit_differs(facts: Facts) -> Findings:
    """A batch was planned with a different watermark than the commit before it has.

    Condition: a batch in `offsets/` and the previous batch in `commits/` have different watermarks. Spark writes
    equal watermarks, so an entry was edited or copied.
    Effect: late rows and written windows no longer follow from the recorded watermarks. If it is the newest
    batch, the next batch may count late rows, or drop rows that are in time.
    How to confirm: `slackwater inspect LOCATION` shows the watermarks of each batch.
    Remedy: watermarks only grow, so the neighbours show the wrong entry. Restore it from a copy of the checkpoint.
    Safety: yes. Only a rollback reads older entries; for the newest batch, first compare its output.
    References: Structured Streaming Programming Guide, "Handling Late Data and Watermarking"
    """
    # A plan of Slackwater's may set watermarks: recorded streams are left.
    if facts.recorded:
        return
    # Entries without metadata are of continuous processing, which has no watermark.
    pairs = [
        (earlier, later)
        for earlier, later in pairwise(facts.checkpoint.report.batches)
        if None not in (earlier.next_watermark_ms, later.watermark_ms, later.timestamp_ms)
        and later.id == earlier.id + 1
        and earlier.next_watermark_ms != later.watermark_ms
    ]
    for earlier, later in pairs[-1:]:
        committed, planned = _text(earlier.next_watermark_ms or 0), _text(later.watermark_ms or 0)
        batch, before = later.id, earlier.id
        yield Found(
            f"batch {batch} was planned with a different watermark than batch {before} committed: one of the two "
            "entries was edited or copied",
            where=f"{facts.checkpoint.location}/offsets/{batch}",
            expected=f"{committed}, as in commits/{before}",
            found=planned,
            advice=f"compare offsets/{batch} and commits/{before} with a copy of the checkpoint",
            facts={"batch": batch, "before": before, "planned": planned, "committed": committed},
        )


_CLOCKS_DIFFER_MS = 10 * 60 * 1000


@check("SW-WM-006", Severity.WARNING, risk="loss", goal="replay")
def future(facts: Facts) -> Findings:
    """The watermark is ahead of the clock.

    Condition: a batch moved the watermark more than ten minutes past its planning time.
    Effect: a single record with a future timestamp causes this. A watermark never goes back: until the clock
    reaches it, rows with correct times are silently dropped as late.
    How to confirm: compare watermark and time of the batches in `slackwater inspect STREAM`.
    Remedy: filter out rows with future times before `withWatermark`, then process the batches again from the batch
    in the finding: `slackwater plan replay STREAM --from batch:N`.
    Safety: the plan shows the rows that it cuts, and keeps them for the undo. Without the filter the
    watermark moves again. Editing the watermark in the logs does not bring back dropped state.
    References: Structured Streaming Programming Guide, "Handling Late Data and Watermarking"
    """
    ahead = None
    for line in facts.checkpoint.report.batches:
        if line.timestamp_ms is None:
            continue
        moved_ms = max(line.watermark_ms or 0, line.next_watermark_ms or 0)
        if moved_ms <= line.timestamp_ms + _CLOCKS_DIFFER_MS:
            ahead = None
        elif ahead is None:
            ahead = line.id, moved_ms, line.timestamp_ms
    if ahead is not None:
        batch, watermark_ms, time_ms = ahead
        watermark, time, past = utc_text(watermark_ms), utc_text(time_ms), duration_text(watermark_ms - time_ms)
        yield Found(
            f"batch {batch} has moved the watermark {past} past the clock: rows with earlier times are dropped as "
            "late, silently",
            where=f"{facts.checkpoint.location}/commits/{batch}",
            expected=f"a watermark up to {time}",
            found=watermark,
            advice="first filter out rows with times in the future, before withWatermark; without the filter they move "
            "the watermark again",
            next=replay_from(facts, batch),
            facts={"batch": batch, "watermark": watermark, "time": time, "ahead": past},
        )


_IDLE_SOURCE_BATCHES = 10


@check("SW-WM-003", Severity.WARNING, risk="stuck", certainty="likely", needs=("history",))
def idle_source(facts: Facts) -> Findings:
    """An idle source keeps the watermark where it is.

    Condition: over the last ten batches with rows the watermark has not moved, and one of several sources had no
    rows.
    Effect: with the policy `min` the slowest source decides. Windows stay open, append mode writes nothing, and
    the state grows.
    How to confirm: `slackwater ledger STREAM --batches 0..` shows the watermark and the rows of each batch.
    Remedy: send the idle source a record from time to time, or read it in its own query.
    Safety: yes. Only a new checkpoint uses the policy `max`, which drops rows of the slower source as late.
    References: Structured Streaming Programming Guide, "Policy for handling multiple watermarks"
    """
    batches = [one for one in facts.batches if one.input_rows][-_IDLE_SOURCE_BATCHES:]
    if (
        len(batches) < _IDLE_SOURCE_BATCHES
        or len({one.watermark_ms for one in batches}) > 1
        or batches[0].watermark_ms is None
    ):
        return
    # Sources are compared by position, so that their number must not have changed.
    count = {len(one.sources) for one in batches}
    if len(count) != 1:
        return
    for index in range(count.pop()):
        if not any(one.sources[index].input_rows for one in batches):
            source = batches[-1].sources[index].description
            first = batches[0].batch_id
            last = batches[-1].batch_id
            yield Found(
                f"the watermark has not moved from batch {first} to {last}, and source {source} had no rows in them",
                where=source,
                expected="rows, which move the watermark",
                found="no rows",
                advice="let the source have a record from time to time, or read it in a query of its own",
                facts={"source": source, "first": first, "last": last},
            )


def _delay_ms(facts: Facts, batch: int) -> int | None:
    program = parsed_program(facts.snapshot.generation.programs, batch)
    inputs = (one for operator in program.operators for one in operator.inputs) if program is not None else ()
    return max((mark.delay_ms for one in inputs for mark in one.watermarks), default=None)


@check("SW-WM-010", Severity.WARNING, risk="loss", goal="reset", needs=("history",))
def rows_late(facts: Facts) -> Findings:
    """The watermark has dropped rows as late.

    Condition: a stateful operator dropped rows older than the watermark in recorded batches, and the newest program
    has no longer delay.
    Effect: these rows are in no result, and Spark reports no error.
    How to confirm: `slackwater ledger STREAM --batches 0..` shows each batch's dropped rows in the column `late`. Spark
    counts rows after partial aggregation as one.
    Remedy: nothing if the rows do not matter: only the newest 200 batches are checked. Otherwise correct a slow or
    restarted producer, lengthen the watermark delay in the code, then `slackwater plan reset STREAM --from earliest`
    processes everything again in order.
    Safety: the plan shows the effect on the output, and rows that the sources no longer have. Without the
    reset a longer delay helps only future rows.
    References: Structured Streaming Programming Guide, "Handling Late Data and Watermarking"; `StateOperatorProgress`
    (`numRowsDroppedByWatermark`)
    """
    now = _delay_ms(facts, sys.maxsize)
    late = [
        one
        for one in facts.batches
        if one.late_rows and (now is None or (was := _delay_ms(facts, one.batch_id)) is None or was >= now)
    ]
    if late:
        rows = sum(one.late_rows for one in late)
        batches = len(late)
        first = late[0].batch_id
        last = late[-1].batch_id
        yield Found(
            f"{rows} rows or more were dropped as late, in {batches} of the batches {first} to {last}",
            where=f"batches {first} to {last}",
            expected="rows within the delay of the watermark",
            found=f"{rows} rows or more that were older",
            at_stake=f"{rows} rows or more are in no result",
            advice="first give the watermark a longer delay in the code; where the rows do not matter, do nothing",
            next=reset_command(facts.snapshot),
            facts={"rows": rows, "batches": batches, "first": first, "last": last},
        )


_STATE_GROWS_BATCHES = 50


@check("SW-WM-009", Severity.WARNING, risk="stuck", certainty="possible", needs=("history",))
def state_grows(facts: Facts) -> Findings:
    """State is never removed: no watermark, or its column is not part of the key.

    Condition: over at least the newest 50 recorded batches with rows the state never shrank, and it grew within the
    last quarter.
    Effect: batches become slower and need more memory, until one fails.
    How to confirm: `slackwater ledger STREAM --batches 0..` shows the state rows in the column `state`. A young
    stream's state also grows, until the watermark passes the first keys.
    Remedy: put `withWatermark` before the stateful operator, and its column or a window of it into the key; or use
    `dropDuplicatesWithinWatermark`; for a stateful function set a timeout. `slackwater check FILE` shows the effect on
    the kept state.
    Safety: `check` compares the changed code with the kept state before a start.
    References: Structured Streaming Programming Guide, "Handling Late Data and Watermarking"; `StateOperatorProgress`
    (`numRowsTotal`)
    """
    batches = [one for one in facts.batches if one.input_rows]
    if len(batches) < _STATE_GROWS_BATCHES:
        return
    rows = [one.state_rows for one in batches]
    before, after, first, last = rows[0], rows[-1], batches[0].batch_id, batches[-1].batch_id
    if never_falls(rows) and after > rows[-len(rows) // 4] and after > 2 * before:
        yield Found(
            f"the state grew from {before} to {after} rows in the batches {first} to {last}, and never shrank",
            where=f"batches {first} to {last}",
            expected="state that the watermark removes again",
            found=f"{after} rows",
            next=check_command(facts.snapshot.stream),
            advice="have withWatermark before the operator and its column in the key; a new stream also grows for "
            "a while",
            facts={"before": before, "after": after, "first": first, "last": last},
        )
