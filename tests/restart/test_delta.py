"""Streams into Delta tables, killed around the table's commit, rebuilt, cut and undone: each row is there once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.restart.delta_tables import (
    APPEND,
    BATCHES,
    COMPLETE,
    TWO_STAGES,
    UPDATE,
    DeltaWorkspace,
    all_sums,
    closed_sums,
    page_of,
)
from tests.restart.small import error_code
from tests.sinks import delta_logs

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
KILLED = 2


def _kill_after_the_tables_commit(workspace: DeltaWorkspace, batch: int) -> None:
    """The table has the batch, and Spark's commit log has not."""
    workspace.kill_at(
        lambda seen: seen.written() >= batch,
        lambda seen: (seen.ids("offsets")[-1], seen.ids("commits")[-1], seen.written()) == (batch, batch - 1, batch),
    )


def _status_written(workspace: DeltaWorkspace) -> int:
    written: int = workspace.status()["marks"]["written"]
    return written


def _applied(workspace: DeltaWorkspace, *arguments: str) -> str:
    """Plan and apply a rebuild; the id of the operation."""
    operation: str = workspace.rebuild(*arguments)["id"]
    return operation


def test_append_killed_cut_and_undone(tmp_path: Path) -> None:
    workspace = DeltaWorkspace(tmp_path / "w", APPEND)
    _kill_after_the_tables_commit(workspace, KILLED)
    assert _status_written(workspace) == KILLED

    # Before the table's commit: the batch is planned, and the table does not have it.
    checkpoint = workspace.stream_folder / "checkpoints" / "0001"
    workspace.kill_once(lambda _: (checkpoint / "offsets" / str(KILLED + 2)).exists())
    assert workspace.written() == KILLED + 1 == workspace.ids("offsets")[-1] - 1

    workspace.caught_up()
    assert workspace.window_sums() == closed_sums()
    last = workspace.written()
    assert _status_written(workspace) == last == BATCHES

    whole = workspace.rows()
    operation = _applied(workspace, "--at", f"batch:{KILLED}")
    assert workspace.written() == KILLED
    assert workspace.rows() < whole
    workspace.slackwater("undo", operation, "--yes")
    assert workspace.rows() == whole
    assert workspace.written() == last

    _applied(workspace, "--at", f"batch:{KILLED}")
    workspace.caught_up()
    assert workspace.window_sums() == closed_sums()
    assert workspace.written() == last


@pytest.mark.parametrize("body", [UPDATE, COMPLETE], ids=["update", "complete"])
def test_other_modes_killed_and_rebuilt(body: str, tmp_path: Path) -> None:
    workspace = DeltaWorkspace(tmp_path / "w", body)
    # Late enough that the watermark has passed the windows of the first batches.
    _kill_after_the_tables_commit(workspace, BATCHES - 2)

    plan = workspace.rebuild()
    workspace.caught_up()
    assert (plan["facts"]["contributing"] == 0) is (body == COMPLETE)
    assert workspace.window_sums() == all_sums()

    whole, last = workspace.rows(), workspace.written()
    operation = _applied(workspace, "--at", "batch:1")
    assert workspace.written() == 1
    workspace.slackwater("undo", operation, "--yes")
    assert workspace.rows() == whole
    assert workspace.written() == last


def test_a_second_stage_reads_the_table_of_the_first(tmp_path: Path) -> None:
    workspace = DeltaWorkspace(tmp_path / "w", TWO_STAGES)
    workspace.kill_once(lambda seen: seen.written() >= 0)

    workspace.caught_up()

    assert workspace.window_sums() == closed_sums()
    written = len(workspace.values("first"))
    assert written == sum(n for _, _, n in all_sums())
    newest = max((workspace.folder / "first" / delta_logs.LOG).glob("*.json"))
    added = [json.loads(line)["add"] for line in newest.read_text().splitlines() if line.startswith('{"add"')]
    assert [file["partitionValues"] for file in added] == [{"page": page_of(BATCHES - 1)}]

    refused = workspace.slackwater("plan", "rebuild", "first", "--at", "batch:1", "--out", "plan.json", code=5)
    assert error_code(refused) == "cut-was-read"
