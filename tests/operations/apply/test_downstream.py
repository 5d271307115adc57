"""Plans for several stages: who has to do what, one apply, one undo."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from slackwater.core.errors import Moved, OutcomeUnknown, Refused, UsageError
from slackwater.core.program import QueryProfile
from slackwater.core.records import LogLine, StreamRecord
from slackwater.core.sink import OutputTreatment
from slackwater.diagnose.number_line import findings
from slackwater.operations.action import Display
from slackwater.operations.apply.undo_operation import find_operation, plan_of_operation, undo_operation
from slackwater.operations.plan.context import check_reproducible
from slackwater.operations.plan.plan import Plan, Request
from tests.support.errors import raises_code
from tests.support.homes import LAYOUT, STREAM, HomeSpec
from tests.support.rebuilds import Project, StopBefore, StubReplayer
from tests.support.stages import DAY, IDLE, MONTH, STAGE, Stages, make_stages, read_next, read_uncopied, three_stages


@pytest.fixture
def project(tmp_path: Path) -> Stages:
    return three_stages(tmp_path / "project")


def _replay(project: Project, target: str = "batch:3") -> Plan:
    return project.plan(target, goal="replay", downstream=True)


def _asked(plan: Plan) -> list[tuple[str, str, str, str]]:
    return [(one.stream, one.goal, one.request.target, one.request.output) for one in plan.members]


def test_each_stage_is_named_with_what_it_must_do(project: Stages) -> None:
    plan = _replay(project)

    assert _asked(plan) == [
        (STREAM, "replay", "batch:3", "cut"),
        (DAY, "replay", "batch:3", "cut"),
        (MONTH, "replay", "batch:3", "cut"),
    ]
    assert [one.id for one in plan.members] == [plan.id, f"{plan.id}-2", f"{plan.id}-3"]
    assert f"{IDLE} has read nothing that is changed: nothing to do" in plan.facts.notes


def test_all_of_them_continue_before_what_is_gone(project: Stages) -> None:
    before = project.in_use()
    plan = _replay(project)

    assert project.apply(plan)

    for stream in (DAY, MONTH):
        after = project.snapshot(stream)
        # Not with its recorded range: the files of that are cut.
        assert (after.marks.next_batch, after.marks.next_is_planned, after.marks.written) == (3, False, 2)
        assert findings(after)[0].code == "clean"
    assert project.snapshot(IDLE).stream.current_generation == 1
    assert not project.apply(plan)
    project.undo(plan)
    assert project.in_use() == before


def test_a_stage_that_has_not_written_what_it_read_is_rebuilt(tmp_path: Path) -> None:
    planned = HomeSpec(planned=3, committed=2, state=2, written=2)
    project = make_stages(tmp_path / "project", {"day": ("out", planned)})
    before = project.in_use()

    plan = _replay(project)

    assert _asked(plan)[1] == (DAY, "rebuild", "batch:2", "cut")
    project.apply(plan)
    marks = project.snapshot(DAY).marks
    assert (marks.next_batch, marks.next_is_planned, marks.written) == (3, False, 2)
    project.undo(plan)
    assert project.in_use() == before


def test_a_stage_of_two_sources_goes_back_to_the_first_batch_that_read_either(tmp_path: Path) -> None:
    stages = {"day": ("out", STAGE), "other": ("out", STAGE), "month": ("day", STAGE)}
    project = make_stages(tmp_path / "project", stages)

    plan = _replay(project, "batch:5")

    assert {stream: target for stream, _, target, _ in _asked(plan)} == dict.fromkeys(
        (STREAM, DAY, MONTH, "clicks/other"), "batch:5"
    )
    assert [one.stream for one in plan.members].index(DAY) < [one.stream for one in plan.members].index(MONTH)


def test_what_is_swapped_is_all_new_to_the_stages(project: Stages) -> None:
    plan = project.plan("batch:3", goal="replay", output="swap", downstream=True)

    assert _asked(plan)[1:] == [
        (DAY, "replay", "earliest", "swap"),
        (IDLE, "replay", "earliest", "swap"),
        (MONTH, "replay", "earliest", "swap"),
    ]


def test_without_it_the_refusal_names_the_readers(project: Stages) -> None:
    with raises_code(Refused, "cut-was-read", found=DAY) as refused:
        project.plan("batch:3", goal="replay")

    assert (refused.value.hint or "").startswith(
        f"also plan these streams: slackwater plan replay {STREAM} --from batch:3 --downstream"
    )


BY_ORDER = LAYOUT | {"by_order": ["first"]}


def _by_order(folder: Path, layout: dict[str, object]) -> Stages:
    """A later stage whose state has to be recomputed and cannot be: its checkpoint keeps no state."""
    return make_stages(folder, {"day": ("out", replace(STAGE, state=None, layout=layout))})


def test_what_is_said_of_the_order_of_rows_is_said_of_all_stages(tmp_path: Path) -> None:
    project = _by_order(tmp_path / "project", BY_ORDER)

    with raises_code(Refused, "state-not-reproducible") as refused:
        _replay(project)

    assert (refused.value.hint or "").startswith(
        f"if it gives the same for any order of the rows in a batch: slackwater plan replay {STREAM} --from batch:3 "
        f"--downstream --row-order any; else process everything again: slackwater plan reset {STREAM} "
    )
    plan = project.plan("batch:3", goal="replay", downstream=True, row_order="any")
    assert [one.request.row_order for one in plan.members] == ["any", "any"]
    assert any("first gives the same" in risk for risk in plan.downstream[0].risks)
    assert project.apply(plan, StubReplayer(project.folder / "clicks.py", BY_ORDER))


def test_a_stage_that_no_order_of_rows_helps_starts_again_with_the_first(tmp_path: Path) -> None:
    project = _by_order(tmp_path / "project", LAYOUT | {"operators": ["GlobalLimit"]})

    with pytest.raises(Refused) as refused:
        _replay(project)

    everything = f"slackwater plan reset {STREAM} --from earliest --downstream"
    assert refused.value.hint == f"process everything again: {everything}"


def test_a_stage_that_did_not_read_a_reset_output_first_is_reset_before() -> None:
    """A reset says nothing of the order of rows, and the same reset once more would be refused once more."""
    profile, day = QueryProfile.from_json(BY_ORDER), StreamRecord("clicks", "day", {}, "append", "")
    leader = Request.at("reset", "earliest", output="clear", downstream=True)

    with pytest.raises(Refused) as refused:
        check_reproducible(profile, day, Request.at("replay", "batch:2"), (STREAM, leader))

    assert refused.value.hint == (f"process {DAY} again before that: slackwater plan reset {DAY} --from earliest")


@pytest.mark.parametrize("goal", ["replay", "rebuild"])
def test_from_batch_0_on_no_state_is_recomputed(tmp_path: Path, goal: str) -> None:
    """Neither that of the first stream nor that of a later one, whatever it is made of."""
    limit = LAYOUT | {"operators": ["GlobalLimit"]}
    project = _by_order(tmp_path / "project", limit)

    plan = project.plan("earliest", goal=goal, downstream=True)

    assert _asked(plan)[1:] == [(DAY, "replay", "earliest", "cut")]
    assert project.apply(plan, StubReplayer(project.folder / "clicks.py", limit))


class _Stops(StubReplayer):
    def run_pending(self, *_: object, **__: object) -> tuple[int, int]:
        raise Refused("made-up", "Spark is not to be had")


def test_where_a_stage_fails_the_whole_can_be_continued_or_undone(tmp_path: Path) -> None:
    planned = HomeSpec(planned=3, committed=2, state=2, written=2)
    project = make_stages(tmp_path / "project", {"day": ("out", planned)})
    before, plan = project.in_use(), _replay(project)

    with pytest.raises(OutcomeUnknown) as unknown:
        project.apply(plan, _Stops(project.folder / "clicks.py"))

    assert f"slackwater undo {plan.id} --yes" in (unknown.value.hint or "")
    assert findings(project.snapshot(DAY))[0].code == "operation-unfinished"
    project.undo(plan)
    assert project.in_use() == before
    project.apply(plan)
    assert project.snapshot(DAY).marks.next_batch == 3


def test_nothing_of_it_is_done_where_the_first_stream_is_refused(project: Stages) -> None:
    before, plan = project.in_use(), project.plan("batch:2", downstream=True)

    with pytest.raises(Refused, match="not to be had"):
        project.apply(plan, _Stops(project.folder / "clicks.py"))

    assert project.in_use() == before
    for stream in (STREAM, DAY, MONTH):
        assert findings(project.snapshot(stream))[0].code == "clean"


def test_the_part_of_a_stage_is_neither_applied_nor_undone_alone(project: Stages) -> None:
    before, plan = project.in_use(), _replay(project)
    part = plan.downstream[0]

    with raises_code(Refused, "plan-of-a-part"):
        project.apply(part)
    project.apply(plan)
    with pytest.raises(Refused) as refused:
        project.apply(part)
    assert refused.value.hint == f"slackwater apply {_file(project, plan)} --yes"

    with project.open() as workspace:
        whole = find_operation(workspace, part.id)
        assert whole.id == plan.id
        undo_operation(workspace, whole, plan_of_operation(workspace, whole), Display())
    assert project.in_use() == before


def _file(project: Project, plan: Plan) -> Path:
    return project.home / "streams" / "clicks" / "per_page" / "operations" / plan.id / "plan.json"


@pytest.mark.parametrize("part", ["target", "stages", "ranges"])
def test_a_plan_that_was_edited_is_refused(part: str, project: Stages) -> None:
    before, plan = project.in_use(), _replay(project)
    stage = plan.downstream[0]
    edited = {
        "target": replace(plan, downstream=(replace(stage, target="batch:4"), *plan.downstream[1:])),
        "stages": replace(plan, downstream=plan.downstream[:1]),
        "ranges": replace(plan, request=replace(plan.request, ranges="new")),
    }[part]

    with raises_code(UsageError, "plan-damaged"):
        project.apply(edited)

    assert project.in_use() == before


@pytest.mark.parametrize("output", ["cut", "swap"])
@pytest.mark.parametrize("killed", [False, True])
def test_what_a_stream_has_read_since_the_plan_is_not_taken_out(
    tmp_path: Path, output: OutputTreatment, *, killed: bool
) -> None:
    """Its own program runs it, or its run was killed: only its checkpoint shows what it has read."""
    project = make_stages(tmp_path / "project", {"idle": ("other", STAGE)})
    plan = project.plan("batch:3", goal="replay", output=output)
    last = "stage-output" if output == "swap" else "cut-sink"
    before = project.files(project.folder / "out")
    if killed:
        with pytest.raises(KeyboardInterrupt):
            project.apply(plan, display=StopBefore(last))

    with raises_code(Moved, "moved-readers", found=IDLE):
        project.apply(plan, display=StopBefore(last, lambda: read_uncopied(project, "idle", "out/part-5.parquet", 6)))

    assert project.files(project.folder / "out") == before


@pytest.mark.parametrize("what", ["planned", "pipeline", "target"])
def test_where_a_stage_has_changed_the_whole_is_planned_again(what: str, tmp_path: Path) -> None:
    planned = HomeSpec(planned=3, committed=2, state=2, written=2)
    project = make_stages(tmp_path / "project", {"day": ("out", planned)})
    plan = _replay(project)
    stage = plan.downstream[0]
    if what == "planned":
        read_next(project, "day", 4)
    elif what == "pipeline":
        # Only the stage runs its query again.
        assert not any(one.name == "pipeline" for one in plan.preconditions)
        (project.folder / "clicks.py").write_text("import slackwater as sw\n")
    else:
        plan = replace(plan, downstream=(replace(stage, target="batch:4"),))

    with pytest.raises((Moved, UsageError)) as refused:
        project.apply(plan)

    assert refused.value.code == ("plan-damaged" if what == "target" else f"moved-{what}")
    assert refused.value.where == f"stream {DAY}"
    assert (refused.value.hint or "").endswith(f"slackwater plan replay {STREAM} --from batch:3 --downstream")


def test_streams_that_read_each_other_have_no_order(project: Stages) -> None:
    reading = json.dumps({"path": f"file://{project.folder}/day/part-0.parquet", "timestamp": 1, "batchId": 0})
    with project.open() as workspace:
        workspace.ledger.record_lines([LogLine(STREAM, 1, "sources/1", 0, f"v1\n{reading}")])

    with raises_code(Refused, "downstream-cycle"):
        _replay(project)
