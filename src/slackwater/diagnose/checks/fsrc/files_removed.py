"""Files that were read do not exist any more.

What it finds: the log of a file source lists files of finished batches that are not in their folders. The option
`cleanSource` removes or archives them, and so do other programs.
Why it matters: a start does not need them. A replay, a rebuild or a reset that reads these batches again lacks their
rows, and a reset after `cleanSource=delete` loses all history.
How to confirm: look for the files that the finding names, and for `sourceArchiveDir` in the query.
What to do: nothing for a start. Before a replay or a rebuild copy archived files back under the same paths;
`slackwater plan rebuild STREAM` shows which files it would need.
Is the remedy safe: yes, if the files are copied back with their content: the source does not read them as new ones,
because its log lists them.
References: Structured Streaming Programming Guide, "Input Sources"
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts, Unknown
from slackwater.core.finding import Severity
from slackwater.core.units import counted
from slackwater.diagnose.checks.common.check import Check


class Removed(NamedTuple):
    """A source, the newest of the files, and how many there are."""

    source: str
    file: str
    files: int

    @property
    def counted(self) -> str:
        """How many, in words."""
        return counted(self.files, "file")


def find(facts: Facts) -> Iterator[Removed]:
    """The sources with such files."""
    for source in facts.sources:
        removed = source.removed_files
        if not isinstance(removed, Unknown) and removed:
            yield Removed(source.name, removed[-1], len(removed))


CHECK = Check(
    "SW-FSRC-009",
    Severity.INFO,
    find=find,
    doc=__doc__,
    text="source {it.source} has read {it.counted} missing now: those batches cannot be processed again",
    risk="none",
    goal="resume",
    where="{it.file}",
    expected="the file, as sources/{it.source} lists it",
    found="no file",
    advice="before a replay or a rebuild restore the files under the same paths",
    needs=("read-files",),
)
