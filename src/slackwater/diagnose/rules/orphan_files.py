"""Files in the output belong to no batch.

What it finds: data files in the output's directory that its manifest does not list, such as those of interrupted
batches.
Why it matters: readers that use the manifest ignore them; a reader that lists the directory would count their rows.
How to confirm: `slackwater status STREAM --verify` lists the first of them.
What to do: nothing; they can be deleted while nothing runs.
Is the remedy safe: yes, for the files that the finding names while nothing runs; no batch refers to them.
References: docs/decisions/0063-outputs-cut-and-restore.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.facts import SHOWN, and_more
from slackwater.diagnose.rules.common.rule import Rule


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """The first of the files that belong to no batch."""
    orphans = snapshot.output.orphans
    if orphans:
        yield RULE.finding(
            f"{len(orphans)} files in the output belong to no batch, such as those of interrupted batches; readers "
            f"that use the manifest ignore them: {', '.join(orphans[:SHOWN])}{and_more(orphans, SHOWN)}",
            where=snapshot.output.location,
        )


RULE = Rule(
    "orphan-files",
    Severity.INFO,
    order=440,
    find=find,
    doc=__doc__,
    covers=("FSINK-07",),
    on_output=True,
)
