"""A finding: one thing that was recognised about a stream, what it risks, and the command that comes next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Risk = Literal["loss", "duplicate", "skip", "wrong", "stuck", "none"]


class Severity(StrEnum):
    """``STOP``: the stream must not be started. ``WARNING``: it may, with care. ``INFO``: nothing is wrong."""

    STOP = "stop"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """``code`` is stable; ``text`` is one sentence; ``next`` is what to type, ``None`` where nothing has to be done.

    ``exit_code`` is what ``slackwater status`` ends with when this is the most urgent finding (docs/exit-codes.md).
    ``advice`` is what to do where no command of Slackwater does it.
    """

    code: str
    severity: Severity
    text: str
    risk: Risk = "none"
    goal: str | None = None
    next: str | None = None
    advice: str | None = None
    where: str | None = None
    expected: str | None = None
    found: str | None = None
    exit_code: int = 0
