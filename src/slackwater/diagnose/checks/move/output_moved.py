"""The log of the output lists files under another path.

What it finds: the output's own log lists data files by absolute addresses, and some are not below the place where the
output is: it was moved, copied or is reached under another scheme or host.
Why it matters: Readers that use the log leave out every file that is not below the directory: they silently see only
what was written since. The stream continues without an error.
How to confirm: compare the addresses in the files of the output's log with its directory.
What to do: move the output back to the address in its log; or make a copy of the log, and replace the old address by
the new one in all its files, leaving the version lines as they are.
Is the remedy safe: yes, while no query writes to the output. To delete the log is not: readers then also see the
files of interrupted batches, and the sink fails at its next compaction.
References: Structured Streaming Programming Guide, Output Sinks
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts, SinkFacts
from slackwater.core.finding import Severity
from slackwater.core.units import counted
from slackwater.diagnose.checks.common.check import Check


class Moved(NamedTuple):
    """An address in the log, how many files it lists there, and where the output is."""

    folder: str
    files: int
    location: str

    @property
    def counted(self) -> str:
        """How many, in words."""
        return counted(self.files, "file")


def find(facts: Facts) -> Iterator[Moved]:
    """The addresses that are not below the output, each with its files."""
    if isinstance(facts.sink, SinkFacts):
        location = facts.snapshot.output.location or ""
        for folder, files in sorted(facts.sink.elsewhere.items()):
            yield Moved(folder, files, location)


CHECK = Check(
    "SW-MOVE-003",
    Severity.STOP,
    find=find,
    doc=__doc__,
    text="the output lists {it.counted} in {it.folder}, which is not where it is: readers leave out these "
    "rows silently",
    risk="loss",
    where="{it.location}",
    expected="files below {it.location}",
    found="files below {it.folder}",
    at_stake="the rows of {it.counted}",
    advice="move the output back to {it.folder}; or copy its log, and replace {it.folder} by the address of "
    "{it.location} in every file of the log",
    needs=("sink",),
    also=("MOVE-05",),
)
