"""The state of a join has the old format.

What it finds: the newest batch pins version 1 of the state of joins, and an operator has the stores of a join.
Why it matters: with this version rows of an outer join were lost or written twice (SPARK-26154). Spark refuses to
continue an outer join with it, at every start; an inner join is not concerned.
How to confirm: `slackwater inspect STREAM` lists the pinned settings; the code shows the type of the join.
What to do: for an outer join `slackwater plan reset STREAM`: the new checkpoint pins the newer version.
Is the remedy safe: the reset keeps the old output for the undo. The version must not be edited in `offsets/`: the
values in the state have another form.
References: SPARK-26154
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.core.operator import JOIN
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.settings import JOIN_FORMAT, settings_of

_OLD = "1"


class OldFormat(NamedTuple):
    """The operator, and the batch that pins the version."""

    operator: int
    batch: int


def find(facts: Facts) -> Iterator[OldFormat]:
    """Joins whose state has version 1."""
    if settings_of(facts.checkpoint.newest_offset).get(JOIN_FORMAT) != _OLD:
        return
    for operator in facts.checkpoint.report.operators:
        if operator.name == JOIN:
            yield OldFormat(operator.id, facts.checkpoint.planned)


CHECK = Check(
    "SW-CHG-011",
    Severity.INFO,
    find=find,
    doc=__doc__,
    text="the state of join {it.operator} has version 1, with which Spark refuses to continue an outer join",
    risk="stuck",
    goal="reset",
    where="{facts.checkpoint.location}/offsets/{it.batch}",
    expected="spark.sql.streaming.join.stateFormatVersion of 2 or later, if the join is an outer one",
    found="1",
)
