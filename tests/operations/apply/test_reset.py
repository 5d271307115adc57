"""Resets without Spark: where the new checkpoint starts, what becomes of the output, and that undo restores all."""

import json
from pathlib import Path

import pytest

from slackwater.core.errors import Refused
from slackwater.core.sink import OutputTreatment
from slackwater.diagnose.number_line import findings
from slackwater.operations.plan.plan import SourceStart
from tests.support.errors import raises_code
from tests.support.homes import STREAM, HomeSpec
from tests.support.rebuilds import BEGINNING, Project, make_project

NEWEST = 5


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = make_project(tmp_path / "project")
    made.claim_output()
    return made


def _later(project: Project) -> SourceStart:
    """Two files count as read."""
    paths = [f"file://{project.folder}/clicks/00{number}.json" for number in range(2)]
    lines = [json.dumps({"path": path, "timestamp": 1, "batchId": 0}, separators=(",", ":")) for path in paths]
    return SourceStart("0", '{"logOffset":0}', {"0": "\n".join(["v1", *lines])}, None, "source 0: 6 files read -> 2")


@pytest.mark.parametrize("output", ["clear", "swap", "keep"])
def test_a_reset_leaves_a_stream_that_can_be_started(output: OutputTreatment, project: Project) -> None:
    before = project.in_use()
    plan = project.plan_reset(output, BEGINNING)

    project.apply(plan)

    after = project.snapshot()
    following = {"clear": 0, "swap": 3, "keep": NEWEST + 1}[output]
    assert (after.marks.next_batch, after.marks.next_is_planned) == (following, False)
    assert after.marks.written == {"clear": -1, "swap": 2, "keep": NEWEST}[output]
    assert findings(after)[0].code in {"clean", "new"}
    assert project.plan(goal="resume").actions == ()
    assert not project.apply(plan)
    project.undo(plan)
    assert project.in_use() == before


def test_where_the_output_is_kept_nothing_of_the_time_before_counts(project: Project) -> None:
    project.apply(project.plan_reset("keep", _later(project)))

    plan = project.plan()
    assert (plan.facts.target, plan.facts.contributing) == (NEWEST, NEWEST + 1)
    project.apply(plan)

    assert findings(project.snapshot())[0].code == "clean"
    assert project.snapshot().generation.begins == NEWEST + 1
    with raises_code(Refused, "target-unknown"):
        project.plan("batch:3")


def test_the_number_line_continues_after_the_newest_batch_that_any_output_has(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", HomeSpec(planned=7, committed=6, state=6, written=7))

    plan = project.plan_reset("keep", BEGINNING)

    assert plan.facts.target == 7


def test_a_file_source_cannot_start_behind_files_without_a_batch(project: Project) -> None:
    before = project.in_use()

    with pytest.raises(Refused) as refused:
        project.plan_reset("clear", _later(project))

    assert (refused.value.code, project.in_use()) == ("target-unsupported", before)
    assert str(refused.value.hint).endswith(f"slackwater plan reset {STREAM} --from earliest --output keep")


@pytest.mark.parametrize(("output", "code"), [("clear", "sink-uncuttable"), ("swap", "swap-unsupported")])
def test_an_output_that_cannot_be_emptied_or_swapped(output: OutputTreatment, code: str, tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", HomeSpec(sink={"kind": "console"}, written=-1))

    with raises_code(Refused, code):
        project.plan_reset(output, BEGINNING)

    assert project.plan_reset("keep", BEGINNING).facts.target == NEWEST


def test_a_checkpoint_that_is_damaged_before_the_first_batch_since_is_resumed(project: Project) -> None:
    project.apply(project.plan_reset("keep", BEGINNING))
    (project.checkpoint(2) / "commits" / str(NEWEST)).write_bytes(b"v1\n{")
    assert findings(project.snapshot())[0].code == "checkpoint-damaged"

    project.apply(project.plan(goal="resume"))

    assert findings(project.snapshot())[0].code == "clean"
    assert project.snapshot().marks.next_batch == NEWEST + 1
