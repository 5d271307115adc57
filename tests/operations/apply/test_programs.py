"""Which program a generation that an operation has built counts as made by."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from slackwater.core.errors import Refused
from slackwater.core.program import OperatorShape, Program, Traced, Window, made_by, with_started
from slackwater.ledger.recording.stream_files import write_stream_file_of
from slackwater.operations.make_plan import make_plan
from slackwater.operations.plan.plan import Plan, Request
from slackwater.runtime.program.code_reach import environment_of
from slackwater.runtime.run.before_start import program_json
from tests.support.errors import raises_code
from tests.support.homes import STREAM, HomeSpec
from tests.support.rebuilds import BEGINNING, Project, StubReplayer, StubRuntime, make_project
from tests.support.stages import DAY, make_stages, read_next, read_uncopied

OLD, LATER = {"file": "old"}, {"file": "of batches 4 and 5"}
ENTRIES = with_started(made_by(OLD), LATER, 3)


def _project(folder: Path, programs: Sequence[Mapping[str, object]] = ENTRIES) -> Project:
    project = make_project(folder, HomeSpec())
    with project.open() as workspace:
        workspace.ledger.update_generation(STREAM, 1, programs=programs)
        write_stream_file_of(workspace.home, workspace.ledger, STREAM)
    return project


def _programs(project: Project) -> list[Mapping[str, object]]:
    with project.open() as workspace:
        number = workspace.ledger.find_stream(STREAM).current_generation
        return list(workspace.ledger.generation(STREAM, number).programs or ())


def test_a_rebuild_makes_the_code_that_replayed_the_program_and_undo_takes_it_back(tmp_path: Path) -> None:
    project = _project(tmp_path)
    plan = project.plan()

    project.apply(plan)

    (entry,) = _programs(project)
    assert entry["after"] == -1
    assert entry["program"] not in (OLD, LATER)
    project.undo(plan)
    assert _programs(project) == ENTRIES


@pytest.mark.parametrize(("first", "inherited"), [(4, made_by(OLD)), (5, ENTRIES)])
def test_copied_state_inherits_the_programs_of_its_batches(
    tmp_path: Path, first: int, inherited: list[Mapping[str, object]]
) -> None:
    project = _project(tmp_path)

    project.apply(project.plan(f"batch:{first}", goal="replay"))

    assert _programs(project) == inherited


def test_a_reset_is_of_the_code_that_was_applied(tmp_path: Path) -> None:
    project = _project(tmp_path)

    project.apply(project.plan_reset("swap", BEGINNING))

    assert len(_programs(project)) == 1
    assert _programs(project)[0]["program"] not in (OLD, LATER)


class OfHours(StubReplayer):
    def program(self, settings: Mapping[str, str] | None = None) -> Mapping[str, object] | None:
        return None if settings == {"unknown": "yes"} else _windowed(3_600_000)


def _windowed(length_ms: int) -> dict[str, object] | None:
    window = Window("tumbling", "ts", length_ms, length_ms, text=f"window {length_ms}")
    return program_json(
        Program(operators=(OperatorShape("aggregate", keys=(Traced("w", window.text),), windows=(window,)),))
    )


@pytest.mark.parametrize("target", ["last-written", "batch:3"])
def test_a_rebuild_that_leaves_the_output_wrong_is_refused(tmp_path: Path, target: str) -> None:
    project = _project(tmp_path, made_by(_windowed(1_800_000)))
    before, plan = project.in_use(), project.plan(target)

    with raises_code(Refused, "rebuild-insufficient") as caught:
        project.apply(plan, OfHours(project.folder / "clicks.py"))

    assert "window length was 30 minutes, is 1 hour" in str(caught.value)
    assert "plan reset clicks/per_page --from earliest --output swap" in str(caught.value.hint)
    assert project.in_use() == before


def test_a_refused_plan_repeats_the_options_of_the_last_run(tmp_path: Path) -> None:
    project = _project(tmp_path, made_by(_windowed(1_800_000)))
    clicks = project.folder / "clicks.py"
    clicks.write_text(clicks.read_text() + "# edited\n")
    words = ("--conf", "spark.app.zone=Europe/Berlin")

    with project.open() as workspace:
        workspace.ledger.register_stream(workspace.ledger.find_stream(STREAM)._replace(session=words))
        with pytest.raises(Refused) as caught:
            make_plan(workspace, STREAM, Request.at("rebuild", "batch:3"), StubRuntime(OfHours(clicks)), lambda _: None)

    assert caught.value.code == "rebuild-insufficient"
    assert f"--pipeline {clicks} {' '.join(words)}" in str(caught.value.hint).splitlines()[0]


def _plan_with_stage(folder: Path, spec: HomeSpec, reads: str, *, request: Request, read: int | None = None) -> Plan:
    """A plan of changed code for the stream and ``clicks/day``, whose batch ``read`` reads what batch 0 wrote."""
    project = make_stages(folder, {"day": (reads, spec)})
    with project.open() as workspace:
        workspace.ledger.update_generation(DAY, 1, programs=made_by(_windowed(1_800_000)))
    if read is not None:
        read_uncopied(project, "day", "out/part-0.parquet", read)
        read_next(project, "day", read)
    clicks = project.folder / "clicks.py"
    clicks.write_text(clicks.read_text() + "# edited\n")
    with project.open() as workspace:
        return make_plan(workspace, STREAM, request, StubRuntime(OfHours(clicks)), lambda _: None)


def test_a_later_stage_that_processes_all_again_is_right_with_any_code(tmp_path: Path) -> None:
    """Where the first stream keeps batches, too: of a swap all is new to the stage."""
    request = Request.at("replay", "batch:3", output="swap", downstream=True)
    killed_in_batch_0 = HomeSpec(planned=0, committed=-1, state=None, written=-1)

    plan = _plan_with_stage(tmp_path / "project", killed_in_batch_0, "out", request=request)

    assert [(one.stream, one.goal, one.target) for one in plan.downstream] == [(DAY, "rebuild", "earliest")]


def test_a_later_stage_that_keeps_batches_of_other_code_is_refused(tmp_path: Path) -> None:
    """Where the first stream processes all again, too."""
    request = Request.at("replay", "earliest", downstream=True)
    spec = HomeSpec(planned=2, committed=2, state=2, written=2)

    with raises_code(Refused, "rebuild-insufficient") as caught:
        _plan_with_stage(tmp_path / "project", spec, "other", request=request, read=3)

    assert DAY in str(caught.value)


def test_all_output_written_again_is_right_with_any_code(tmp_path: Path) -> None:
    project = _project(tmp_path, made_by(_windowed(1_800_000)))

    project.apply(project.plan("earliest"), OfHours(project.folder / "clicks.py"))

    assert _programs(project) == made_by(_windowed(3_600_000))


def test_a_plan_says_what_functions_would_get_now_that_they_did_not_get(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    then = environment_of(["RATE", "SAME", "UNSET"], {}, {"TZ": "Asia/Tokyo", "RATE": "2", "SAME": "1"})
    project = _project(tmp_path, made_by(program_json(Program(environment=then))))
    for name, value in {"TZ": "Europe/Berlin", "RATE": "3", "SAME": "1"}.items():
        monkeypatch.setenv(name, value)
    changed = [one for one in project.plan().risks if one.endswith("with the environment that it is started in")]
    assert len(changed) == 2
    assert "ran in the time zone Asia/Tokyo, run in Europe/Berlin" in changed[0]
    assert "environment variable RATE of Python functions has a new value" in changed[1]

    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("RATE", "2")
    assert not any("with the environment that it is started in" in one for one in project.plan().risks)
