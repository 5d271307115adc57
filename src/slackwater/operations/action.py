"""What an action of a plan is: its data, its words, what it needs and changes, how it is done and taken back.

Each kind is one module of ``operations/actions``, found by its name. Planner, pages, document, executor and
undo use this contract and name no kind. No value of an action is a path outside of what the plan is about, but that of
a backfill directory: ``apply`` derives checkpoints from the home and the stream, and files from the output's own
manifest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from slackwater.core.sink import Cut, Swap
from slackwater.core.strict import STRICT

if TYPE_CHECKING:
    from slackwater.operations.apply.operation import Operation

ActionFacts: TypeAlias = Mapping[str, Any]
"""What an action records in the journal for those after it."""

PreconditionName = Literal[
    "generation",
    "planned",
    "committed",
    "written",
    "history",
    "pipeline",
    "source-files",
    "readers",
    "writer",
    "backfill-directory",
    "others",
]
PRECONDITIONS: Mapping[PreconditionName, str] = {
    "generation": "the generation in use",
    "planned": "the newest batch in offsets/",
    "committed": "the newest batch in commits/",
    "written": "the newest batch the sink shows",
    "history": "the recorded ranges of the batches to be replayed",
    "pipeline": "the pipeline file",
    "source-files": "source files that no longer exist",
    "readers": "streams that have read what is to be cut",
    "writer": "files of the checkpoint that the query has written since the operation was started",
    "backfill-directory": "what is in the backfill directory",
    "others": "what is in the output",
}


@dataclass(frozen=True, slots=True)
class Precondition:
    """A fact that one action relies on, as a string. It is checked just before that action starts, not after."""

    __pydantic_config__: ClassVar = STRICT

    action: int
    name: PreconditionName
    expected: str


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
        from slackwater.operations.actions.kinds import ACTIONS, INVERSES  # noqa: PLC0415 - they are built on this class

        kinds = ACTIONS if cls is Action else INVERSES
        choices = {kind_of(one): handler.generate_schema(one) for one in kinds}
        return {"type": "tagged-union", "choices": choices, "discriminator": "kind"}


class Inverse(PlanStep):
    """Undoes an action. Each step can be repeated after a kill."""

    __slots__ = ()

    removes_generation: ClassVar[bool] = False
    """Whether it also undoes the actions without an inverse, which worked on what it removes."""

    def check(self, operation: Operation) -> None:
        """Raises Refused, before an undo changes anything, where something that this step needs is not there."""

    def check_unused(self, operation: Operation) -> None:
        """Raises Refused where the stream, or another one, has used what would be taken back."""

    @abstractmethod
    def take_back(self, operation: Operation) -> None:
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

    def check_start(self, operation: Operation) -> None:
        """Raises Refused where it cannot be started, in addition to its preconditions."""

    def check_continued(self, operation: Operation) -> None:
        """Raises Refused where an apply is continued and what this has done is no longer as it left it."""

    @abstractmethod
    def do(self, operation: Operation) -> ActionFacts:
        """Do it, or what is left of it to do."""


def kind_of(step: type[PlanStep]) -> str:
    """The kind that a class of actions or inverses has in a document."""
    return str(vars(step)["__dataclass_fields__"]["kind"].default)
