"""Resume and replay on damaged checkpoints: what is planned, that it holds afterwards, and that undo restores all."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from slackwater.core.errors import Moved, Refused
from slackwater.diagnose.number_line import findings
from slackwater.operations.actions.generations import CopyGeneration
from slackwater.operations.actions.outputs import CutSink
from slackwater.operations.plan.plan import Plan
from slackwater.sinks.common.contract import Output
from slackwater.sinks.common.registry import open_output
from tests.support.errors import raises_code
from tests.support.homes import STATELESS, STREAM, HomeSpec, watermark_ms
from tests.support.rebuilds import CLEAN, Project, make_project

Damage = Callable[[Path], object]


def _tear(name: str) -> Damage:
    def tear(checkpoint: Path) -> None:
        file = checkpoint / name
        file.write_bytes(file.read_bytes()[:5])

    return tear


def _remove(*names: str) -> Damage:
    def remove(checkpoint: Path) -> None:
        for name in names:
            (checkpoint / name).unlink()

    return remove


def _nothing(_: Path) -> None: ...


def _torn_6(checkpoint: Path) -> None:
    (checkpoint / "commits" / "6").write_text('v1\n{"next')


NEWEST = ("offsets/5", "commits/5")
STATE_OF_5 = "state/0/0/6.delta"
SEVERAL = HomeSpec(planned=8)
BEHIND = HomeSpec(written=3)
AHEAD = HomeSpec(planned=6, committed=5, written=6)
RESUMED: dict[str, tuple[HomeSpec, Damage, int, int | None]] = {
    "torn plan of the next batch": (CLEAN, _tear("offsets/6"), 5, 6),
    "torn plan of the newest batch": (HomeSpec(), _tear("offsets/5"), 5, None),
    "torn commit": (HomeSpec(), _tear("commits/5"), 5, None),
    "no metadata": (HomeSpec(), _remove("metadata"), 5, None),
    "a commit without its plan": (HomeSpec(), _remove("offsets/5"), 5, None),
    "a directory among the plans": (HomeSpec(), lambda checkpoint: (checkpoint / "offsets" / "7").mkdir(), 5, None),
    "several batches that are not committed": (SEVERAL, _nothing, 5, 6),
    "torn commit that is not recorded, the next batch is planned": (
        HomeSpec(planned=7, state=6, written=6),
        _torn_6,
        6,
        7,
    ),
    "the sink is behind": (BEHIND, _nothing, 3, 4),
    "logs of one batch before, its state is there": (HomeSpec(), _remove(*NEWEST), 5, None),
}
"""By name: the home, its damage, the batch to continue after and the one that stays planned."""

RUN_AGAIN: dict[str, tuple[HomeSpec, Damage, int]] = {
    "torn commit that is not recorded": (AHEAD, _torn_6, 6),
    "the next batch is in the sink, too": (HomeSpec(planned=7, state=6, written=7), _torn_6, 7),
    "one batch older": (HomeSpec(), _remove(*NEWEST, STATE_OF_5), 5),
    "the newest state file": (HomeSpec(), _remove(STATE_OF_5), 5),
    "a torn state file": (HomeSpec(), _tear(STATE_OF_5), 5),
}
"""By name: the home, its damage, and the batch of the sink that has to be written again."""

NOT_RESUMED: dict[str, tuple[HomeSpec, Damage]] = {
    "no checkpoint": (HomeSpec(), shutil.rmtree),
    "a state file in the middle": (HomeSpec(), _remove("state/0/0/3.delta")),
}


def _codes(project: Project) -> list[str]:
    return [finding.code for finding in findings(project.snapshot())]


def _applied_and_undone(project: Project, plan: Plan) -> None:
    before = project.in_use()
    project.apply(plan)
    assert _codes(project)[0] == "clean"
    assert project.plan(goal="resume").actions == ()
    assert not project.apply(plan)
    project.undo(plan)
    assert project.in_use() == before


@pytest.mark.parametrize("name", RESUMED)
def test_a_resume_removes_the_damage_without_spark(name: str, tmp_path: Path) -> None:
    spec, damage, target, pending = RESUMED[name]
    project = make_project(tmp_path / "project", spec)
    damage(project.checkpoint(1))
    assert _codes(project)[0] != "clean"

    plan = project.plan(goal="resume")

    assert (plan.facts.target, plan.facts.pending) == (target, pending)
    assert not any(isinstance(action, CutSink) for action in plan.actions)
    _applied_and_undone(project, plan)


@pytest.mark.parametrize("name", NOT_RESUMED)
def test_a_resume_without_state_is_refused(name: str, tmp_path: Path) -> None:
    spec, damage = NOT_RESUMED[name]
    project = make_project(tmp_path / "project", spec)
    damage(project.checkpoint(1))
    before = project.in_use()

    with pytest.raises(Refused) as refused:
        project.plan(goal="resume")

    assert (refused.value.code, project.in_use()) == ("state-not-kept", before)
    assert refused.value.hint == f"recompute it: slackwater plan rebuild {STREAM}"


def test_there_is_nothing_to_do(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    before = project.in_use()

    plan = project.plan(goal="resume")

    assert (plan.actions, plan.undo, plan.preconditions) == ((), (), ())
    assert plan.facts.notes[0].startswith("nothing to do: clean: ")
    assert project.apply(plan)
    assert project.in_use() == before
    with project.open() as workspace:
        assert not list(workspace.ledger.operations(STREAM))


def test_a_plan_after_which_the_stream_ran_is_not_called_damaged(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    entries = {entry: entry.read_bytes() for entry in (project.checkpoint(1) / "offsets").glob("[56]")}
    _tear("offsets/5")(project.checkpoint(1))
    _remove("offsets/6")(project.checkpoint(1))
    plan = project.plan(goal="resume")
    # Nothing is left to do: a plan made now has no preconditions.
    for entry, content in entries.items():
        entry.write_bytes(content)

    with raises_code(Moved, "moved-planned", found="6"):
        project.apply(plan)


@pytest.mark.parametrize("lost", [True, False])
def test_a_batch_that_only_the_sink_has_finished_is_completed_by_the_next_run(tmp_path: Path, *, lost: bool) -> None:
    project = make_project(tmp_path / "project", HomeSpec() if lost else AHEAD)
    if lost:
        _remove("commits/5")(project.checkpoint(1))
    assert _codes(project) == ["commit-missing"]

    plan = project.plan(goal="resume")

    assert plan.actions == ()
    assert "the next run completes it without writing it again" in plan.facts.notes[0]


def test_a_commit_that_is_not_recorded_is_as_the_next_batch_shows_it(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", HomeSpec(planned=7, state=6, written=6))
    _torn_6(project.checkpoint(1))

    project.apply(project.plan(goal="resume"))

    expected = f'v1\n{{"nextBatchWatermarkMs":{watermark_ms(7)}}}'
    assert (project.checkpoint(2) / "commits" / "6").read_text() == expected


@pytest.mark.parametrize("name", RUN_AGAIN)
def test_the_newest_batch_is_cut_and_runs_again(name: str, tmp_path: Path) -> None:
    spec, damage, batch = RUN_AGAIN[name]
    project = make_project(tmp_path / "project", spec)
    damage(project.checkpoint(1))

    plan = project.plan(goal="resume")

    assert (plan.facts.target, plan.facts.pending) == (batch - 1, batch)
    assert [action.cut.batches for action in plan.actions if isinstance(action, CutSink)] == [(batch,)]
    assert "which is cut and runs again" in plan.facts.notes[0]
    _applied_and_undone(project, plan)


def test_a_query_without_state_needs_no_checkpoint(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", HomeSpec(state=None, layout=STATELESS))
    shutil.rmtree(project.checkpoint(1))

    plan = project.plan(goal="resume")

    assert next(one for one in plan.actions if isinstance(one, CopyGeneration)).state is None
    _applied_and_undone(project, plan)


@pytest.mark.parametrize(
    ("target", "after", "state"),
    [("batch:4", 3, 3), ("last-written", 4, 4), ("batch:0", -1, None), ("earliest", -1, None)],
)
def test_a_replay_copies_the_state_before_its_first_batch(
    target: str, after: int, state: int | None, tmp_path: Path
) -> None:
    project = make_project(tmp_path / "project")

    plan = project.plan(target, goal="replay")

    copy = next(one for one in plan.actions if isinstance(one, CopyGeneration))
    cut = next(one.cut for one in plan.actions if isinstance(one, CutSink))
    assert (copy.last, copy.pending, copy.state, cut.after) == (after, after + 1, state, after)
    project.apply(plan)
    assert _output(project).last_written() == after
    project.undo(plan)
    _applied_and_undone(project, plan)


def _output(project: Project) -> Output:
    with project.open() as workspace:
        return open_output(workspace.ledger.find_stream(STREAM).sink)


def test_where_the_state_is_not_kept_a_replay_recomputes_it(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    _remove("state/0/0/3.delta")(project.checkpoint(1))

    plan = project.plan("batch:4", goal="replay")

    assert [action.kind for action in plan.actions[:2]] == ["build-generation", "replay-batches"]
    _applied_and_undone(project, plan)


@pytest.mark.parametrize(
    ("spec", "target", "output", "code"),
    [
        (HomeSpec(), "batch:6", "cut", "target-unwritten"),
        (HomeSpec(written=-1, planned=-1, committed=-1, state=None), "last-written", "cut", "target-unwritten"),
        (HomeSpec(), "batch:4", "keep", "output-skips"),
        (HomeSpec(sink={"kind": "console"}), "batch:4", "cut", "sink-uncuttable"),
    ],
)
def test_a_replay_that_cannot_be_is_refused(
    spec: HomeSpec, target: str, output: str, code: str, tmp_path: Path
) -> None:
    project = make_project(tmp_path / "project", spec)
    before = project.in_use()

    with pytest.raises(Refused) as refused:
        project.plan(target, goal="replay", output="keep" if output == "keep" else "cut")

    assert (refused.value.code, project.in_use()) == (code, before)


def test_a_sink_that_skips_no_batch_can_keep_what_it_has(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", HomeSpec(sink={"kind": "console"}, written=-1))

    plan = project.plan("batch:4", goal="replay", output="keep")

    assert "may be written twice" in plan.risks[-1]
    before = project.in_use()
    project.apply(plan)
    project.undo(plan)
    assert project.in_use() == before


def test_a_run_that_planned_no_batch_is_undone_with_its_generation(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    before, plan = project.in_use(), project.plan("batch:4", goal="replay")
    project.apply(plan)
    with project.open() as workspace:
        run = workspace.ledger.begin_run(STREAM, 2, "4.1.3")
        workspace.ledger.end_run(run.id, "finished", None)

    project.undo(plan)

    assert project.in_use() == before
    with project.open() as workspace:
        assert {one.generation for one in workspace.ledger.runs(STREAM)} == {1}
