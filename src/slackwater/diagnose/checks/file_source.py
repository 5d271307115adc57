"""The files that a file source reads."""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.escaping import quoted
from slackwater.core.facts import Facts, Severity, Unknown
from slackwater.core.units import counted, utc_text
from slackwater.diagnose.checks.common.check import Check, Found


@Check[Facts]("SW-FSRC-005", Severity.WARNING, risk="loss", goal="backfill", certainty="likely", at_start=True)
def file_changed(facts: Facts) -> Iterator[Found]:
    """A source file was changed after it had been read, or planned.

    Condition: files in a source's log have another modification time or size than when they were read. A start
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


@Check[Facts]("SW-FSRC-006", Severity.WARNING, risk="loss", goal="backfill", certainty="likely")
def file_too_old(facts: Facts) -> Iterator[Found]:
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


@Check[Facts](
    "SW-FSRC-009",
    Severity.INFO,
    risk="none",
    goal="resume",
    needs=("read-files",),
)
def files_removed(facts: Facts) -> Iterator[Found]:
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


@Check[Facts]("SW-FSRC-010", Severity.WARNING, risk="loss", goal="backfill")
def output_read_in_part(facts: Facts) -> Iterator[Found]:
    """The source reads the output of a file sink that hides files.

    Condition: a file source reads the output of Spark's file sink, whose log lists files under another path, as
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
                    f"source {source.name} reads the output of a file sink whose log lists {in_words} in another "
                    "place: these rows are not read",
                    where=location,
                    expected=f"files below {location}",
                    found=f"files below {folder}",
                    at_stake=f"the rows of {in_words}",
                    advice=(
                        f"stop the stream that writes {location}, and replace {folder} by its address in every "
                        "file of its log"
                    ),
                    facts={"source": source.name, "output": location, "folder": folder, "files": files},
                )


@Check[Facts](
    "SW-FSRC-003",
    Severity.STOP,
    risk="loss",
    goal="resume",
    needs=("source-files",),
    explains=("source-files-missing",),
)
def planned_file_missing(facts: Facts) -> Iterator[Found]:
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
