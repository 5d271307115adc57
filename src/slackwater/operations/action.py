"""The contract of a plan's actions. ``operations/actions/kinds`` lists the kinds.

No value of an action is a path outside the plan's stream, except a backfill directory: ``apply`` derives all others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from slackwater.core.sink import STRICT, Cut, Swap

if TYPE_CHECKING:
    from slackwater.operations.actions.switching import SwitchGeneration
    from slackwater.operations.apply.operation import Operation


ActionFacts: TypeAlias = Mapping[str, Any]
"""Values that an action records in the journal for later actions."""

PreconditionName = Literal[
    "generation", "planned", "committed", "written", "history", "pipeline", "source-files", "readers", "writer",
    "backfill-directory", "others",
]  # fmt: skip
PRECONDITIONS: Mapping[PreconditionName, str] = {
    "generation": "the generation in use",
    "planned": "the newest batch in offsets/",
    "committed": "the newest batch in commits/",
    "written": "the newest batch the sink shows",
    "history": "the recorded ranges of the batches to be replayed",
    "pipeline": "the pipeline file",
    "source-files": "source files that no longer exist",
    "readers": "streams that have read rows to be cut",
    "writer": "files of the checkpoint that the query has written since the operation was started",
    "backfill-directory": "the content of the backfill directory",
    "others": "the content of the output",
}


NOTHING: ActionFacts = {}
LAYOUT = "layout"
"""The pipeline may be edited between build and switch."""
PLANNED, COMMITTED = "planned", "committed"
"""The newest batches of the new checkpoint after the query has run."""
BY_HAND = "by_hand"
"""How to finish or undo an interrupted exchange of directories without Slackwater."""
PROGRAMS = "programs"
"""The programs that built it, as in ``core.state_programs``."""
KEPT = "kept"
"""Identifies the old checkpoint, for undo."""
CODE = "code"
"""The SHA-256 of the pipeline file that built the generation."""
COUNTED = "counted"
"""Replayed batches with a recorded number of rows that was too high, and both numbers."""


@dataclass(frozen=True, slots=True)
class Precondition:
    """A fact that an action relies on, checked just before it starts."""

    __pydantic_config__: ClassVar = STRICT

    action: int
    name: PreconditionName
    expected: str


class PlanStep(ABC):
    """Subclasses are frozen dataclasses whose last field, ``kind``, has a default."""

    __slots__ = ()
    __pydantic_config__: ClassVar = STRICT

    kind: str

    @abstractmethod
    def text(self) -> str:
        """The step as a sentence."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        if cls not in (Action, Inverse):
            return handler(source)
        from slackwater.operations.actions.kinds import ACTIONS, INVERSES  # noqa: PLC0415 - they are built on this class

        kinds = ACTIONS if cls is Action else INVERSES
        choices = {kind_of(one): handler.generate_schema(one) for one in kinds}
        return {"type": "tagged-union", "choices": choices, "discriminator": "kind"}


class Inverse(PlanStep):
    """Undoes an action. Can be repeated after a kill."""

    __slots__ = ()

    removes_generation: ClassVar[bool] = False
    """Whether it also undoes the actions without an inverse that worked on the removed generation or output."""

    def check(self, operation: Operation) -> None:
        """Raises Refused, before an undo changes anything, if something is missing."""

    def check_unused(self, operation: Operation) -> None:
        """Raises Refused if a stream has used the action's result."""

    @abstractmethod
    def take_back(self, operation: Operation) -> None:
        """Undo the action, also after a partial apply."""


class Action(PlanStep):
    """A step of a plan, journaled before and after it. Can be repeated after a kill."""

    __slots__ = ()

    needs: ClassVar[tuple[PreconditionName, ...]] = ()
    changes_in_use: ClassVar[bool] = False
    """Whether output or checkpoint in use change: an apply that fails afterwards is not taken back."""
    changes_output: ClassVar[bool] = False
    """Whether it changes or builds an output, which the stream must own."""
    uses_checkpoint: ClassVar[bool] = False
    """Whether it changes the verified new checkpoint."""
    reads: ClassVar[Literal["range", "rest"] | None] = None
    """The part of the sources that it reads and a replay does not."""

    @property
    def change(self) -> Cut | Swap | None:
        return None

    @property
    def switch(self) -> SwitchGeneration | None:
        return None

    @property
    def built(self) -> int | None:
        return None

    def inverse(self) -> Inverse | None:
        """``None`` if removing its generation or output already undoes the action."""
        return None

    def check_start(self, operation: Operation) -> None:
        """Raises Refused if the action cannot be started despite its preconditions."""

    def check_continued(self, operation: Operation) -> None:
        """Raises Refused if its result has changed since the interruption."""

    @abstractmethod
    def do(self, operation: Operation) -> ActionFacts:
        """Do the steps that are left."""


def kind_of(step: type[PlanStep]) -> str:
    return str(vars(step)["__dataclass_fields__"]["kind"].default)


class Display:
    """Shows the progress of an operation; this class shows nothing."""

    def say(self, text: str) -> None:
        """A message."""

    def action(self, action: Action | Inverse) -> None:
        """An action starts."""

    def batch(self, batch: int) -> None:
        """A batch was replayed."""
