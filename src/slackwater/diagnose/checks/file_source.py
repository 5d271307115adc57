"""The files that a file source reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.escaping import quoted
from slackwater.core.facts import Facts, Unknown
from slackwater.core.finding import Severity
from slackwater.core.units import counted, utc_text
from slackwater.diagnose.checks.common.check import Check


class Changed(NamedTuple):
    """A source, the first changed file, how many there are, and what was recorded of it and is found now."""

    source: str
    file: str
    files: int
    recorded: str
    now: str

    @property
    def counted(self) -> str:
        """How many, in words."""
        return counted(self.files, "file")


@Check(
    "SW-FSRC-005",
    Severity.WARNING,
    text="source {it.source} does not read {it.counted} again: the content changed after it was listed",
    risk="loss",
    goal="backfill",
    certainty="likely",
    where="{it.file}",
    expected="a file last written at {it.recorded}",
    found="one last written at {it.now}",
    at_stake="the new rows of {it.counted}",
    advice="write the new rows to files with new names; the next batch reads them",
    at_start=True,
)
def file_changed(facts: Facts) -> Iterator[Changed]:
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
        sizes = ("", "")
        if first.read_bytes != first.found_bytes:
            sizes = (f", {first.read_bytes} bytes", f", {first.found_bytes} bytes")
        recorded, now = utc_text(first.read_ms) + sizes[0], utc_text(first.found_ms) + sizes[1]
        yield Changed(source.name, first.path, len(changed), recorded, now)


class TooOld(NamedTuple):
    """A source, the first file that is too old, how many there are, and the file as a word of a shell."""

    source: str
    file: str
    files: int
    word: str

    @property
    def counted(self) -> str:
        """How many, in words."""
        return counted(self.files, "file")


@Check(
    "SW-FSRC-006",
    Severity.WARNING,
    text="source {it.source} leaves out {it.counted} silently: never read, and too old for it",
    risk="loss",
    goal="backfill",
    certainty="likely",
    where="{it.file}",
    expected="a file within maxFileAge of the newest one that was read, or one that was read",
    found="an older one that was not",
    at_stake="the rows of {it.counted}",
    advice="give each of them a new time, and the next batch reads them: touch {it.word}",
)
def file_too_old(facts: Facts) -> Iterator[TooOld]:
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
            yield TooOld(source.name, files[0], len(files), quoted(files[0]))


class Removed(NamedTuple):
    """A source, the newest of the files, and how many there are."""

    source: str
    file: str
    files: int

    @property
    def counted(self) -> str:
        """How many, in words."""
        return counted(self.files, "file")


@Check(
    "SW-FSRC-009",
    Severity.INFO,
    text="source {it.source} has read {it.counted} missing now: those batches cannot be processed again",
    risk="none",
    goal="resume",
    where="{it.file}",
    expected="the file, as sources/{it.source} lists it",
    found="no file",
    advice="before a replay or a rebuild restore the files under the same paths",
    needs=("read-files",),
)
def files_removed(facts: Facts) -> Iterator[Removed]:
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
            yield Removed(source.name, removed[-1], len(removed))


class Hidden(NamedTuple):
    """A source, the output that it reads, and the first folder elsewhere with the number of all files elsewhere."""

    source: str
    output: str
    folder: str
    files: int

    @property
    def counted(self) -> str:
        """How many, in words."""
        return counted(self.files, "file")


@Check(
    "SW-FSRC-010",
    Severity.WARNING,
    text="source {it.source} reads the output of a file sink whose log lists {it.counted} in another place: "
    "these rows are not read",
    risk="loss",
    goal="backfill",
    where="{it.output}",
    expected="files below {it.output}",
    found="files below {it.folder}",
    at_stake="the rows of {it.counted}",
    advice="stop the stream that writes {it.output}, and replace {it.folder} by its address in every file of its log",
)
def output_read_in_part(facts: Facts) -> Iterator[Hidden]:
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
                yield Hidden(source.name, output.location, min(output.elsewhere), sum(output.elsewhere.values()))


class Missing(NamedTuple):
    """A source, the planned batch, the first missing file, and how many are missing."""

    source: str
    batch: int
    file: str
    files: int

    @property
    def counted(self) -> str:
        """How many, in words."""
        return counted(self.files, "file")


@Check(
    "SW-FSRC-003",
    Severity.STOP,
    text="batch {it.batch} is planned with {it.counted} missing in source {it.source}: "
    "a start would commit it without these rows, silently",
    risk="loss",
    goal="resume",
    where="{it.file}",
    expected="the file, as sources/{it.source} lists it",
    found="no file",
    at_stake="the rows of {it.counted}",
    advice="restore the files under the same paths, and start then",
    needs=("source-files",),
    explains=("source-files-missing",),
)
def planned_file_missing(facts: Facts) -> Iterator[Missing]:
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
            yield Missing(source.name, facts.marks.next_batch, missing[0], len(missing))
