"""``apply`` runs no code but that which the plan names by its digest."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from slackwater.core.errors import Moved, Refused
from slackwater.core.program import InputShape, OperatorShape, Program, Traced, with_started
from slackwater.core.records import GenerationRecord
from slackwater.operations.apply.operation import Operation
from slackwater.operations.plan.document import DIGEST, digest_of, plan_again, render
from slackwater.operations.plan.plan import Plan
from slackwater.runtime.run.before_start import program_json
from tests.support import warm_python
from tests.support.errors import raises_code
from tests.support.homes import STREAM
from tests.support.rebuilds import BEGINNING, Project, StopBefore, StubReplayer, make_project
from tests.support.stages import DAY, three_stages


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "project")


def _slackwater(project: Project, *arguments: str) -> subprocess.CompletedProcess[str]:
    return warm_python.run(arguments, project.folder, {})


@pytest.mark.parametrize("reference", ["other.py", "package.pipeline", "package"])
def test_a_pipeline_that_the_plan_was_not_made_for_is_not_run(project: Project, reference: str) -> None:
    code = f"open({str(project.folder / 'ran')!r}, 'w').close()\n"
    (project.folder / "package").mkdir()
    for file in ("other.py", "package/__init__.py", "package/pipeline.py"):
        (project.folder / file).write_text(code)
    before = project.files(project.folder / "out", project.checkpoint(1).parent)

    # Apply a plan whose pipeline is another one, with the digest of what the plan says now.
    document = json.loads(render(project.plan("batch:3")))
    document.pop(DIGEST)
    document["pipeline_file"] = reference
    document["request"]["query_read"] = True
    document[DIGEST] = digest_of(document)
    (project.folder / "plan.json").write_text(json.dumps(document))
    done = _slackwater(project, "apply", "plan.json", "--yes")

    assert not (project.folder / "ran").exists()
    assert done.returncode in (2, 5)
    assert "Traceback" not in done.stderr
    assert project.files(project.folder / "out", project.checkpoint(1).parent) == before


def test_an_operation_is_not_continued_with_other_code(project: Project) -> None:
    plan = project.plan("batch:3")
    (project.folder / "plan.json").write_text(render(plan))
    with pytest.raises(KeyboardInterrupt):
        project.apply(plan, display=StopBefore("replay-batches"))
    clicks = project.folder / "clicks.py"
    before = clicks.read_text()
    clicks.write_text(f"open({str(project.folder / 'ran')!r}, 'w').close()\n")

    refused = _slackwater(project, "apply", "plan.json", "--yes")

    assert (refused.returncode, "pipeline-edited" in refused.stderr) == (5, True)
    assert not (project.folder / "ran").exists()
    assert project.checkpoint(1).exists()
    assert not project.checkpoint(2).exists(), "what was built with the old code is removed"
    clicks.write_text(before)
    assert project.apply(project.plan("batch:3"))


@dataclass
class ReadsSettings(StubReplayer):
    """The query of files that also read a threshold from another file, and a value of the process."""

    threshold: int = 4
    value: str = "first"
    written: str = "(count > 1)"

    def program(self, settings: Mapping[str, str] | None = None) -> Mapping[str, object] | None:
        rows = InputShape("source0", filters=(f"(n > {self.threshold})",))
        written = InputShape("operator0", filters=(self.written,), columns=(Traced("run", f"'{self.value}'"),))
        aggregate = OperatorShape("aggregate", inputs=(rows,))
        return program_json(Program(operators=(aggregate,), rows=(written,), code=self.value, settings=settings or {}))


def test_an_operation_is_not_continued_with_another_query_of_the_same_files(project: Project) -> None:
    plan, pipeline = project.plan("batch:3"), project.folder / "clicks.py"
    with pytest.raises(KeyboardInterrupt):
        project.apply(plan, ReadsSettings(pipeline), display=StopBefore("replay-batches"))

    with raises_code(Refused, "pipeline-edited") as refused:
        project.apply(plan, ReadsSettings(pipeline, threshold=5))

    assert "filter (n > 5) was added" in str(refused.value.found)
    assert not project.checkpoint(2).exists()
    assert project.apply(project.plan("batch:3"))


def test_a_replay_goes_on_with_rows_that_are_others_in_each_process(project: Project) -> None:
    """A time or an id of the run behind the state, which is all that a replay makes."""
    plan, pipeline = project.plan("batch:3"), project.folder / "clicks.py"
    with pytest.raises(KeyboardInterrupt):
        project.apply(plan, ReadsSettings(pipeline), display=StopBefore("replay-batches"))

    assert project.apply(plan, ReadsSettings(pipeline, value="second"))


class KilledStaged(ReadsSettings):
    """Is killed in the staged run, which has recorded its program, as a run does before it writes."""

    def run_staged(self, operation: Operation, generation: GenerationRecord) -> None:
        super().run_staged(operation, generation)
        started = with_started(
            generation.programs, self.program(), -1 if generation.based_at is None else generation.based_at
        )
        operation.ledger.update_generation(generation.stream, generation.number, programs=started)
        raise KeyboardInterrupt


def _swap(project: Project, goal: str) -> Plan:
    """A plan with a staged run: of a reset on a new checkpoint, of a replay on a copy."""
    project.claim_output()
    return (
        project.plan_reset("swap", BEGINNING) if goal == "reset" else project.plan("batch:3", goal=goal, output="swap")
    )


@pytest.mark.parametrize("goal", ["reset", "replay"])
@pytest.mark.parametrize(("other", "found"), [({"threshold": 5}, "(n > 5)"), ({"written": "(n > 9)"}, "(n > 9)")])
def test_a_staged_run_is_not_continued_with_another_query_of_the_same_files(
    project: Project, goal: str, other: Mapping[str, Any], found: str
) -> None:
    plan, pipeline = _swap(project, goal), project.folder / "clicks.py"
    before = project.in_use()
    with pytest.raises(KeyboardInterrupt):
        project.apply(plan, KilledStaged(pipeline))

    with raises_code(Refused, "pipeline-edited") as refused:
        project.apply(plan, ReadsSettings(pipeline, **other))

    assert f"filter {found} was added" in str(refused.value.found)
    assert {name: project.in_use().get(name) for name in before} == before


@pytest.mark.parametrize("goal", ["reset", "replay"])
def test_it_is_continued_with_a_value_of_the_process(project: Project, goal: str) -> None:
    plan, pipeline = _swap(project, goal), project.folder / "clicks.py"
    with pytest.raises(KeyboardInterrupt):
        project.apply(plan, KilledStaged(pipeline))

    assert project.apply(plan, ReadsSettings(pipeline, value="second"))


def test_a_checkpoint_that_is_no_copy_is_not_run_with_another_query_either(project: Project) -> None:
    """The state that was laid out or replayed is that of the query before."""
    plan, pipeline = _swap(project, "reset"), project.folder / "clicks.py"
    with pytest.raises(KeyboardInterrupt):
        project.apply(plan, ReadsSettings(pipeline), display=StopBefore("run-staged"))

    with pytest.raises(Refused, match="was edited"):
        project.apply(plan, ReadsSettings(pipeline, threshold=5))


def test_a_copy_is_run_with_the_query_that_the_plan_is_for(project: Project) -> None:
    """An upgraded one may read other rows than the one that made the copied state, as long as nothing is written."""
    plan, pipeline = _swap(project, "replay"), project.folder / "clicks.py"
    with pytest.raises(KeyboardInterrupt):
        project.apply(plan, ReadsSettings(pipeline), display=StopBefore("run-staged"))

    assert project.apply(plan, ReadsSettings(pipeline, threshold=5))


@pytest.mark.parametrize("goal", ["replay", "rebuild"])
def test_a_plan_that_runs_code_names_it(project: Project, goal: str) -> None:
    """Also a swap whose new checkpoint is a copy, which replays nothing."""
    project.claim_output()
    plan = project.plan("batch:3", goal=goal, output="swap" if goal == "replay" else "cut")
    runs = [index for index, one in enumerate(plan.actions) if one.kind in {"run-staged", "build-generation"}]
    assert runs
    assert set(runs) == {one.action for one in plan.preconditions if one.name == "pipeline"}


def _upgraded(project: Project) -> Path:
    """The pipeline in a file that no run has recorded."""
    file = project.folder / "upgraded.py"
    file.write_text((project.folder / "clicks.py").read_text() + "# upgraded\n")
    return file


def test_what_plans_again_names_the_file_that_was_named(project: Project) -> None:
    upgraded = _upgraded(project)
    plan = project.plan_unread("rebuild", "last-written", str(upgraded))
    upgraded.write_text(upgraded.read_text() + "# edited\n")

    with raises_code(Moved, "moved-pipeline") as moved:
        project.apply(plan)

    assert moved.value.hint == f"plan again: slackwater plan rebuild {STREAM} --pipeline {upgraded}"
    assert plan_again(project.plan()) == f"slackwater plan rebuild {STREAM}", "the file of the last run is not named"


def test_what_plans_otherwise_names_the_file_that_was_named(tmp_path: Path) -> None:
    stages = three_stages(tmp_path / "project")
    upgraded = _upgraded(stages)

    with raises_code(Refused, "cut-was-read") as refused:
        stages.plan_unread("replay", "batch:3", str(upgraded))

    hints = (refused.value.hint or "").splitlines()
    assert hints[0].endswith(f"plan replay {STREAM} --from batch:3 --downstream --pipeline {upgraded}")
    assert all(hint.endswith(f" --pipeline {upgraded}") for hint in hints)


def test_a_later_stage_of_the_same_pipeline_is_planned_with_it(tmp_path: Path) -> None:
    stages = three_stages(tmp_path / "project")
    upgraded = str(_upgraded(stages))

    plan = stages.plan("batch:3", goal="replay", output="swap", pipeline=upgraded, downstream=True)

    day = next(one for one in plan.downstream if one.stream == DAY)
    assert (day.request.pipeline_file, day.request.pipeline_named) == (upgraded, True)


@pytest.mark.parametrize("named", [True, False])
def test_the_next_command_of_a_plan_names_it_once(project: Project, *, named: bool) -> None:
    upgraded = _upgraded(project)

    done = _slackwater(
        project, "plan", "replay", STREAM, "--from", "batch:3", *(("--pipeline", "upgraded.py") if named else ())
    )

    assert done.stderr.count("--pipeline") == named, done.stderr
    assert done.stderr.count(str(upgraded)) == named
