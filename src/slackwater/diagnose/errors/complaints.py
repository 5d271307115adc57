"""What people say in plain words of a query that does not fail, or not with a message (``common/complaints``).

The same words have several causes, and the files of the stream decide: each is possible only.
"""

from __future__ import annotations

from slackwater.diagnose.errors.common.complaints import PREFIX, Complaint, complaints
from slackwater.diagnose.errors.common.symptom import Certainty, ErrorText, Level


def _error_text(complaint: Complaint) -> ErrorText:
    return ErrorText(
        f"plain-words-{complaint.name.lower().replace(' ', '-')}",
        complaint.codes,
        names=(f"{PREFIX}{complaint.name}",),
        level=Level.COMPLAINT,
        certainty=Certainty.POSSIBLE,
    )


GROUP = tuple(map(_error_text, complaints()))
