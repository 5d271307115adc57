"""A plan says what readers that list the files of an output, and ignore its manifest, see while it is applied."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from slackwater.cli.verbs.plan import plan_page
from slackwater.operations.plan.document import render
from slackwater.operations.plan.plan import Plan
from slackwater.sinks.files.sink import FilesOutput
from tests.support.homes import STATELESS, HomeSpec
from tests.support.rebuilds import BEGINNING, Project, make_project, old_files, reset_behind

STATELESS_SPEC = HomeSpec(planned=6, committed=6, state=None, written=6, layout=STATELESS)
LISTING = "readers that list the files of"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path)


def risks_in(plan: Plan) -> list[str]:
    return [risk for risk in plan.risks if LISTING in risk]


@pytest.mark.parametrize("goal", ["replay", "rebuild"])
def test_a_cut_is_seen_in_part(project: Project, goal: str) -> None:
    plan = project.plan("batch:2", goal=goal)
    (risk,) = risks_in(plan)
    assert risk.startswith(f"{LISTING} {project.folder / 'out'} and ignore its manifest (_spark_metadata)")
    assert "a part of the rows" in risk
    assert risk in json.loads(render(plan))["risks"]
    console = Console(width=1000, no_color=True)
    with console.capture() as page:
        console.print(plan_page(plan))
    assert risk in page.get()


def test_a_cut_of_one_file_is_one_step(project: Project) -> None:
    assert risks_in(project.plan("batch:4")) == []


def test_a_plan_that_cuts_nothing_is_seen_by_nobody(project: Project) -> None:
    plan = project.plan("batch:5")
    assert plan.actions
    assert risks_in(plan) == []


def test_a_reset_that_empties_the_output_is_seen_in_part(project: Project) -> None:
    assert len(risks_in(project.plan_reset("clear", BEGINNING))) == 1


@pytest.mark.parametrize("output", ["keep", "swap"])
def test_what_stays_and_what_changes_places_is_one_step(project: Project, output: str) -> None:
    plan = project.plan_reset("swap" if output == "swap" else "keep", BEGINNING)
    assert risks_in(plan) == []


@pytest.mark.parametrize("location", ["memory://bucket/out", "s3://bucket/out", "hdfs://host:9000/out"])
def test_a_swap_of_a_manifest_shows_both_outputs(location: str) -> None:
    seen = FilesOutput(location).seen_while_swapped()
    assert seen is not None
    assert seen.startswith(f"{LISTING} {location}")
    assert "rows of the old output and of the new one together" in seen


def test_the_undo_of_a_backfill_is_seen_in_part(tmp_path: Path) -> None:
    project = reset_behind(make_project(tmp_path / "project", STATELESS_SPEC), 3)
    (risk,) = risks_in(project.plan_backfill(old_files(project, 3)))
    assert risk.startswith("an undo takes the batch out again: ")
    assert risks_in(project.plan_backfill(old_files(project, 3), into=tmp_path / "side")) == []
