"""The verdict on a changed program: what each change means for kept state, and which goal makes it right."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal

ChangeGoal = Literal["rebuild", "reset"]


class Effect(IntEnum):
    """What a change does to a stream with kept state, the mildest first.

    ``CHANGES_ROWS``: Spark's guide allows it, but rows in the kept state come from the old code. ``NEEDS_REBUILD``: the
    kept state means something else to the new code. ``NOT_RESTORABLE``: nor would a rebuild make the output right.
    """

    SAME = 0
    COMPATIBLE = 1
    CHANGES_ROWS = 2
    NEEDS_REBUILD = 3
    NOT_RESTORABLE = 4

    @property
    def word(self) -> str:
        """The name in messages and documents: ``changes-rows``."""
        return self.name.lower().replace("_", "-")


@dataclass(frozen=True, slots=True)
class Change:
    """One difference of two programs. ``code`` is stable; ``text`` is a sentence.

    ``place`` names the operator or the source. ``goal`` is the goal that makes the output right, ``None`` where
    nothing is wrong. ``acceptable``: Spark can run the query on the kept state, so that a user may accept the change.
    ``said``: a start that the change does not refuse says it, as other rows count from then on.
    """

    code: str
    effect: Effect
    text: str
    place: str | None = None
    before: str | None = None
    after: str | None = None
    goal: ChangeGoal | None = None
    acceptable: bool = True
    said: bool = False

    def as_json(self) -> dict[str, Any]:
        """The fields as ``slackwater check --format json`` shows them."""
        return {
            "code": self.code,
            "effect": self.effect.word,
            "text": self.text,
            "place": self.place,
            "before": self.before,
            "after": self.after,
            "goal": self.goal,
            "acceptable": self.acceptable,
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """All changes of a program, the gravest first."""

    changes: tuple[Change, ...] = ()

    @property
    def effect(self) -> Effect:
        """The gravest effect of a change; ``SAME`` for none."""
        return max((change.effect for change in self.changes), default=Effect.SAME)

    @property
    def starts(self) -> bool:
        """Whether the stream may start although the user has accepted nothing."""
        return self.effect <= Effect.COMPATIBLE

    @property
    def goal(self) -> ChangeGoal | None:
        """The goal that makes the output right after all changes together."""
        goals = {change.goal for change in self.changes}
        return "reset" if "reset" in goals else "rebuild" if "rebuild" in goals else None

    def unaccepted(self, accepted: frozenset[str]) -> tuple[Change, ...]:
        """The changes that still refuse a start after the user accepted those with these codes."""
        return tuple(
            change
            for change in self.changes
            if change.effect > Effect.COMPATIBLE and not (change.acceptable and change.code in accepted)
        )


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
