"""The output belongs to another stream.

What it finds: the owner file or marker of the output names another stream.
Why it matters: batch ids of two streams meet in one output: the sink skips a batch whose id the other has written.
How to confirm: `slackwater status STREAM` names the owner; `slackwater status` shows the streams of this home.
What to do: give the stream an output of its own, or move this output away.
Is the remedy safe: yes; nothing that the owner wrote is touched.
References: docs/decisions/0054-homes-and-outputs-know-whose-they-are.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.rule import REFUSED, Rule, When


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A stop where the output names another stream as its writer."""
    output = snapshot.output
    if output.owner is not None and output.owner != snapshot.stream.id:
        yield RULE.finding(
            f"the output belongs to stream {output.owner_name}; the sink would skip batches of a second stream that "
            "writes there",
            advice="give the stream an output directory of its own, or move this one away",
            where=output.location,
            expected=f"an output of {snapshot.stream.full_name}",
            found=f"an output of {output.owner_name}",
        )


RULE = Rule(
    "sink-owned",
    Severity.STOP,
    order=120,
    find=find,
    doc=__doc__,
    risk="skip",
    exit_code=REFUSED,
    when=When.ALWAYS,
    about="identity",
    covers=("SHARE-04",),
    on_output=True,
)
