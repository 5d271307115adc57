"""Messages of defects of Spark that are known: the issue, and the releases that do not have it (VER-06)."""

from __future__ import annotations

from slackwater.diagnose.defects import known
from slackwater.diagnose.errors.common.symptom import Certainty, ErrorText

GROUP = tuple(
    ErrorText(
        f"defect-{defect.issue.lower()}",
        ("VER-06",),
        defect.texts,
        needs=defect.needs,
        certainty=Certainty.LIKELY,
        says=f"{defect.issue}: {defect.what}; {defect.advice}",
    )
    for defect in known()
    if defect.texts
)
