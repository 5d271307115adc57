"""The source reads the output of a file sink that hides files.

What it finds: the folder of a file source is the output of Spark's file sink, and the log of that output lists files
under another path, as after a move.
Why it matters: a source reads such a folder by its log alone, and leaves out what the log lists elsewhere: the stream
silently misses the rows of these files.
How to confirm: compare the addresses in the log of the output with the path of the folder.
What to do: correct the log of the output first, as `slackwater explain SW-MOVE-003` describes. The next batch then
reads the files that it has not read.
Is the remedy safe: yes, while the stream that writes the output is stopped. To delete the log lets the source read
the files of interrupted batches as well.
References: Structured Streaming Programming Guide, "Input Sources"
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts, Unknown
from slackwater.core.finding import Severity
from slackwater.core.units import counted
from slackwater.diagnose.checks.common.check import Check


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


def find(facts: Facts) -> Iterator[Hidden]:
    """The outputs that sources read, with files elsewhere."""
    for source in facts.sources:
        for output in () if isinstance(source.outputs, Unknown) else source.outputs:
            if output.elsewhere:
                yield Hidden(source.name, output.location, min(output.elsewhere), sum(output.elsewhere.values()))


CHECK = Check(
    "SW-FSRC-010",
    Severity.WARNING,
    find=find,
    doc=__doc__,
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
