"""A log has an entry with a number that no batch of the query has.

What it finds: the newest number in `offsets/`, in `commits/` or in a file source's own log is far behind all others,
with a gap before it. Names that are no number are ignored by Spark.
Why it matters: Spark takes the highest number for the newest entry, and refuses to start: "batch N doesn't exist", or
"Multiple streaming jobs detected".
How to confirm: `slackwater inspect LOCATION` lists the entries; read the file.
What to do: move the file out of the checkpoint with the command of the finding; then `slackwater doctor LOCATION`
again.
Is the remedy safe: yes; nothing is deleted, and no entry of the query is changed. What Spark's message advises, to
delete the newest entries until two follow each other, is safe here only because the first of them is the stray: stop
after it.
References: SPARK-38033
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.commands import move_away
from slackwater.diagnose.checks.common.logs import strays_in_logs, strays_in_sources


class Stray(NamedTuple):
    """The file, its log and number, and what moves it out of the checkpoint."""

    path: str
    folder: str
    number: int
    how: str


def find(facts: Facts) -> Iterator[Stray]:
    """Strays of all logs."""
    for folder, number in (*strays_in_logs(facts.checkpoint), *strays_in_sources(facts)):
        names = (f"{number}.compact", str(number))
        name = next(one for one in names if facts.checkpoint.has(f"{folder}/{one}"))
        path = f"{folder}/{name}"
        yield Stray(path, folder, number, move_away(facts.checkpoint, path))


CHECK = Check(
    "SW-STORE-007",
    Severity.STOP,
    find=find,
    doc=__doc__,
    text="{it.path} is far behind all other entries and is none of this query, but Spark takes it for the newest: a "
    "start is refused",
    risk="stuck",
    goal="resume",
    where="{facts.checkpoint.location}/{it.path}",
    expected="no entry of this number",
    found="a file named {it.number}",
    certainty="likely",
    advice="{it.how}",
    damage=lambda it: (it.path, f"offsets/{it.number}", f"offsets/{it.number - 1}"),
)
