"""The verdict on one stream: what its query was compared with, and what was found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from slackwater.core.verdict import Verdict

Basis = Literal["recorded", "checkpoint", "nothing"]


@dataclass(frozen=True, slots=True)
class StreamVerdict:
    """``committed`` is the newest committed batch, -1 for none.

    ``basis`` is what the query was compared with: the recorded program, what the checkpoint shows without one, or
    nothing, as no batch was planned or the query's plan cannot be read.
    """

    stream: str
    committed: int
    basis: Basis
    verdict: Verdict = field(default_factory=Verdict)
