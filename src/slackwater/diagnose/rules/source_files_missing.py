"""Source files of the planned batch do not exist.

What it finds: the next batch is planned with a range of source files, and some of them were deleted or moved.
Why it matters: Spark fails, or with ignoreMissingFiles leaves their rows out silently.
How to confirm: the finding names the files; `slackwater inspect STREAM` shows the batch.
What to do: restore the files under their recorded paths, then `slackwater run FILE`.
Is the remedy safe: yes, if the files are restored with their content.
References: docs/decisions/0243-replaced-source-files.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.facts import SHOWN, and_more
from slackwater.diagnose.rules.common.rule import REFUSED, Rule


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A stop where files of the planned batch are missing."""
    missing = snapshot.missing_files
    if missing:
        yield RULE.finding(
            f"batch {snapshot.marks.next_batch} is planned with {len(missing)} source files that do not exist; its "
            "rows cannot be read",
            advice="restore the files; Spark would fail, or leave their rows out with ignoreMissingFiles",
            expected="every file of the planned range",
            found=f"{', '.join(missing[:SHOWN])}{and_more(missing, SHOWN)} missing",
        )


RULE = Rule(
    "source-files-missing",
    Severity.STOP,
    order=250,
    find=find,
    doc=__doc__,
    risk="loss",
    exit_code=REFUSED,
    covers=("FSRC-03",),
)
