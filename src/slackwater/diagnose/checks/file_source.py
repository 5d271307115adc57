"""File sources, and their logs of the files that they have read."""

from collections.abc import Sequence

from slackwater.core.checkpoint import holes
from slackwater.core.escaping import quoted
from slackwater.core.facts import Facts, Severity, SourceFacts, Unknown
from slackwater.core.units import counted, utc_text
from slackwater.diagnose.checks.common.check import Findings, Found, check, rebuild, strays_in_sources
from slackwater.sources import kind_of


@check("SW-FSRC-005", Severity.WARNING, risk="loss", goal="backfill", certainty="likely", at_start=True)
def file_changed(facts: Facts) -> Findings:
    """A source file was changed after it had been read, or planned.

    Condition: files in a source's log have a different modification time or size than when they were read. A start
    checks the newest ten entries.
    Effect: Spark knows a file only by its path. Rows added later are never read; a planned batch reads the new
    content, which may differ from an interrupted attempt's rows.
    How to confirm: compare the times in the finding; `slackwater inspect STREAM` shows the newest entry of the log.
    Remedy: write new rows to files with new names; the next batch reads them. For a planned batch, first restore
    the old content.
    Safety: yes, if the new files repeat no rows. Without its line in the log, the whole file is read again.
    References: Structured Streaming Programming Guide, "Input Sources"
    """
    for source in facts.sources:
        changed = source.changed_files
        if isinstance(changed, Unknown) or not changed:
            continue
        first = changed[0]
        files = len(changed)
        sizes = ("", "")
        if first.read_bytes != first.found_bytes:
            sizes = (f", {first.read_bytes} bytes", f", {first.found_bytes} bytes")
        recorded, now = utc_text(first.read_ms) + sizes[0], utc_text(first.found_ms) + sizes[1]
        in_words = counted(files, "file")
        yield Found(
            f"source {source.name} does not read {in_words} again: the content changed after it was listed",
            where=first.path,
            expected=f"a file last written at {recorded}",
            found=f"one last written at {now}",
            at_stake=f"the new rows of {in_words}",
            advice="write the new rows to files with new names; the next batch reads them",
            facts={"source": source.name, "file": first.path, "files": files, "recorded": recorded, "now": now},
        )


@check("SW-FSRC-006", Severity.WARNING, risk="loss", goal="backfill", certainty="likely")
def file_too_old(facts: Facts) -> Findings:
    """Files that were never read are too old for their source.

    Condition: unread files in a source's folder are older than its newest read file by more than `maxFileAge` (7
    days).
    Effect: the source skips them silently at every start.
    How to confirm: compare the file's time in the finding with the newest entry in `slackwater inspect STREAM`.
    Remedy: give the files a new modification time, for example with `touch`; the next batch reads them.
    Safety: yes, as no batch has read them. Rows behind the watermark are still dropped. A larger
    `maxFileAge` also helps, from the next start on.
    References: Structured Streaming Programming Guide, "Input Sources", option maxFileAge
    """
    for source in facts.sources:
        files = source.too_old_files
        if not isinstance(files, Unknown) and files:
            file = files[0]
            word, in_words = quoted(file), counted(len(files), "file")
            yield Found(
                f"source {source.name} leaves out {in_words} silently: never read, and too old for it",
                where=file,
                expected="a file within maxFileAge of the newest one that was read, or one that was read",
                found="an older one that was not",
                at_stake=f"the rows of {in_words}",
                advice=f"give each of them a new time, and the next batch reads them: touch {word}",
                facts={"source": source.name, "file": file, "files": len(files), "word": word},
            )


@check("SW-FSRC-009", Severity.INFO, risk="none", goal="resume", needs=("read-files",))
def files_removed(facts: Facts) -> Findings:
    """Files that were read do not exist any more.

    Condition: files of finished batches were removed or archived, by the option `cleanSource` or another program.
    Effect: a start does not need them. A replay, rebuild or reset lacks their rows; after `cleanSource=delete`
    a reset loses all history.
    How to confirm: look for the files in the finding, and for `sourceArchiveDir` in the query.
    Remedy: nothing for a start. Before a replay or rebuild, copy archived files back; `slackwater plan rebuild
    STREAM` shows the files that it needs.
    Safety: yes, if their content is unchanged: the source skips listed files.
    References: Structured Streaming Programming Guide, "Input Sources"
    """
    for source in facts.sources:
        removed = source.removed_files
        if not isinstance(removed, Unknown) and removed:
            file = removed[-1]
            files = len(removed)
            in_words = counted(files, "file")
            yield Found(
                f"source {source.name} has read {in_words} missing now: those batches cannot be processed again",
                where=file,
                expected=f"the file, as sources/{source.name} lists it",
                found="no file",
                advice="before a replay or a rebuild restore the files under the same paths",
                facts={"source": source.name, "file": file, "files": files},
            )


@check("SW-FSRC-010", Severity.WARNING, risk="loss", goal="backfill")
def output_read_in_part(facts: Facts) -> Findings:
    """The source reads the output of a file sink that hides files.

    Condition: a file source reads the output of Spark's file sink, whose log lists files under a different path, as
    after a move.
    Effect: the source silently misses these files.
    How to confirm: compare the addresses in the output's log with the folder.
    Remedy: correct the output's log, as `slackwater explain SW-MOVE-003` describes. The next batch then reads the
    missed files.
    Safety: yes, while no stream writes the output. Without the log, the source also reads files of
    interrupted batches.
    References: Structured Streaming Programming Guide, "Input Sources"
    """
    for source in facts.sources:
        for location, elsewhere in () if isinstance(source.outputs, Unknown) else source.outputs:
            if elsewhere:
                folder = min(elsewhere)
                files = sum(elsewhere.values())
                in_words = counted(files, "file")
                yield Found(
                    f"source {source.name} reads the output of a file sink whose log lists {in_words} in a "
                    "different place: these rows are not read",
                    where=location,
                    expected=f"files below {location}",
                    found=f"files below {folder}",
                    at_stake=f"the rows of {in_words}",
                    advice=f"stop the stream that writes {location}, and replace {folder} by its address in every "
                    "file of its log",
                    facts={"source": source.name, "output": location, "folder": folder, "files": files},
                )


@check(
    "SW-FSRC-003",
    Severity.STOP,
    risk="loss",
    goal="resume",
    needs=("source-files",),
    explains=("source-files-missing",),
)
def planned_file_missing(facts: Facts) -> Findings:
    """Files of the planned batch do not exist.

    Condition: files of the next, planned batch do not exist.
    Effect: Spark commits the batch without them, and never reads them later.
    How to confirm: `slackwater inspect STREAM` shows the planned batch; look for the files in the finding.
    Remedy: restore the files under their paths before the next start.
    Safety: yes, if their content is unchanged. After a start only a backfill can read them;
    `ignoreMissingFiles=false` does not prevent the loss.
    References: SPARK-17599; Structured Streaming Programming Guide, "Input Sources"
    """
    for source in facts.sources:
        missing = source.missing_files
        if not isinstance(missing, Unknown) and missing:
            file = missing[0]
            files = len(missing)
            in_words = counted(files, "file")
            yield Found(
                f"batch {facts.marks.next_batch} is planned with {in_words} missing in source {source.name}: a start "
                "would commit it without these rows, silently",
                where=file,
                expected=f"the file, as sources/{source.name} lists it",
                found="no file",
                at_stake=f"the rows of {in_words}",
                advice="restore the files under the same paths, and start then",
                facts={"source": source.name, "batch": facts.marks.next_batch, "file": file, "files": files},
            )


def last_entry(offset: str | None) -> int | None:
    kind = kind_of(offset, {})
    return kind.cut_entry(offset) if kind.reads_files and offset is not None else None


def range_of_newest(facts: Facts, source: SourceFacts) -> range:
    """Entries of the newest batch in ``offsets/``: Spark plans it again at each start."""
    before = facts.checkpoint.offset_before
    starts = {one.source: one.text for one in before.offsets} if before is not None else {}
    first, last = last_entry(starts.get(source.name)), last_entry(source.end)
    if last is None:
        return range(0)
    return range((-1 if first is None else first) + 1, last + 1)


def entries_text(runs: Sequence[range]) -> str:
    """ "entry 5", "entries 5 to 7", "entries 5, 9 to 11"."""
    shown = ", ".join(str(run[0]) if run[0] == run[-1] else f"{run[0]} to {run[-1]}" for run in runs)
    return f"entry {shown}" if shown.isdigit() else f"entries {shown}"


@check("SW-FSRC-013", Severity.WARNING, risk="wrong", goal="rebuild", certainty="likely")
def entries_differ(facts: Facts) -> Findings:
    """Two entries of a file source's log list different files for the same number.

    Condition: an older entry of `sources/N` and the newest compacted entry list different files or times.
    Compaction copies every line, so an entry was edited or copied.
    Effect: Spark uses the compacted entry: a file missing there is read twice, a file wrongly listed never.
    Only a rollback reads the older entry.
    How to confirm: compare the lines of the two files that have the same `batchId`.
    Remedy: restore the wrong entry from a copy of the checkpoint; the older entry shows the files as read.
    Safety: yes; the comparison changes nothing. Keep a copy of the replaced entry.
    References: docs/format.md
    """
    for source in facts.sources:
        if source.log is not None and source.log.differing:
            path = source.log.differing[0]
            newest = f"{path.rpartition('/')[0]}/{max(source.compacted)}.compact"
            count = len(source.log.differing)
            entries = counted(count, "older entry", "older entries")
            yield Found(
                f"{path} lists other files than {newest} has for it ({entries} in all): one of them was edited or "
                "copied, and files may be read twice or never",
                where=f"{facts.checkpoint.location}/{path}",
                expected=f"the lines of {newest}",
                found="other files, times or numbers",
                advice="compare both with a copy of the checkpoint, and restore the one that is wrong",
                facts={"path": path, "compacted": newest, "entries": entries},
            )


# The source writes its entry before the plan in offsets/, so that a crash in between leaves one entry without a batch.
_LEFT_BY_A_CRASH = 1


@check("SW-FSRC-011", Severity.WARNING, risk="duplicate", goal="rebuild", certainty="likely")
def log_ahead(facts: Facts) -> Findings:
    """The log of a file source is ahead of the batches.

    Condition: `sources/N` has two or more entries after the end of the newest batch. A crash leaves at most one.
    Effect: the batch logs were cut back or restored without the source's log. The next batch reads all these
    entries under a used id: an output with batch ids skips them silently, any other gets them twice.
    How to confirm: compare the last entry of the source with the newest batch in `slackwater inspect STREAM`.
    Remedy: `slackwater plan rebuild STREAM`. It continues after the newest written batch.
    Safety: yes; the output is not touched. By hand, cut offsets, commits, source log and output back
    together.
    References: Structured Streaming Programming Guide, "Recovery Semantics after Changes in a Streaming Query"
    """
    if not facts.checkpoint.offset_ids:
        return
    for source in facts.sources:
        last = last_entry(source.end)
        if last is not None and source.entries and source.entries[-1] - last > _LEFT_BY_A_CRASH:
            newest = source.entries[-1]
            batch = facts.checkpoint.planned + 1
            unread = newest - last
            yield Found(
                f"sources/{source.name} has {unread} entries after entry {last}, at which the newest batch ends: "
                f"batch {batch} would read them all, though older batches may have read them",
                where=f"{facts.checkpoint.location}/sources/{source.name}",
                expected=f"at most entry {last} and one more",
                found=f"entry {newest}",
                at_stake=f"the files of {unread} entries",
                advice="if offsets/ and commits/ were restored from an older copy, also restore sources/ and the "
                "output from it",
                next=rebuild(facts),
                facts={"source": source.name, "planned": last, "newest": newest, "batch": batch},
            )


@check("SW-FSRC-001", Severity.STOP, risk="stuck", goal="rebuild")
def log_entry_missing(facts: Facts) -> Findings:
    """The log of a file source lacks entries of the newest batch.

    Condition: the newest batch in `offsets/` reads entries that `sources/N` does not have.
    Effect: Spark fails at each start with "batch M doesn't exist"; M is the entry's number, not a batch id.
    How to confirm: `slackwater inspect STREAM` shows the first and the last entry of the log.
    Remedy: `slackwater plan rebuild STREAM` writes a checkpoint with the log from the ledger's copy.
    Safety: yes; Spark wrote these entries. Without `sources/N` Spark also fails; a new checkpoint reads
    every file twice.
    References: Structured Streaming Programming Guide, "Input Sources"
    """
    for source in facts.sources:
        newest = range_of_newest(facts, source)
        # A compacted entry has the files of all entries before it.
        first = max((newest.start, *(compacted + 1 for compacted in source.compacted)))
        missing = tuple(holes(first, newest.stop - 1, source.entries))
        if missing:
            ends = tuple(number for run in missing for number in (run[0], run[-1]))
            entries = entries_text(missing)
            yield Found(
                f"batch {facts.checkpoint.planned} reads {entries} of sources/{source.name}, which the log does not "
                f'have: a start fails with "batch {ends[0]} doesn\'t exist"',
                where=f"{facts.checkpoint.location}/sources/{source.name}",
                expected=entries,
                found="nothing",
                advice=f"restore {facts.checkpoint.location}/sources/{source.name} from a copy of the checkpoint",
                next=rebuild(facts),
                damage=(f"sources/{source.name}/{number}" for number in ends),
                facts={
                    "source": source.name,
                    "entries": entries,
                    "first": ends[0],
                    "batch": facts.checkpoint.planned,
                    "ends": ends,
                },
            )


@check("SW-FSRC-002", Severity.STOP, risk="stuck", goal="rebuild")
def log_gap(facts: Facts) -> Findings:
    """The log of a file source has a gap after its newest compacted entry.

    Condition: entries of `sources/N` are missing between the newest compacted entry, or the beginning, and the
    newest batch.
    Effect: Spark fails at each start with "M.compact doesn't exist".
    How to confirm: `slackwater inspect STREAM` shows the first and the last entry of the log.
    Remedy: `slackwater plan rebuild STREAM` writes a checkpoint with the log from the ledger's copy.
    Safety: yes; Spark wrote these entries. With an empty replacement file Spark starts, and reads its files
    twice.
    References: Structured Streaming Programming Guide, "Input Sources"
    """
    strays = dict(strays_in_sources(facts))
    for source in facts.sources:
        if last_entry(source.end) is None or not source.entries or f"sources/{source.name}" in strays:
            continue
        newest, last = range_of_newest(facts, source), source.entries[-1] - 1
        first = max(source.compacted, default=-1) + 1
        gap = (
            *holes(first, min(newest.start - 1, last), source.entries),
            *holes(max(first, newest.stop), last, source.entries),
        )
        if gap:
            entries = entries_text(gap)
            yield Found(
                f"the log sources/{source.name} lacks {entries}, after which no compacted entry follows: a start "
                "fails, because Spark reads the whole log",
                where=f"{facts.checkpoint.location}/sources/{source.name}",
                expected=f"{entries}, or a later compacted entry",
                found="nothing",
                advice=f"restore {facts.checkpoint.location}/sources/{source.name} from a copy of the checkpoint",
                next=rebuild(facts),
                facts={"source": source.name, "entries": entries, "after": gap[0][0] - 1},
            )


@check("SW-FSRC-012", Severity.WARNING, risk="none", goal="resume")
def old_entry_missing(facts: Facts) -> Findings:
    """An older entry of the log of a file source is missing.

    Condition: in a checkpoint that is not recorded, `sources/N` has a gap before its newest compacted entry.
    Effect: Spark starts, as the compacted entry lists the files. A rebuild or replay of this batch fails.
    How to confirm: list `sources/N` below the checkpoint: Spark removes the oldest entries first.
    Remedy: nothing for a start. Find the program that removes files from the checkpoint.
    Safety: yes; nothing is changed.
    References: Structured Streaming Programming Guide, "Input Sources"
    """
    for source in facts.sources:
        if facts.recorded or last_entry(source.end) is None or not source.compacted:
            continue
        gap = tuple(holes(source.entries[0], max(source.compacted) - 1, source.entries))
        if gap:
            entries = entries_text(gap)
            yield Found(
                f"the log sources/{source.name} lacks {entries} below newer entries: a start ignores the gap, but "
                "a rebuild or replay of its batch is not possible",
                where=f"{facts.checkpoint.location}/sources/{source.name}",
                expected=entries,
                found="nothing",
                advice="find out what removes files from the checkpoint",
                facts={"source": source.name, "entries": entries},
            )
