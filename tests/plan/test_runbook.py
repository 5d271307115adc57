"""``plan --export``: the plan as steps for somebody who does it by hand."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from slackwater.cli.main import make_parser
from slackwater.core.plan import Cost, Facts, Kept, Plan, Request, SourceStart, Work, undo_of
from slackwater.core.precondition import Precondition
from slackwater.core.sink import BackfillDirectory, Cut, Swap
from slackwater.ledger.home.home import Home
from slackwater.operations.actions.build_generation import BuildGeneration
from slackwater.operations.actions.copy_generation import CopyGeneration
from slackwater.operations.actions.cut_sink import CutSink
from slackwater.operations.actions.plan_batch import PlanBatch
from slackwater.operations.actions.replay_batches import ReplayBatches, ReplaySettings
from slackwater.operations.actions.run_aside import RunIntoDirectory
from slackwater.operations.actions.run_staged import RunStaged
from slackwater.operations.actions.stage_output import StageOutput
from slackwater.operations.actions.start_generation import StartGeneration
from slackwater.operations.actions.swap_output import SwapOutput
from slackwater.operations.actions.switch_generation import SwitchGeneration
from slackwater.operations.actions.verify_generation import VerifyGeneration
from slackwater.operations.plan.runbook import runbook

HOME = Home("/data/my home/.slackwater")
FILE = "my plan.json"
COMMAND = re.compile(r"^(slackwater .*)$|`(slackwater [^`]* [^`]*)`", re.MULTILINE)
CUT = Cut(3, (4, 5), files=("part-4.parquet", "part-5.parquet"), bytes=2000, version="7")
ACTIONS = (
    BuildGeneration(2, "61a84303-80aa-4970-973a-8b729f494d48", 2, 3, 4),
    ReplayBatches(2, 2, 3, (ReplaySettings(2, 2, {"spark.sql.session.timeZone": "UTC"}), ReplaySettings(3, 3, None))),
    PlanBatch(2, 4),
    VerifyGeneration(2, 2, 3, 4, 3),
    CutSink(CUT),
    SwitchGeneration(1, 2),
)
PLAN = Plan(
    id="20260105T093000-1a2b3c",
    stream="clicks/per_page",
    made_at="2026-01-05T09:30:00Z",
    request=replace(Request.at("rebuild", "batch:3"), pipeline_file="/data/clicks.py"),
    target="batch:3",
    facts=Facts(
        planned=6,
        committed=5,
        state=5,
        written=5,
        target=3,
        contributing=2,
        pending=4,
        watermark_ms=1_767_225_600_000,
        retention_ms=60_000,
        delay_ms=600_000,
        checkpoint_present=True,
        ranges_from="checkpoint",
        notes=("batches were replayed under other settings",),
        adopted=None,
        keeps_unmarked=False,
    ),
    preconditions=(
        Precondition(0, "generation", "1"),
        Precondition(0, "planned", "6"),
        Precondition(0, "committed", "5"),
        Precondition(0, "written", "5"),
        Precondition(0, "history", "ab" * 32),
        Precondition(0, "pipeline", "cd" * 32),
        Precondition(0, "source-files", "none"),
        Precondition(4, "written", "5"),
        Precondition(4, "readers", "none"),
        Precondition(5, "generation", "1"),
    ),
    actions=ACTIONS,
    cost=Cost(
        batches_replayed=2,
        apply=Work(2, 200, 0, 2, 2048, 1700, 2),
        run=Work(2, 100, 1, None, None, None, 0),
        rows_recorded=600,
        output=Kept(2, None, 2, 2000),
        checkpoint_bytes=None,
    ),
    risks=("rows that were late may be counted",),
    undo=undo_of(ACTIONS),
    downstream=(),
)
FROM_THE_START = replace(
    PLAN,
    actions=(
        BuildGeneration(2, "61a84303", 0, 3, None),
        ReplayBatches(2, 0, 3, ()),
        VerifyGeneration(2, 0, 3, None, 3),
    ),
    facts=replace(PLAN.facts, checkpoint_present=False, ranges_from="ledger", pending=None, written=None),
    undo=undo_of((BuildGeneration(2, "61a84303", 0, 3, None),)),
    risks=(),
)
WITHOUT_STATE = replace(
    PLAN,
    actions=(
        BuildGeneration(2, "61a84303", 4, 3, None),
        VerifyGeneration(2, 4, 3, None, None),
        CutSink(Cut(3, (4, 5), members=(Cut(3, (4, 5), rows=12), Cut(3, ())))),
        SwitchGeneration(1, 2),
    ),
)
COPIED = replace(
    PLAN,
    request=replace(PLAN.request, goal="resume"),
    actions=(CopyGeneration(2, 1, "61a84303", 5, 6, 5), VerifyGeneration(2, 6, 5, 6, 5)),
)
START = SourceStart("0", '{"clicks":{"0":9}}', {"0": "v1"}, {"0": "v1"}, "clicks: 9")
RESET = replace(
    PLAN,
    request=replace(PLAN.request, goal="reset"),
    actions=(StartGeneration(2, "61a84303", 5, (START,)), SwitchGeneration(1, 2)),
)
SWAPS = (StageOutput(3), RunStaged(2), SwapOutput(Swap(PLAN.id, "stream-id", 5)))
SWAPPED = replace(PLAN, request=replace(PLAN.request, goal="replay"), actions=SWAPS, undo=undo_of(SWAPS))
SIDE = BackfillDirectory("parquet", "/data/older rows")
ASIDES = (
    StartGeneration(2, "61a84303", -1, (replace(START, first=None),)),
    VerifyGeneration(2, 0, -1, None, None),
    RunIntoDirectory(2, {"0": '{"clicks":{"0":12}}'}, SIDE),
)
ASIDE = replace(
    PLAN,
    request=replace(PLAN.request, goal="backfill", output="aside", into=SIDE.path),
    target="earliest",
    actions=ASIDES,
    preconditions=(Precondition(0, "generation", "1"), Precondition(2, "side-output", "none")),
    undo=undo_of(ASIDES),
)
NOTHING = replace(PLAN, request=replace(PLAN.request, goal="resume"), actions=(), undo=(), preconditions=())
PLANS = {
    "cut": PLAN,
    "from-the-start": FROM_THE_START,
    "without-state": WITHOUT_STATE,
    "copied": COPIED,
    "reset": RESET,
    "swapped": SWAPPED,
    "aside": ASIDE,
    "nothing": NOTHING,
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_the_whole_runbook(plan: Plan, snapshot: SnapshotAssertion) -> None:
    assert runbook(plan, HOME, FILE) == snapshot


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_every_command_in_it_can_be_typed(plan: Plan) -> None:
    found = [block or inline for block, inline in COMMAND.findall(runbook(plan, HOME, FILE))]

    assert len(found) > len(plan.preconditions) // 2
    for command in found:
        arguments = shlex.split(command)[1:]
        assert make_parser(arguments).parse_args(arguments).verb


def test_every_action_has_a_step(tmp_path: Path) -> None:
    text = runbook(PLAN, Home(tmp_path), FILE)

    steps = text[text.index("## Steps") : text.index("## Verify afterwards")]
    assert len(re.findall(r"^### \d+\. ", steps, re.MULTILINE)) == len(ACTIONS)
