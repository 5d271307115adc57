"""What all cuts share: the refusal of a backup from which nothing can be put back."""

from __future__ import annotations

from slackwater.errors import Refused


def damaged(where: str, expected: str, found: str) -> Refused:
    """The refusal of a backup; ``where`` is the file or table of it that is not as the cut left it."""
    return Refused(
        "backup-damaged",
        "A part of the operation's backup is missing or damaged; nothing was changed",
        where=where,
        expected=expected,
        found=found,
        hint="restore it from a copy and run the command again",
    )
