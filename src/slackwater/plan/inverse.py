"""The inverse of each action, as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from slackwater.model.actions import (
    Action,
    BuildGeneration,
    CopyGeneration,
    CutBackfill,
    CutSink,
    DiscardAside,
    DiscardStaged,
    Inverse,
    PlanBatch,
    RemoveGeneration,
    ReplayBatches,
    RestoreSink,
    RunAside,
    RunBackfill,
    RunStaged,
    SkipBatch,
    StageOutput,
    StartGeneration,
    SwapBack,
    SwapOutput,
    SwitchGeneration,
    VerifyGeneration,
)
from slackwater.model.plan import Undo


def undo_of(actions: Sequence[Action]) -> tuple[Undo, ...]:
    """The way back from a list of actions, the last action first."""
    inverses = [(index, inverse_of(action)) for index, action in enumerate(actions)]
    return tuple(Undo(index, inverse) for index, inverse in reversed(inverses) if inverse is not None)


def inverse_of(action: Action) -> Inverse | None:
    """What takes an action back; ``None`` where removing the generation or output it works on does."""
    match action:
        case BuildGeneration() | CopyGeneration() | StartGeneration():
            return RemoveGeneration(action.number)
        case ReplayBatches() | PlanBatch() | SkipBatch() | VerifyGeneration() | RunStaged():
            return None
        case CutSink():
            return RestoreSink(action.cut)
        case StageOutput():
            return DiscardStaged()
        case SwapOutput():
            return SwapBack(action.swap)
        case RunBackfill():
            return CutBackfill(action.batch - 1)
        case RunAside():
            return DiscardAside(action.output)
        case SwitchGeneration():
            return SwitchGeneration(action.new, action.old)
        case _:
            assert_never(action)
