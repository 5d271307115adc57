"""Streams into Delta tables, killed around the table's commit, rebuilt, cut and undone: each row is there once."""

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
    check_append_finished,
    check_both_stages_replaced,
    check_replaced_rows,
    check_second_stage,
    page_of,
    status_written,
)
from tests.restart.test_files import CHECKPOINT
from tests.sinks import delta_logs

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
KILLED = 2


def _kill_after_the_tables_commit(workspace: DeltaWorkspace, batch: int) -> None:
    """The table has the batch, and Spark's commit log has not."""
    workspace.kill_before(f"{CHECKPOINT}/commits/{batch}")
    assert (workspace.ids("offsets")[-1], workspace.ids("commits")[-1]) == (batch, batch - 1)
    assert workspace.written() == batch


def test_append_killed_cut_and_undone(tmp_path: Path) -> None:
    workspace = DeltaWorkspace(tmp_path / "w", APPEND)
    _kill_after_the_tables_commit(workspace, KILLED)
    assert status_written(workspace) == KILLED

    # Before the table's commit: the batch is planned, and the table does not have it.
    checkpoint = workspace.stream_folder / "checkpoints" / "0001"
    workspace.kill_once(lambda _: (checkpoint / "offsets" / str(KILLED + 2)).exists())
    assert workspace.written() == KILLED + 1 == workspace.ids("offsets")[-1] - 1

    check_append_finished(workspace, KILLED)


@pytest.mark.thorough
@pytest.mark.parametrize("body", [UPDATE, COMPLETE], ids=["update", "complete"])
def test_other_modes_killed_and_rebuilt(body: str, tmp_path: Path) -> None:
    workspace = DeltaWorkspace(tmp_path / "w", body)
    # Late enough that the watermark has passed the windows of the first batches.
    _kill_after_the_tables_commit(workspace, BATCHES - 2)
    check_replaced_rows(workspace, body)


@pytest.mark.thorough
def test_a_second_stage_reads_the_table_of_the_first(tmp_path: Path) -> None:
    workspace = DeltaWorkspace(tmp_path / "w", TWO_STAGES)
    workspace.kill_once(lambda seen: seen.written() >= 0)

    check_second_stage(workspace)

    newest = max((workspace.folder / "first" / delta_logs.LOG).glob("*.json"))
    added = [json.loads(line)["add"] for line in newest.read_text().splitlines() if line.startswith('{"add"')]
    assert [file["partitionValues"] for file in added] == [{"page": page_of(BATCHES - 1)}]

    check_both_stages_replaced(workspace)
