"""A source file was changed after it had been read, or planned.

What it finds: files that the log of a source lists have another modification time than the log recorded.
Why it matters: Spark knows a file by its path only. What is added to a file that was read is never read; a planned
batch reads the new content, which may differ from what an interrupted attempt has written.
How to confirm: compare the times that the finding names; `slackwater inspect STREAM` shows the newest entry of the log.
What to do: write the new rows to files with new names; the next batch reads them. Of a planned batch restore the old
content first.
Is the remedy safe: yes, if the new files have no rows that were read already. To delete the file's line from the log
makes Spark read all of the file again, the old rows too.
References: Structured Streaming Programming Guide, "Input Sources"
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts, Unknown
from slackwater.core.finding import Severity
from slackwater.core.units import counted, utc_text
from slackwater.diagnose.checks.common.check import Check


class Changed(NamedTuple):
    """A source, the first changed file, how many there are, the recorded time, and the time that it has now."""

    source: str
    file: str
    files: int
    recorded: str
    now: str

    @property
    def counted(self) -> str:
        """How many, in words."""
        return counted(self.files, "file")


def find(facts: Facts) -> Iterator[Changed]:
    """The sources with files that are newer than their log says."""
    for source in facts.sources:
        changed = source.changed_files
        if isinstance(changed, Unknown) or not changed:
            continue
        first = changed[0]
        yield Changed(source.name, first.path, len(changed), utc_text(first.read_ms), utc_text(first.found_ms))


CHECK = Check(
    "SW-FSRC-005",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="source {it.source} does not read {it.counted} again: the content changed after it was listed",
    risk="loss",
    goal="backfill",
    certainty="likely",
    where="{it.file}",
    expected="a file last written at {it.recorded}",
    found="one last written at {it.now}",
    at_stake="the new rows of {it.counted}",
    advice="write the new rows to files with new names; the next batch reads them",
)
