"""Files that were never read are too old for their source.

What it finds: files next to those that a source has read, which it has not read, and which are older than the newest
file that it has read by more than `maxFileAge` (7 days).
Why it matters: the source leaves them out silently, now and at every later start.
How to confirm: compare the time of the file that the finding names with the newest entry that `slackwater inspect
STREAM` shows.
What to do: give the files a new modification time, for example with `touch`; the next batch reads them.
Is the remedy safe: yes, as no batch has read them. Rows whose event time is behind the watermark are still dropped as
late. A larger `maxFileAge` of the source helps too, from the next start on.
References: Structured Streaming Programming Guide, "Input Sources", option maxFileAge
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.escaping import quoted
from slackwater.core.facts import Facts, Unknown
from slackwater.core.finding import Severity
from slackwater.core.units import counted
from slackwater.diagnose.checks.common.check import Check


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


def find(facts: Facts) -> Iterator[TooOld]:
    """The sources with unread files that they will never read."""
    for source in facts.sources:
        files = source.too_old_files
        if not isinstance(files, Unknown) and files:
            yield TooOld(source.name, files[0], len(files), quoted(files[0]))


CHECK = Check(
    "SW-FSRC-006",
    Severity.WARNING,
    find=find,
    doc=__doc__,
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
