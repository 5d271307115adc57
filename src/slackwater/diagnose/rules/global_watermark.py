"""An operator of the query returns rows that the stateful operator behind it drops as late.

What it finds: stateful operators follow each other where Spark's one watermark for the whole query is too far ahead for
the second: an aggregation in update or complete mode is followed by another stateful operator.
Why it matters: the first returns rows that are older than the watermark, and the second drops them silently: results
are too low, or rows are missing. Spark refuses such a query; with `statefulOperator.checkCorrectness.enabled = false`
it only logs a warning, and the stream runs with this finding.
How to confirm: remove the setting `spark.sql.streaming.statefulOperator.checkCorrectness.enabled`; the start is refused
with this code. The guide has the section "Limitation of global watermark".
What to do: use append mode with watermarks; or write the first result to an output that a second stream reads, with a
watermark of its own.
Is the remedy safe: yes. What is missing in the output so far is not added: process it again with `slackwater plan reset
STREAM --from earliest`.
References: docs/reference/conformance.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.rule import Rule


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A warning where the query's plan has such a chain."""
    if snapshot.profile is not None and snapshot.profile.late_in_chain:
        yield RULE.finding(
            "a stateful operator follows another one that returns rows older than the query's watermark: it drops them "
            "as late, and Spark's check for this is switched off"
        )


RULE = Rule(
    "global-watermark",
    Severity.WARNING,
    order=412,
    find=find,
    doc=__doc__,
    risk="loss",
    about="query",
    from_plan=True,
)
