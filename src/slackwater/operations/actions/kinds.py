from slackwater.operations.action import Action, Inverse
from slackwater.operations.actions.batches import PlanBatch, ReplayBatches, RunStaged, SkipBatch
from slackwater.operations.actions.generations import BuildGeneration, CopyGeneration, RemoveGeneration, StartGeneration
from slackwater.operations.actions.outputs import (
    CutBackfill,
    CutSink,
    DiscardStaged,
    EmptyDirectory,
    RestoreSink,
    RunBackfill,
    RunIntoDirectory,
    StageOutput,
    SwapBack,
    SwapOutput,
)
from slackwater.operations.actions.switching import SwitchGeneration, VerifyGeneration

ACTIONS: tuple[type[Action], ...] = (
    BuildGeneration, CopyGeneration, CutSink, PlanBatch, ReplayBatches, RunBackfill, RunIntoDirectory, RunStaged,
    SkipBatch, StageOutput, StartGeneration, SwapOutput, SwitchGeneration, VerifyGeneration,
)  # fmt: skip
INVERSES: tuple[type[Inverse], ...] = (
    CutBackfill, DiscardStaged, EmptyDirectory, RemoveGeneration, RestoreSink, SwapBack, SwitchGeneration,
)  # fmt: skip
