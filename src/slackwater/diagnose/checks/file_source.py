"""The files that a file source reads."""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.escaping import quoted
from slackwater.core.facts import Facts, Unknown
from slackwater.core.finding import Severity
from slackwater.core.units import counted, utc_text
from slackwater.diagnose.checks.common.check import Check, Found


@Check[Facts]("SW-FSRC-005", Severity.WARNING, risk="loss", goal="backfill", certainty="likely", at_start=True)
def file_changed(facts: Facts) -> Iterator[Found]:
    """A source file was changed after it had been read, or planned.

    What it finds: files that the log of a source lists were written after the time that the log has of them, or have
    another size than they had when they were read. A start compares those of the newest ten entries, and says it.
    Why it matters: Spark knows a file by its path only. What is added to a file that was read is never read; a planned
    batch reads the new content, which may differ from what an interrupted attempt has written.
    How to confirm: compare the times that the finding names; `slackwater inspect STREAM` shows the newest entry of the
    log.
    What to do: write the new rows to files with new names; the next batch reads them. Of a planned batch restore the
    old content first.
    Is the remedy safe: yes, if the new files have no rows that were read already. To delete the file's line from the
    log makes Spark read all of the file again, the old rows too.
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

    What it finds: files next to those that a source has read, which it has not read, and which are older than the
    newest file that it has read by more than `maxFileAge` (7 days).
    Why it matters: the source leaves them out silently, now and at every later start.
    How to confirm: compare the time of the file that the finding names with the newest entry that `slackwater inspect
    STREAM` shows.
    What to do: give the files a new modification time, for example with `touch`; the next batch reads them.
    Is the remedy safe: yes, as no batch has read them. Rows whose event time is behind the watermark are still dropped
    as late. A larger `maxFileAge` of the source helps too, from the next start on.
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

    What it finds: the log of a file source lists files of finished batches that are not in their folders. The option
    `cleanSource` removes or archives them, and so do other programs.
    Why it matters: a start does not need them. A replay, a rebuild or a reset that reads these batches again lacks
    their rows, and a reset after `cleanSource=delete` loses all history.
    How to confirm: look for the files that the finding names, and for `sourceArchiveDir` in the query.
    What to do: nothing for a start. Before a replay or a rebuild copy archived files back under the same paths;
    `slackwater plan rebuild STREAM` shows which files it would need.
    Is the remedy safe: yes, if the files are copied back with their content: the source does not read them as new ones,
    because its log lists them.
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

    What it finds: the folder of a file source is the output of Spark's file sink, and the log of that output lists
    files under another path, as after a move.
    Why it matters: a source reads such a folder by its log alone, and leaves out what the log lists elsewhere: the
    stream silently misses the rows of these files.
    How to confirm: compare the addresses in the log of the output with the path of the folder.
    What to do: correct the log of the output first, as `slackwater explain SW-MOVE-003` describes. The next batch then
    reads the files that it has not read.
    Is the remedy safe: yes, while the stream that writes the output is stopped. To delete the log lets the source read
    the files of interrupted batches as well.
    References: Structured Streaming Programming Guide, "Input Sources"
    """
    for source in facts.sources:
        for output in () if isinstance(source.outputs, Unknown) else source.outputs:
            if output.elsewhere:
                folder = min(output.elsewhere)
                files = sum(output.elsewhere.values())
                in_words = counted(files, "file")
                yield Found(
                    f"source {source.name} reads the output of a file sink whose log lists {in_words} in another "
                    "place: these rows are not read",
                    where=output.location,
                    expected=f"files below {output.location}",
                    found=f"files below {folder}",
                    at_stake=f"the rows of {in_words}",
                    advice=(
                        f"stop the stream that writes {output.location}, and replace {folder} by its address in every "
                        "file of its log"
                    ),
                    facts={"source": source.name, "output": output.location, "folder": folder, "files": files},
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

    What it finds: the next batch is planned with files that the log of its source lists and that are not there.
    Why it matters: Spark reads the batch without them, commits it without an error, and never reads them later: they
    count as read.
    How to confirm: `slackwater inspect STREAM` shows the planned batch; look for the files that the finding names.
    What to do: restore the files under the same paths before anything starts.
    Is the remedy safe: yes, if they are restored with their content. A start with missing files cannot be repaired by
    restoring them later; only a backfill reads them then. `ignoreMissingFiles=false` does not prevent the loss.
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
