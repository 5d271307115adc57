"""The file ``metadata``, and the content of ``offsets/``."""

import re
from itertools import pairwise

from slackwater.core.checkpoint import BatchLine, OffsetEntry
from slackwater.core.facts import Facts, HistoryFacts, Severity
from slackwater.core.units import batch_range
from slackwater.diagnose.checks.common.check import Findings, Found, check, rebuild, write_query_id
from slackwater.diagnose.checks.common.settings import PARTITIONS, PINNED
from slackwater.diagnose.checks.sink import is_query, only_other_application

_UUID = re.compile(r"[0-9a-fA-F]{1,8}(-[0-9a-fA-F]{1,4}){3}-[0-9a-fA-F]{1,12}")
"""What Java's ``UUID.fromString`` accepts."""


@check("SW-LOG-013", Severity.STOP, risk="stuck", goal="resume")
def metadata_malformed(facts: Facts) -> Findings:
    """The file metadata has no query id that Spark can parse.

    Condition: the file `metadata` is empty, is not JSON, or its id is not a UUID.
    Effect: Spark refuses to start the query.
    How to confirm: `slackwater inspect LOCATION` lists the damage; read the file.
    Remedy: write the file again with the query id, as the finding shows. Besides the ledger, the driver's log and
    progress events have the id.
    Safety: yes, with the old id. Without the file Spark up to 4.1 takes a new id, and a sink accepts an
    interrupted batch twice.
    References: SPARK-55058
    """
    checkpoint = facts.checkpoint
    query_id, damage = checkpoint.report.query_id, checkpoint.damaged("metadata")
    if not checkpoint.has("metadata") or (query_id is not None and _UUID.fullmatch(query_id)):
        return
    known = facts.snapshot.generation.query_id
    sound = known if known is not None and _UUID.fullmatch(known) else None
    found = query_id or (damage.found if damage is not None else "no id")
    how = write_query_id(checkpoint, sound)
    yield Found(
        "the file metadata has no query id that Spark can parse: a start is refused",
        where=f"{facts.checkpoint.location}/metadata",
        expected="a UUID as id",
        found=found,
        advice=how,
        damage=("metadata",),
        facts={"found": found, "how": how},
    )


@check("SW-LOG-012", Severity.STOP, risk="duplicate", goal="resume", also=("STORE-04",))
def metadata_missing(facts: Facts) -> Findings:
    """The file metadata is missing, and the logs have batches.

    Condition: `offsets/` or `commits/` has entries. The missing file `metadata` has the query id; it is a
    checkpoint's oldest file, so cleanup rules remove it first.
    Effect: Spark up to 4.1 silently takes a new id, and a sink that recognises batches by it, such as Delta's
    own, accepts an interrupted batch again. Spark 4.2 and later refuse to start.
    How to confirm: `slackwater inspect LOCATION` shows no query id.
    Remedy: write the file again with the query id, as the finding shows. Besides the ledger, the driver's log and
    progress events have the id. Exclude the checkpoint and the output from cleanup rules.
    Safety: yes, with the old id. With a new id or checkpoint, the sink sees a different query.
    References: SPARK-55058
    """
    checkpoint = facts.checkpoint
    if checkpoint.has("metadata") or not (checkpoint.offset_ids or checkpoint.commit_ids):
        return
    known = facts.snapshot.generation.query_id
    how = write_query_id(checkpoint, known)
    yield Found(
        "the file metadata is missing: Spark up to 4.1 gives the query a new id, so a sink can accept an "
        "interrupted batch twice; Spark 4.2 and later refuse to start",
        where=f"{facts.checkpoint.location}/metadata",
        expected="the id of the query",
        found="nothing",
        advice=how,
        damage=("metadata",),
        facts={"query_id": known, "how": how},
    )


def _planned_ms(entry: OffsetEntry) -> int:
    return entry.metadata.batch_timestamp_ms if entry.metadata is not None else 0


def _difference(recorded: OffsetEntry, now: OffsetEntry) -> tuple[str, str, str] | None:
    ends = {one.source: one.text for one in recorded.offsets}
    for one in now.offsets:
        if ends.get(one.source) != one.text:
            return f"the offset of source {one.source}", str(ends.get(one.source)), str(one.text)
    if recorded.watermark_ms != now.watermark_ms:
        return "the watermark", str(recorded.watermark_ms), str(now.watermark_ms)
    before = recorded.metadata.conf if recorded.metadata is not None else {}
    after = now.metadata.conf if now.metadata is not None else {}
    changed = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    if not changed:
        return None
    return f"the setting {changed[0]}", str(before.get(changed[0])), str(after.get(changed[0]))


@check("SW-LOG-011", Severity.STOP, risk="wrong", goal="rebuild", needs=("history",), at_start=True)
def offsets_entry_edited(facts: Facts) -> Findings:
    """An entry of offsets/ differs from what Spark wrote there.

    Condition: one of the two newest entries of `offsets/`, of a committed batch, has the planning time of the
    ledger's copy, but different offsets, pinned settings or a different watermark.
    Effect: lower offsets read rows twice under a new batch id, which no sink drops; higher offsets skip rows;
    kept state no longer fits. Spark does not report it; `slackwater run FILE` refuses to start.
    How to confirm: `slackwater ledger STREAM --batches 0..` shows the recorded ranges; `slackwater inspect STREAM` the
    checkpoint's.
    Remedy: `slackwater plan rebuild STREAM` builds a checkpoint from the recorded entries; or write the recorded
    value into the file. To read rows again on purpose, plan it: `slackwater plan replay STREAM --from batch:5`.
    Safety: yes; the recorded entry fits output and state. Keep the edit only if both were cut back to the
    same batch.
    References: Structured Streaming Programming Guide, Recovery Semantics after Changes in a Streaming Query
    """
    checkpoint, history = facts.checkpoint, facts.history
    if not isinstance(history, HistoryFacts):
        return
    # A start reads the two newest entries only.
    pairs = zip(checkpoint.offset_ids[:-3:-1], (checkpoint.newest_offset, checkpoint.offset_before), strict=False)
    for batch, now in pairs:
        entry = history.offsets.get(batch)
        # A later time is another plan.
        if now is None or entry is None or batch > checkpoint.committed or _planned_ms(now) > _planned_ms(entry):
            continue
        edited = _difference(entry, now)
        if edited is None:
            continue
        what, recorded, found = edited
        file = f"{checkpoint.location}/offsets/{batch}"
        yield Found(
            f"the entry of batch {batch} in offsets/ was edited: {what} is not what Spark wrote",
            where=file,
            expected=f"{recorded}, as the ledger recorded",
            found=found,
            at_stake=f"all rows from batch {batch} on",
            next=rebuild(facts),
            advice=f"or set {what} in {file} to the recorded value again, and delete the checksum .{batch}.crc next "
            "to it, where there is one",
            facts={"batch": batch, "what": what, "recorded": recorded, "found": found},
        )


@check("SW-LOG-015", Severity.STOP, risk="skip", goal="reset", needs=("sink",), explains=("sink-foreign",))
def only_metadata(facts: Facts) -> Findings:
    """The checkpoint has only the file metadata, and the output has batches.

    Condition: the checkpoint is not recorded and has a query id.
    Effect: the query starts with batch 0. A sink with batch ids, such as Delta's own and the file sink,
    silently skips new batches up to its newest.
    How to confirm: `slackwater inspect LOCATION` shows the id and no batch; list the output's log.
    Remedy: restore `offsets/`, `commits/`, `sources/` and `state/` from a copy of the checkpoint; or give the query
    a new checkpoint and a new output.
    Safety: yes; the output is not changed. Without the file `metadata` Delta's own sink writes all rows
    again.
    References: Delta Lake documentation, Idempotent table writes in foreachBatch
    """
    # Of a recorded stream the number line says what is missing.
    checkpoint, written = facts.checkpoint, facts.marks.written
    query_id = checkpoint.report.query_id
    if facts.recorded or checkpoint.offset_ids or checkpoint.commit_ids or query_id is None:
        return
    if written is not None and written >= 0 and facts.snapshot.output.batches_skipped:
        named = batch_range(0, written)
        yield Found(
            f"the checkpoint has the query id and no batch, and the output has {named}: a start counts from 0, and "
            "the output skips the new batches silently",
            where=facts.checkpoint.location,
            expected=f"batch {written} in offsets/",
            found="only the file metadata",
            at_stake=named,
            advice="restore offsets/, commits/, sources/ and state/ from a copy of the checkpoint, or give the query a "
            "new checkpoint and a new output",
            facts={"query_id": query_id, "written": written},
        )


def _case(facts: Facts, query_id: str, other: str, by: str) -> Found:
    batch, how = facts.marks.next_batch, write_query_id(facts.checkpoint, other)
    return Found(
        f"the query id of the checkpoint is {query_id}, and {by} has {other}: a sink that recognises batches by query "
        "id accepts a rerun batch a second time",
        where=f"{facts.checkpoint.location}/metadata",
        expected=other,
        found=query_id,
        at_stake=f"the rows of batch {batch}, if it has run already",
        advice=f"if the output was written by this checkpoint: {how}",
        facts={"query_id": query_id, "other": other, "by": by, "batch": batch, "how": how},
    )


@check("SW-LOG-014", Severity.WARNING, risk="duplicate", goal="resume", certainty="likely")
def query_id_changed(facts: Facts) -> Findings:
    """The query id is not the one that wrote the output.

    Condition: the query id in the file `metadata` differs from the ledger's record; or batches are committed, and
    the output's log has only transactions of a different query id.
    Effect: Delta's and Iceberg's own sinks recognise a batch by query id and number. Under another id they
    silently accept it again.
    How to confirm: `slackwater inspect LOCATION` shows the query id; look for `txn` in the newest entries of
    `_delta_log`, and for `spark.sql.streaming.queryId` in the snapshots of an Iceberg table.
    Remedy: before the next start, write the recorded id into the file `metadata`, with the command of the finding.
    Safety: yes, if this checkpoint wrote the output. Otherwise give this query its own output.
    References: SPARK-55058; Delta Lake documentation, Idempotent table writes in foreachBatch
    """
    checkpoint = facts.checkpoint
    query_id = checkpoint.report.query_id
    if query_id is None or checkpoint.committed < 0:
        return
    recorded, other = facts.snapshot.generation.query_id, only_other_application(facts)
    if recorded is not None and recorded != query_id:
        yield _case(facts, query_id, recorded, "the ledger")
    elif other is not None and is_query(other[0]):
        yield _case(facts, query_id, other[0], "the output")


@check("SW-LOG-019", Severity.WARNING, risk="wrong", goal="rebuild", certainty="likely")
def setting_changed(facts: Facts) -> Findings:
    """A pinned setting changes from one batch to the next.

    Condition: consecutive entries of `offsets/` differ in a setting that Spark never changes. Spark's offline
    repartition (batches of the same time) and settings added by an upgrade are exempt.
    Effect: the newest entry decides how state is read. With a wrong number of partitions, provider or format
    Spark fails, or looks for keys in the wrong partition.
    How to confirm: compare the second lines of the two files.
    Remedy: unless the edit was intended, restore the entry from a copy of the checkpoint, or write the other
    entries' value into it, and delete the checksum next to it.
    Safety: yes, before the next batch is planned. If a later batch ran with the new value, keep it: its
    state has the new form.
    References: Structured Streaming Programming Guide, "Additional Information", Miscellaneous Notes
    """
    # A plan of Slackwater's may change some: of a recorded stream it is known.
    if facts.recorded:
        return
    planned = [line for line in facts.checkpoint.report.batches if line.settings is not None]
    newest: dict[str, tuple[BatchLine, BatchLine]] = {}
    for earlier, later in pairwise(planned):
        before, after = earlier.settings or {}, later.settings or {}
        for setting in PINNED:
            # An offline repartition (Spark 4.2) copies the entry with its time, and changes this setting.
            repartitioned = setting == PARTITIONS and earlier.timestamp_ms == later.timestamp_ms
            if setting in before and setting in after and before[setting] != after[setting] and not repartitioned:
                newest[setting] = (earlier, later)
    for setting, (earlier, later) in newest.items():
        value, now = (earlier.settings or {})[setting], (later.settings or {})[setting]
        yield Found(
            f"{setting} changes from batch {earlier.id} to batch {later.id}, which Spark does not do: an entry was "
            "edited",
            where=f"{facts.checkpoint.location}/offsets/{later.id}",
            expected=f"{value}, as in offsets/{earlier.id}",
            found=now,
            advice="find out which entry was edited, and restore it from a copy of the checkpoint",
            facts={"batch": later.id, "before": earlier.id, "setting": setting, "value": value, "now": now},
        )
