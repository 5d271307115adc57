"""Files of the planned batch do not exist.

What it finds: the next batch is planned with files that the log of its source lists and that are not there.
Why it matters: Spark reads the batch without them, commits it without an error, and never reads them later: they count
as read.
How to confirm: `slackwater inspect STREAM` shows the planned batch; look for the files that the finding names.
What to do: restore the files under the same paths before anything starts.
Is the remedy safe: yes, if they are restored with their content. A start with missing files cannot be repaired by
restoring them later; only a backfill reads them then. `ignoreMissingFiles=false` does not prevent the loss.
References: SPARK-17599; Structured Streaming Programming Guide, "Input Sources"
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts, Unknown
from slackwater.core.finding import Severity
from slackwater.core.units import counted
from slackwater.diagnose.checks.common.check import Check


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


def find(facts: Facts) -> Iterator[Missing]:
    """The sources of which a planned file does not exist."""
    for source in facts.sources:
        missing = source.missing_files
        if not isinstance(missing, Unknown) and missing:
            yield Missing(source.name, facts.marks.next_batch, missing[0], len(missing))


CHECK = Check(
    "SW-FSRC-003",
    Severity.STOP,
    find=find,
    doc=__doc__,
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
