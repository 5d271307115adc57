"""The stream ran with a Spark that has a defect which changes rows unseen.

What it finds: the release of the last run has a known defect of Spark that loses, doubles or changes rows without any
error, and that this stream's operators and state store can meet.
Why it matters: nothing fails, and no file shows that the defect has struck: the output may be wrong while every check
of the checkpoint passes.
How to confirm: read the issue in Spark's tracker. Compare the output of a time in question with that of a batch query
over the same input.
What to do: run the query with a release that has the correction. If only the state may be wrong, recompute it with
`slackwater plan rebuild STREAM`, which leaves the output as it is. If the output is wrong from batch N on, write it
again with `slackwater plan replay STREAM --from batch:N`, or all of it with
`slackwater plan rebuild STREAM --at earliest`.
Is the remedy safe: yes; a newer release of the same line reads the checkpoint.
References: the issue that the finding names
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.releases import releases
from slackwater.diagnose.checks.common.settings import PROVIDER, settings_of
from slackwater.diagnose.defects import known


class Affected(NamedTuple):
    """The release of the last run, and a defect that it has: its issue, what it is, and what to do."""

    release: str
    issue: str
    what: str
    advice: str


def find(facts: Facts) -> Iterator[Affected]:
    """The defects without an error that the last run could meet."""
    release = next(iter(releases(facts)), "")
    operators = {operator.name for operator in facts.checkpoint.report.operators}
    provider = settings_of(facts.checkpoint.newest_offset).get(PROVIDER, "")
    for defect in known() if release else ():
        is_met = not operators.isdisjoint(defect.operators) and provider.endswith(defect.provider)
        if is_met and defect.is_in(release):
            yield Affected(release, defect.issue, defect.what, defect.advice)


CHECK = Check(
    "SW-VER-006",
    Severity.INFO,
    find=find,
    doc=__doc__,
    text="Spark {it.release} has the defect {it.issue}: {it.what}",
    risk="wrong",
    certainty="possible",
    where="{facts.checkpoint.location}",
    expected="a release without the defect",
    found="Spark {it.release}",
    advice="{it.advice}",
    needs=("history",),
)
