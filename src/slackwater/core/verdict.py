"""The effect of a program's changes on kept state, and the goal that corrects it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from typing import Any, Literal

ChangeGoal = Literal["rebuild", "reset"]


class Effect(IntEnum):
    """An effect on kept state, the mildest first.

    ``CHANGES_ROWS``: Spark's guide allows it, but kept rows are of the old code. ``NEEDS_REBUILD``: kept state has a
    different meaning for the new code. ``NOT_RESTORABLE``: nor does a rebuild correct the output.
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
    """``code`` is stable; ``text`` is a sentence.

    ``place`` names the operator or source. ``goal`` corrects the output, ``None`` if it is right. ``acceptable``: Spark
    can run on the kept state, so that a user may accept the change. ``said``: a start reports a change that it does not
    refuse.
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
        fields = asdict(self) | {"effect": self.effect.word}
        del fields["said"]
        return fields


@dataclass(frozen=True, slots=True)
class Verdict:
    changes: tuple[Change, ...] = ()

    @property
    def effect(self) -> Effect:
        """``SAME`` for no change."""
        return max((change.effect for change in self.changes), default=Effect.SAME)

    @property
    def starts(self) -> bool:
        return self.effect <= Effect.COMPATIBLE

    @property
    def goal(self) -> ChangeGoal | None:
        """The goal that corrects all changes together."""
        goals = {change.goal for change in self.changes}
        return "reset" if "reset" in goals else "rebuild" if "rebuild" in goals else None

    def unaccepted(self, accepted: frozenset[str]) -> tuple[Change, ...]:
        return tuple(
            change
            for change in self.changes
            if change.effect > Effect.COMPATIBLE and not (change.acceptable and change.code in accepted)
        )


Basis = Literal["recorded", "checkpoint", "nothing", "unreadable"]


@dataclass(frozen=True, slots=True)
class OtherSetting:
    """A setting that differs from when the state was made; ``None``: not set. ``in_code``: the pipeline file sets it,
    so that no option can.
    """

    name: str
    before: str | None
    now: str | None
    in_code: bool = False


@dataclass(frozen=True, slots=True)
class StreamVerdict:
    """``committed`` is the newest committed batch, -1 for none. ``basis`` of the comparison is the recorded program,
    the checkpoint, or nothing, as no batch was planned. ``unreadable``: plan or code cannot be read. ``settings``
    explain all changes: the query may continue under their old values. A diagnosis adds remedies (``ways``), the safest
    first, and the ``session``'s values of settings that Spark takes from a checkpoint.
    """

    stream: str
    committed: int
    basis: Basis
    verdict: Verdict = field(default_factory=Verdict)
    settings: tuple[OtherSetting, ...] = ()
    ways: tuple[str, ...] = ()
    session: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def effect(self) -> Effect | None:
        """The strongest effect; ``None`` if the query was not compared."""
        return None if self.basis == "unreadable" else self.verdict.effect
