"""The file ``metadata``, and what Spark wrote into entries of ``offsets/``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from slackwater.core.checkpoint import BatchLine
from slackwater.core.checkpoint_logs import OffsetEntry
from slackwater.core.facts import Facts, HistoryFacts
from slackwater.core.finding import Severity
from slackwater.core.units import batch_range
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.commands import rebuild, write_query_id
from slackwater.diagnose.checks.common.settings import PARTITIONS, PINNED
from slackwater.diagnose.checks.sink import only_other_application

_UUID = re.compile(r"[0-9a-fA-F]{1,8}(-[0-9a-fA-F]{1,4}){3}-[0-9a-fA-F]{1,12}")
"""What Java's ``UUID.fromString`` accepts."""


class BadId(NamedTuple):
    """What the file has, and what writes it again."""

    found: str
    how: str


@Check(
    "SW-LOG-013",
    Severity.STOP,
    text="the file metadata has no query id that Spark can parse: a start is refused",
    risk="stuck",
    goal="resume",
    where="{facts.checkpoint.location}/metadata",
    expected="a UUID as id",
    found="{it.found}",
    advice="{it.how}",
    damage=lambda _: ("metadata",),
)
def metadata_malformed(facts: Facts) -> Iterator[BadId]:
    """The file metadata has no query id that Spark can parse.

    What it finds: the file `metadata` is empty, no JSON, or its id is no UUID.
    Why it matters: Spark refuses to start the query, before it reads anything else.
    How to confirm: `slackwater inspect LOCATION` lists the damage; read the file.
    What to do: write the file again with the id of the query, as the finding shows it. The ledger has the id; else the
    driver's log and the query's progress events have it.
    Is the remedy safe: yes, with the id that the query had. To delete the file is not: Spark up to 4.1 then takes a new
    id, by which a sink accepts an interrupted batch twice.
    References: SPARK-55058
    """
    checkpoint = facts.checkpoint
    query_id, damage = checkpoint.report.query_id, checkpoint.damaged("metadata")
    if not checkpoint.has("metadata") or (query_id is not None and _UUID.fullmatch(query_id)):
        return
    known = facts.snapshot.generation.query_id
    sound = known if known is not None and _UUID.fullmatch(known) else None
    yield BadId(query_id or (damage.found if damage is not None else "no id"), write_query_id(checkpoint, sound))


class NoId(NamedTuple):
    """The id that the query had, where it is recorded, and what writes it."""

    query_id: str | None
    how: str


@Check(
    "SW-LOG-012",
    Severity.STOP,
    text="the file metadata is missing: Spark up to 4.1 gives the query a new id, by which a sink takes an interrupted "
    "batch twice, and from 4.2 on refuses to start",
    risk="duplicate",
    goal="resume",
    where="{facts.checkpoint.location}/metadata",
    expected="the id of the query",
    found="nothing",
    advice="{it.how}",
    also=("STORE-04",),
    damage=lambda _: ("metadata",),
)
def metadata_missing(facts: Facts) -> Iterator[NoId]:
    """The file metadata is missing, and the logs have batches.

    What it finds: the checkpoint has entries in `offsets/` or `commits/`, and no file `metadata`, which has the id of
    the query. It is the oldest file of a checkpoint: a rule of the store that removes old files removes it first.
    Why it matters: Spark up to 4.1 silently gives the query a new id. A sink that knows batches by that id, as Delta's
    own does, accepts an interrupted batch a second time. From 4.2 on Spark refuses to start.
    How to confirm: `slackwater inspect LOCATION` shows no query id.
    What to do: write the file again with the id of the query, as the finding shows it. The ledger has the id; else the
    driver's log and the query's progress events have it. Exclude the checkpoint and the output from every lifecycle
    rule and cleaner of temporary files.
    Is the remedy safe: yes, with the id that the query had. A new id, or a new checkpoint, is not: the sink takes the
    query for another.
    References: SPARK-55058
    """
    checkpoint = facts.checkpoint
    if checkpoint.has("metadata") or not (checkpoint.offset_ids or checkpoint.commit_ids):
        return
    known = facts.snapshot.generation.query_id
    yield NoId(known, write_query_id(checkpoint, known))


class Edited(NamedTuple):
    """The batch, what of it was changed, and both values."""

    batch: int
    what: str
    recorded: str
    found: str


def _planned_ms(entry: OffsetEntry) -> int:
    return entry.metadata.batch_timestamp_ms if entry.metadata is not None else 0


def _difference(batch: int, recorded: OffsetEntry, now: OffsetEntry) -> Edited | None:
    """The first difference that changes what a start does."""
    ends = {one.source: one.text for one in recorded.offsets}
    for one in now.offsets:
        if ends.get(one.source) != one.text:
            return Edited(batch, f"the offset of source {one.source}", str(ends.get(one.source)), str(one.text))
    if recorded.watermark_ms != now.watermark_ms:
        return Edited(batch, "the watermark", str(recorded.watermark_ms), str(now.watermark_ms))
    before = recorded.metadata.conf if recorded.metadata is not None else {}
    after = now.metadata.conf if now.metadata is not None else {}
    changed = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    if not changed:
        return None
    return Edited(batch, f"the setting {changed[0]}", str(before.get(changed[0])), str(after.get(changed[0])))


@Check(
    "SW-LOG-011",
    Severity.STOP,
    text="the entry of batch {it.batch} in offsets/ was edited: {it.what} is not what Spark wrote",
    risk="wrong",
    goal="rebuild",
    where="{facts.checkpoint.location}/offsets/{it.batch}",
    expected="{it.recorded}, as the ledger recorded",
    found="{it.found}",
    at_stake="all rows from batch {it.batch} on",
    advice="or set {it.what} in {facts.checkpoint.location}/offsets/{it.batch} to the recorded value again, and delete "
    "the checksum .{it.batch}.crc next to it, where there is one",
    needs=("history",),
    next=rebuild,
    at_start=True,
)
def offsets_entry_edited(facts: Facts) -> Iterator[Edited]:
    """An entry of offsets/ differs from what Spark wrote there.

    What it finds: one of the two newest entries of `offsets/`, of a committed batch, has the time of planning that the
    ledger's copy has, and other offsets, another watermark or other pinned settings.
    Why it matters: Spark believes the entry. A lower offset has rows read twice under a new batch id, which no sink
    drops; a higher one leaves rows out; state of a query that keeps some does not fit any more. Spark does not report
    it; `slackwater run FILE` refuses to start.
    How to confirm: `slackwater ledger STREAM --batches 0..` shows the recorded ranges; `slackwater inspect STREAM`
    those of the checkpoint.
    What to do: `slackwater plan rebuild STREAM` builds a checkpoint from the recorded entries; or write the recorded
    value into the file again. If rows are to be read again, plan that: `slackwater plan replay STREAM --from batch:5`.
    Is the remedy safe: yes; the recorded entry is what Spark wrote, and fits output and state. To leave the edit is
    right only if output and state were cut back to the same batch.
    References: Structured Streaming Programming Guide, Recovery Semantics after Changes in a Streaming Query
    """
    # A later time is another plan.
    checkpoint, history = facts.checkpoint, facts.history
    if not isinstance(history, HistoryFacts):
        return
    # A start reads the two newest entries only.
    pairs = zip(checkpoint.offset_ids[:-3:-1], (checkpoint.newest_offset, checkpoint.offset_before), strict=False)
    for batch, now in pairs:
        recorded = history.offsets.get(batch)
        if now is None or recorded is None or batch > checkpoint.committed or _planned_ms(now) > _planned_ms(recorded):
            continue
        edited = _difference(batch, recorded, now)
        if edited is not None:
            yield edited


class OnlyId(NamedTuple):
    """The id of the query, and the newest batch of the output."""

    query_id: str
    written: int

    @property
    def named(self) -> str:
        """The batches that would be skipped, in words."""
        return batch_range(0, self.written)


@Check(
    "SW-LOG-015",
    Severity.STOP,
    text="the checkpoint has the query id and no batch, and the output has {it.named}: a start counts from 0, and the "
    "output skips the new batches silently",
    risk="skip",
    goal="reset",
    where="{facts.checkpoint.location}",
    expected="batch {it.written} in offsets/",
    found="only the file metadata",
    at_stake="{it.named}",
    advice="restore offsets/, commits/, sources/ and state/ from a copy of the checkpoint, or give the query a new "
    "checkpoint and a new output",
    needs=("sink",),
    explains=("sink-foreign",),
)
def only_metadata(facts: Facts) -> Iterator[OnlyId]:
    """The checkpoint has only the file metadata, and the output has batches.

    What it finds: the checkpoint has a query id and no batch, and the output shows batches, of a checkpoint that is not
    recorded.
    Why it matters: The query starts with batch 0 under its old id. A sink that knows batches by their numbers, as
    Delta's own and the file sink do, skips the new batches silently until their numbers pass those that it has.
    How to confirm: `slackwater inspect LOCATION` shows the id and no batch; list the output's log.
    What to do: restore `offsets/`, `commits/`, `sources/` and `state/` from a copy of the checkpoint. For a new
    beginning give the query a new checkpoint and a new output.
    Is the remedy safe: yes; nothing that the output has is changed. To start with only the file `metadata` loses the
    rows of the skipped batches; to delete the file too has Delta's own sink write all rows again.
    References: Delta Lake documentation, Idempotent table writes in foreachBatch
    """
    # Of a recorded stream the number line says what is missing.
    checkpoint, written = facts.checkpoint, facts.marks.written
    query_id = checkpoint.report.query_id
    if facts.recorded or checkpoint.offset_ids or checkpoint.commit_ids or query_id is None:
        return
    if written is not None and written >= 0 and facts.snapshot.output.batches_skipped:
        yield OnlyId(query_id, written)


class OtherId(NamedTuple):
    """The query id of the checkpoint, the other one and where that is from, the next batch, and what writes it."""

    query_id: str
    other: str
    by: str
    batch: int
    how: str


def _case(facts: Facts, query_id: str, other: str, by: str) -> OtherId:
    return OtherId(query_id, other, by, facts.marks.next_batch, write_query_id(facts.checkpoint, other))


@Check(
    "SW-LOG-014",
    Severity.WARNING,
    text="the query id of the checkpoint is {it.query_id}, and {it.by} has {it.other}: a sink that knows batches by "
    "the query id accepts a batch that runs again a second time",
    risk="duplicate",
    goal="resume",
    certainty="likely",
    where="{facts.checkpoint.location}/metadata",
    expected="{it.other}",
    found="{it.query_id}",
    at_stake="the rows of batch {it.batch}, if it has run already",
    advice="if the output was written by this checkpoint: {it.how}",
)
def query_id_changed(facts: Facts) -> Iterator[OtherId]:
    """The query id is not the one that wrote the output.

    What it finds: the file `metadata` has another query id than the ledger recorded for this checkpoint; or the only
    transactions in the log of the output are those of another query id, and the checkpoint has committed batches.
    Why it matters: Delta's and Iceberg's own sinks know a batch by the query id and the number. Under another id they
    accept a batch that runs again a second time. Spark starts, and reports nothing.
    How to confirm: `slackwater inspect LOCATION` shows the query id; look for `txn` in the newest entries of
    `_delta_log`, and for `spark.sql.streaming.queryId` in the snapshots of an Iceberg table.
    What to do: write the recorded id into the file `metadata`, with the command of the finding, before the next start.
    Is the remedy safe: yes, if the output was written by this checkpoint. Where the output belongs to another query,
    give this one an output of its own.
    References: SPARK-55058; Delta Lake documentation, Idempotent table writes in foreachBatch
    """
    checkpoint = facts.checkpoint
    query_id = checkpoint.report.query_id
    if query_id is None or checkpoint.committed < 0:
        return
    recorded, other = facts.snapshot.generation.query_id, only_other_application(facts)
    if recorded is not None and recorded != query_id:
        yield _case(facts, query_id, recorded, "the ledger")
    elif other is not None and other.is_query:
        yield _case(facts, query_id, other.id, "the output")


class Changed(NamedTuple):
    """The batch, the batch before it, the setting, and both values."""

    batch: int
    before: int
    setting: str
    value: str
    now: str


def _changes(earlier: BatchLine, later: BatchLine) -> Iterator[Changed]:
    before, after = earlier.settings or {}, later.settings or {}
    for setting in PINNED:
        # An offline repartition (Spark 4.2) copies the entry with its time, and changes this setting.
        repartitioned = setting == PARTITIONS and earlier.timestamp_ms == later.timestamp_ms
        if setting in before and setting in after and before[setting] != after[setting] and not repartitioned:
            yield Changed(later.id, earlier.id, setting, before[setting], after[setting])


@Check(
    "SW-LOG-019",
    Severity.WARNING,
    text="{it.setting} changes from batch {it.before} to batch {it.batch}, which Spark does not do: "
    "an entry was edited",
    risk="wrong",
    goal="rebuild",
    certainty="likely",
    where="{facts.checkpoint.location}/offsets/{it.batch}",
    expected="{it.value}, as in offsets/{it.before}",
    found="{it.now}",
    advice="find out which entry was edited, and restore it from a copy of the checkpoint",
)
def setting_changed(facts: Facts) -> Iterator[Changed]:
    """A pinned setting changes from one batch to the next.

    What it finds: two consecutive entries of `offsets/` have different values of a setting that Spark takes from the
    newest entry at each start, so that it never changes. Spark's offline repartition, which changes the number of
    partitions in a batch of the same time, is not found; a setting that only the newer entry has is from an upgrade.
    Why it matters: the newest entry decides how the state is read: with how many partitions, by which provider, in
    which format. With a wrong value Spark fails, or looks for keys where they are not.
    How to confirm: compare the second lines of the two files.
    What to do: if nobody has edited the entry on purpose, restore it from a copy of the checkpoint, or write the value
    of the other entries into it again, and delete the checksum next to it.
    Is the remedy safe: yes, before the next batch is planned: state is then read as it was written. Where a later batch
    has run with the new value, its state has the new form: let it be.
    References: Structured Streaming Programming Guide, "Additional Information", Miscellaneous Notes
    """
    # A plan of Slackwater's may change some: of a recorded stream it is known.
    if facts.recorded:
        return
    planned = [line for line in facts.checkpoint.report.batches if line.settings is not None]
    found = {one.setting: one for earlier, later in pairwise(planned) for one in _changes(earlier, later)}
    yield from found.values()
