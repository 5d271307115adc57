"""The log of the file sink is large.

What it finds: the log of the output lists more than 100,000 files.
Why it matters: the file sink never forgets a file. At each compaction, by default every tenth batch, the driver reads
and writes the whole list: these batches become slower, and the driver needs more memory, until it fails.
How to confirm: compare the times of every tenth batch with the others; `slackwater status STREAM` shows them.
What to do: write fewer and larger files, by a longer trigger interval or a `repartition` before the sink; or set the
sink's option `retention`, after which the log forgets old files, where no reader needs them.
Is the remedy safe: the first is. With `retention` readers that use the log no longer see the old files, although they
stay on the disk. To delete the log is not: the sink fails at its next compaction, and readers see interrupted
batches.
References: SPARK-30462
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts, Unknown
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check

LIMIT = 100_000
"""A line has about 200 bytes: from here on each compaction reads and writes 20 MB."""


class Large(NamedTuple):
    """How many files the log lists, and the limit."""

    files: int
    limit: int


def find(facts: Facts) -> Iterator[Large]:
    """A log with more files than the limit."""
    if not isinstance(facts.sink, Unknown) and facts.sink.listed > LIMIT:
        yield Large(facts.sink.listed, LIMIT)


CHECK = Check(
    "SW-FSINK-009",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="the log of the output lists {it.files} files, and each compaction reads and writes all of them: batches "
    "become slower, and the driver can run out of memory",
    risk="stuck",
    where="{facts.sink.seen.location}",
    expected="{it.limit} files at most",
    found="{it.files}",
    advice="write fewer and larger files; or set the option retention of the sink, where no reader needs the old files",
    needs=("sink",),
)
