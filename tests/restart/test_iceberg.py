"""Streams into Iceberg tables, killed around each commit of a batch, rebuilt, cut, undone: each row is there once."""

from pathlib import Path

import pytest

from tests.restart.delta_tables import (
    APPEND,
    BATCHES,
    COMPLETE,
    TWO_STAGES,
    UPDATE,
    check_append_finished,
    check_both_stages_replaced,
    check_replaced_rows,
    check_second_stage,
    page_of,
    status_written,
)
from tests.restart.iceberg_tables import IcebergWorkspace, check_replayed_from_a_batch, check_swapped_and_undone
from tests.sinks import iceberg_tables

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(1200)]
"""Tables of a catalog are killed at the same points in the gate: ``test_iceberg_catalog.py``."""
KILLED = 2


def _kill_after_publishing(workspace: IcebergWorkspace, batch: int) -> None:
    """The table has the batch, and Spark's commit log has not."""
    workspace.kill_at(
        lambda _: workspace.written() >= batch, lambda _: workspace.marks() == (batch, batch, batch, batch - 1), batch
    )


def test_append_killed_at_each_point_cut_and_undone(tmp_path: Path) -> None:
    workspace = IcebergWorkspace(tmp_path / "w", APPEND)
    staged_only = (KILLED, KILLED, KILLED - 1, KILLED - 1)
    workspace.kill_at(lambda _: workspace.staged() >= KILLED, lambda _: workspace.marks() == staged_only, KILLED)
    assert status_written(workspace) == KILLED - 1

    _kill_after_publishing(workspace, KILLED)
    assert status_written(workspace) == KILLED

    # Before staging: the batch is planned, and nothing of it is in the table.
    checkpoint = workspace.stream_folder / "checkpoints" / "0001"
    workspace.kill_once(lambda _: (checkpoint / "offsets" / str(KILLED + 2)).exists())
    assert workspace.marks() == (KILLED + 2, KILLED + 1, KILLED + 1, KILLED + 1)

    check_append_finished(workspace, KILLED)
    check_swapped_and_undone(workspace)
    check_replayed_from_a_batch(workspace)


@pytest.mark.parametrize("body", [pytest.param(UPDATE, id="update"), pytest.param(COMPLETE, id="complete")])
def test_other_modes_killed_and_rebuilt(body: str, tmp_path: Path) -> None:
    workspace = IcebergWorkspace(tmp_path / "w", body)
    # Late enough that the watermark has passed the windows of the first batches.
    _kill_after_publishing(workspace, BATCHES - 2)
    check_replaced_rows(workspace, body)


def test_a_second_stage_reads_the_table_of_the_first(tmp_path: Path) -> None:
    workspace = IcebergWorkspace(tmp_path / "w", TWO_STAGES)
    workspace.kill_once(lambda _: workspace.written() >= 0)

    check_second_stage(workspace)

    newest = f"page={page_of(BATCHES - 1)}"
    assert newest in {name.split("/")[1] for name in iceberg_tables.live_files(workspace.folder / "first")}

    check_both_stages_replaced(workspace)
