"""The verdict on one stream: what its query was compared with, and what was found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from slackwater.core.verdict import Effect, Verdict

Basis = Literal["recorded", "checkpoint", "nothing", "unreadable"]


@dataclass(frozen=True, slots=True)
class OtherSetting:
    """A setting of the session that is another one than when the state was made; ``None``: not set.

    ``in_code``: the pipeline file sets it for this stream, so that no option can.
    """

    name: str
    before: str | None
    now: str | None
    in_code: bool = False


@dataclass(frozen=True, slots=True)
class StreamVerdict:
    """``committed`` is the newest committed batch, -1 for none.

    ``basis`` is what the query was compared with: the recorded program, what the checkpoint shows without one, or
    nothing, as no batch was planned. ``unreadable``: it was not compared, as its plan or code cannot be read.
    ``settings``: under their old values the query may continue, so that they are the reason of all changes.
    """

    stream: str
    committed: int
    basis: Basis
    verdict: Verdict = field(default_factory=Verdict)
    settings: tuple[OtherSetting, ...] = ()

    @property
    def effect(self) -> Effect | None:
        """The gravest effect of a change, ``None`` where the query was not compared."""
        return None if self.basis == "unreadable" else self.verdict.effect
