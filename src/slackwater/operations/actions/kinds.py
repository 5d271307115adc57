from __future__ import annotations

from slackwater.operations.action import Action, Inverse
from slackwater.operations.actions.build_generation import BuildGeneration
from slackwater.operations.actions.common.base import RemoveGeneration
from slackwater.operations.actions.copy_generation import CopyGeneration
from slackwater.operations.actions.cut_sink import CutSink, RestoreSink
from slackwater.operations.actions.plan_batch import PlanBatch
from slackwater.operations.actions.replay_batches import ReplayBatches
from slackwater.operations.actions.run_backfill import CutBackfill, RunBackfill
from slackwater.operations.actions.run_into_directory import EmptyDirectory, RunIntoDirectory
from slackwater.operations.actions.run_staged import RunStaged
from slackwater.operations.actions.skip_batch import SkipBatch
from slackwater.operations.actions.stage_output import DiscardStaged, StageOutput
from slackwater.operations.actions.start_generation import StartGeneration
from slackwater.operations.actions.swap_output import SwapBack, SwapOutput
from slackwater.operations.actions.switch_generation import SwitchGeneration
from slackwater.operations.actions.verify_generation import VerifyGeneration

ACTIONS: tuple[type[Action], ...] = (
    BuildGeneration,
    CopyGeneration,
    CutSink,
    PlanBatch,
    ReplayBatches,
    RunBackfill,
    RunIntoDirectory,
    RunStaged,
    SkipBatch,
    StageOutput,
    StartGeneration,
    SwapOutput,
    SwitchGeneration,
    VerifyGeneration,
)
INVERSES: tuple[type[Inverse], ...] = (
    CutBackfill,
    DiscardStaged,
    EmptyDirectory,
    RemoveGeneration,
    RestoreSink,
    SwapBack,
    SwitchGeneration,
)
