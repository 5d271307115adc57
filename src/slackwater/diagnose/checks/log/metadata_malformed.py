"""The file metadata has no query id that Spark can parse.

What it finds: the file `metadata` is empty, no JSON, or its id is no UUID.
Why it matters: Spark refuses to start the query, before it reads anything else.
How to confirm: `slackwater inspect LOCATION` lists the damage; read the file.
What to do: write the file again with the id of the query, as the finding shows it. The ledger has the id; else the
driver's log and the query's progress events have it.
Is the remedy safe: yes, with the id that the query had. To delete the file is not: Spark up to 4.1 then takes a new
id, by which a sink accepts an interrupted batch twice.
References: SPARK-55058
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.commands import write_query_id

_UUID = re.compile(r"[0-9a-fA-F]{1,8}(-[0-9a-fA-F]{1,4}){3}-[0-9a-fA-F]{1,12}")
"""What Java's ``UUID.fromString`` accepts."""


class BadId(NamedTuple):
    """What the file has, and what writes it again."""

    found: str
    how: str


def find(facts: Facts) -> Iterator[BadId]:
    """A file ``metadata`` without a UUID."""
    checkpoint = facts.checkpoint
    query_id, damage = checkpoint.report.query_id, checkpoint.damaged("metadata")
    if not checkpoint.has("metadata") or (query_id is not None and _UUID.fullmatch(query_id)):
        return
    known = facts.snapshot.generation.query_id
    sound = known if known is not None and _UUID.fullmatch(known) else None
    yield BadId(query_id or (damage.found if damage is not None else "no id"), write_query_id(checkpoint, sound))


CHECK = Check(
    "SW-LOG-013",
    Severity.STOP,
    find=find,
    doc=__doc__,
    text="the file metadata has no query id that Spark can parse: a start is refused",
    risk="stuck",
    goal="resume",
    where="{facts.checkpoint.location}/metadata",
    expected="a UUID as id",
    found="{it.found}",
    advice="{it.how}",
    damage=lambda _: ("metadata",),
)
