"""What an action of a plan is: its data, its words, what it needs and changes, how it is done and taken back.

Each kind is one module of ``operations/actions``, found by its name. Planner, pages, document, executor and
undo use this contract and name no kind. No value of an action is a path outside of what the plan is about, but that of
a backfill directory: ``apply`` derives checkpoints from the home and the stream, and files from the output's own
manifest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from slackwater.core.precondition import PreconditionName
from slackwater.core.registry import Registry
from slackwater.core.sink import Cut, Swap
from slackwater.core.strict import STRICT

ActionFacts: TypeAlias = Mapping[str, Any]
"""What an action records in the journal for those after it."""

Doing: TypeAlias = Any
"""The operation that does an action, ``operations.apply.operation.Operation``: values import nothing of operations."""


@dataclass(frozen=True, slots=True)
class Switch:
    """The generation in use before and after."""

    old: int
    new: int


class PlanStep(ABC):
    """An action or the inverse of one. Subclasses are frozen dataclasses whose last field, ``kind``, has a default."""

    __slots__ = ()
    __pydantic_config__: ClassVar = STRICT

    kind: str

    @abstractmethod
    def text(self) -> str:
        """What is done, as a sentence."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Pydantic parses an object of a document as the kind that it names."""
        if cls not in (Action, Inverse):
            return handler(source)
        kinds = _actions() if cls is Action else _inverses()
        choices = {kind_of(one): handler.generate_schema(one) for one in kinds}
        return {"type": "tagged-union", "choices": choices, "discriminator": "kind"}


class Inverse(PlanStep):
    """Undoes an action. Each step can be repeated after a kill."""

    __slots__ = ()

    removes_generation: ClassVar[bool] = False
    """Whether it also undoes the actions without an inverse, which worked on what it removes."""

    def check(self, operation: Doing) -> None:
        """Raises Refused, before an undo changes anything, where something that this step needs is not there."""

    def check_unused(self, operation: Doing) -> None:
        """Raises Refused where the stream, or another one, has used what would be taken back."""

    @abstractmethod
    def take_back(self, operation: Doing) -> None:
        """Take back what the action has done, also if it was interrupted."""


class Action(PlanStep):
    """One step of a plan, which the executor journals before and after it. It can be repeated after a kill."""

    __slots__ = ()

    needs: ClassVar[tuple[PreconditionName, ...]] = ()
    """The preconditions that are checked before it starts."""
    needs_adopted: ClassVar[tuple[PreconditionName, ...]] = ()
    """More of them where the user's program runs the query, which no lease keeps from starting it meanwhile."""
    risk_adopted: ClassVar[str] = ""
    """What goes wrong where the user's program is started between this action and the end of the plan, if anything."""
    changes_in_use: ClassVar[bool] = False
    """Whether it changes the output or the checkpoint in use, so that an apply that fails then is not taken back."""
    changes_output: ClassVar[bool] = False
    """Whether it changes the output or builds one for the stream, so that the stream must own the output."""
    uses_checkpoint: ClassVar[bool] = False
    """Whether the new checkpoint is not as it was verified once this has started."""
    reads: ClassVar[Literal["range", "rest"] | None] = None
    """What it reads that no replay does: the range of a request as one batch, or the rest of what the sources have."""
    undone_by: ClassVar[type[Inverse] | None] = None
    """The kind of its inverse, unless that is an action, too."""

    @classmethod
    def added_to(cls, actions: Sequence[Action]) -> Sequence[Action]:
        """The actions of a plan, whatever its goal, with those of this kind that the goal does not know."""
        return actions

    @property
    def change(self) -> Cut | Swap | None:
        """What leaves the output, or what replaces it."""
        return None

    @property
    def switch(self) -> Switch | None:
        """The generations, if it makes another one the one in use."""
        return None

    @property
    def built(self) -> int | None:
        """The generation whose checkpoint it starts."""
        return None

    def inverse(self) -> Inverse | None:
        """What takes it back, or ``None`` if removing the generation or output that it works on does."""
        return None

    def check_start(self, operation: Doing) -> None:
        """Raises Refused where it cannot be started, in addition to its preconditions."""

    def check_continued(self, operation: Doing) -> None:
        """Raises Refused where an apply is continued and what this has done is no longer as it left it."""

    @abstractmethod
    def do(self, operation: Doing) -> ActionFacts:
        """Do it, or what is left of it to do."""


ACTIONS: Registry[type[Action]] = Registry("slackwater.operations.actions", "ACTION", "slackwater.actions")


def kind_of(step: type[PlanStep]) -> str:
    """The kind that a class of actions or inverses has in a document."""
    return str(vars(step)["__dataclass_fields__"]["kind"].default)


def _actions() -> list[type[PlanStep]]:
    return list(ACTIONS.all())


def _inverses() -> list[type[PlanStep]]:
    undone_by = {one.undone_by for one in ACTIONS.all() if one.undone_by is not None}
    return [*undone_by, *(one for one in ACTIONS.all() if issubclass(one, Inverse))]
