"""A finding about a stream, with its risk and the next command."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Risk = Literal["loss", "duplicate", "skip", "wrong", "stuck", "none"]


class Severity(StrEnum):
    """``STOP``: must not be started. ``WARNING``: may, with care. ``INFO``: nothing is wrong."""

    STOP = "stop"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """``code`` is stable; ``text`` is a sentence; ``next`` is a command, if any. ``status`` ends with ``exit_code`` for
    its most urgent finding. ``advice`` is for remedies without a command.
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
