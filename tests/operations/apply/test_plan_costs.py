"""What a plan costs, as its page and its document show it, and that a cost never keeps it from apply."""

import json
import os
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from slackwater.cli.verbs.plan import plan_page
from slackwater.core.records import BatchRecord, LogLine
from slackwater.ledger.lineage import SIZES
from slackwater.operations.plan.plan import Plan
from tests.support.homes import ROWS, STATELESS, STREAM, HomeSpec
from tests.support.rebuilds import BEGINNING, Project, make_project, old_files, reset_behind
from tests.support.stages import three_stages

TOOK_MS = 1500


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = make_project(tmp_path / "project")
    made.claim_output()
    return made


def _time(project: Project, stream: str = STREAM, milliseconds: int = TOOK_MS) -> None:
    """Give the recorded batches the durations that Spark reports."""
    with project.open() as workspace:
        for batch in workspace.ledger.batches(stream):
            workspace.ledger.record_batch(batch._replace(durations_ms={"triggerExecution": milliseconds}))


def _page(plan: Plan) -> str:
    console = Console(width=300, file=StringIO())
    console.print(plan_page(plan))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def _costs(plan: Plan) -> list[str]:
    """The lines of the page under "what it costs", those of all stages one after the other."""
    lines, found, inside = _page(plan).splitlines(), [], False
    for line in lines:
        inside = line == "what it costs" or (inside and line.startswith("  "))
        if inside and line.startswith("  "):
            found.append(line.strip())
    return found


def _recorded(project: Project) -> list[BatchRecord]:
    with project.open() as workspace:
        return workspace.ledger.batches(STREAM)


def _in_all(plan: Plan) -> str:
    return _page(plan).partition("in all")[2].partition("undo")[0]


@pytest.mark.parametrize("output", ["clear", "swap", "keep"])
def test_a_reset_names_all_that_is_read_and_written_again(project: Project, output: Any) -> None:
    _time(project)
    rows = sum(batch.input_rows for batch in _recorded(project))

    plan = project.plan_reset(output, BEGINNING)

    work = plan.cost.apply if output == "swap" else plan.cost.run
    assert (work.batches, work.rows, work.batches_uncounted, work.duration_ms) == (6, rows, 0, 6 * TOOK_MS)
    assert work.files == 6
    text = "\n".join(_costs(plan))
    by = "apply processes 6 batches again" if output == "swap" else "the next run processes 6 batches again"
    assert by in text
    assert f"{rows:,} of {rows:,} recorded rows" in text
    assert "about 9.0 s, estimated from 6 recorded batches, and 5 to 30 s to start Spark" in text
    assert ("prune: 6 files" in text) == (output != "keep")
    assert "the old checkpoint stays until prune:" in text
    assert "0 of 0" not in _page(plan)


def test_stages_that_are_all_processed_again_say_so_and_sum_it(tmp_path: Path) -> None:
    project = three_stages(tmp_path / "project")
    for stream in (STREAM, "clicks/day", "clicks/month"):
        _time(project, stream)

    plan = project.plan("earliest", goal="replay", output="swap", downstream=True)

    total = sum(one.cost.apply.batches for one in plan.members)
    assert all(one.cost.apply.batches > 0 for one in plan.members)
    assert f"apply processes {total} batches again, and then what else the sources have:" in _in_all(plan)
    assert "the old output stays until prune:" in _in_all(plan)
    assert "nothing is read again" not in _page(plan)
    # The id of the operation may have a digit after its dash.
    assert "-1" not in _page(plan).replace(plan.id, "")


def test_a_rebuild_names_what_is_replayed_and_what_runs_again(project: Project) -> None:
    _time(project)

    plan = project.plan("batch:3")

    replayed = plan.facts.target - plan.facts.contributing + 1
    assert (plan.cost.batches_replayed, plan.cost.apply.batches, plan.cost.run.batches) == (replayed, replayed, 2)
    assert plan.cost.run.rows == 2 * ROWS
    assert plan.cost.apply.duration_ms == replayed * TOOK_MS
    assert (plan.cost.output.batches, plan.cost.output.files) == (2, 2)
    assert plan.cost.checkpoint_bytes
    assert any(
        line.startswith("the backup keeps 2 batches of the output until prune: 2 files") for line in _costs(plan)
    )


def test_the_sizes_of_source_files_are_those_recorded_as_they_were_read(project: Project) -> None:
    with project.open() as workspace:
        for entry, line in workspace.ledger.lines(STREAM, "sources/0").items():
            path = json.loads(line.splitlines()[1])["path"]
            file = project.folder / "clicks" / Path(path).name
            read = file.stat()
            file.write_bytes(bytes(1024))
            os.utime(file, ns=(read.st_atime_ns, read.st_mtime_ns))
            workspace.ledger.record_lines([LogLine(STREAM, 1, f"{SIZES}0", entry, json.dumps({path: 1024}))])

    plan = project.plan("batch:3")

    assert (plan.cost.run.files, plan.cost.run.bytes) == (2, 2048)
    assert "2 source files, 2 KiB" in "\n".join(_costs(plan))


def test_durations_that_are_not_recorded_are_said_to_be_unknown(project: Project) -> None:
    with project.open() as workspace:
        for batch in workspace.ledger.batches(STREAM):
            workspace.ledger.record_batch(batch._replace(durations_ms={}))

    plan = project.plan("batch:3")

    assert plan.cost.run.duration_ms is None
    assert "the next run takes an unknown time: no recorded batch has a duration" in "\n".join(_costs(plan))


def test_a_batch_without_a_duration_is_estimated_from_the_others(project: Project) -> None:
    _time(project)
    with project.open() as workspace:
        workspace.ledger.record_batch(_recorded(project)[-1]._replace(durations_ms={}))

    plan = project.plan("batch:3")

    assert (plan.cost.run.duration_ms, plan.cost.run.batches_timed) == (2 * TOOK_MS, 5)


def test_a_backfill_names_its_files(tmp_path: Path) -> None:
    project = reset_behind(make_project(tmp_path / "project", HomeSpec(state=None, layout=STATELESS)), 3)
    _time(project)

    plan = project.plan_backfill(old_files(project, 3))

    assert (plan.cost.apply.batches, plan.cost.apply.files) == (1, 3)
    assert plan.cost.apply.duration_ms == 3 * TOOK_MS
    text = "\n".join(_costs(plan))
    assert "apply reads all of the range above as one batch: an unknown number of rows; 3 source files" in text


def test_an_output_is_emptied_and_never_cut_back_to_a_batch_before_the_first(project: Project) -> None:
    plan = project.plan_reset("clear", BEGINNING)

    page = _page(plan)

    assert "empty the sink" in page
    assert "batch -1" not in page


def test_a_plan_is_applied_although_its_costs_were_measured_since(project: Project) -> None:
    plan = project.plan("batch:3")
    _time(project)

    assert project.apply(plan)
