"""Streams into Iceberg tables, killed around each commit of a batch, rebuilt, cut, undone: each row is there once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

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
    closed_sums,
    page_of,
    status_written,
)
from tests.restart.scenario import CONF, STREAM
from tests.sinks import iceberg_tables

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
KILLED = 2
SWAP = ("--output", "swap", "--out", "plan.json", "--force")


def _of_iceberg(body: str) -> str:
    """The same pipeline with tables of Iceberg; the slash makes a name that of a directory."""
    return body.replace('sinks.delta("', 'sinks.iceberg("./').replace('format("delta")', 'format("iceberg")')


class IcebergWorkspace(DeltaWorkspace):
    """A workspace whose output is an Iceberg table, read by its metadata without the code under test."""

    def __init__(self, folder: Path, body: str) -> None:
        super().__init__(folder, _of_iceberg(body))

    def live_files(self, table: Path) -> Iterable[str]:
        return iceberg_tables.live_files(table)

    def written(self) -> int:
        """The newest batch that is visible, -1 for none."""
        ancestors, newest = self._snapshots(), self._metadata().get("current-snapshot-id", -1)
        while newest in ancestors and not _batch(ancestors[newest]):
            newest = ancestors[newest].get("parent-snapshot-id")
        return int(_batch(ancestors[newest])) if newest in ancestors else -1

    def staged(self) -> int:
        """The newest batch that a snapshot has, whether it is visible or not."""
        return max((int(_batch(one) or -1) for one in self._snapshots().values()), default=-1)

    def _snapshots(self) -> dict[int, dict[str, Any]]:
        return {one["snapshot-id"]: one for one in self._metadata().get("snapshots", ())}

    def _metadata(self) -> dict[str, Any]:
        return iceberg_tables.metadata(self.output) if iceberg_tables.newest(self.output) else {}

    def marks(self) -> tuple[int, int, int, int]:
        """Planned, staged, visible and committed."""
        return self.ids("offsets")[-1], self.staged(), self.written(), self.ids("commits")[-1]


def _batch(snapshot: dict[str, Any]) -> str:
    marker: str = snapshot["summary"].get("wap.id", "")
    return marker.split(":")[3] if marker else ""


def _kill_after_publishing(workspace: IcebergWorkspace, batch: int) -> None:
    """The table has the batch, and Spark's commit log has not."""
    workspace.kill_at(
        lambda _: workspace.written() >= batch, lambda _: workspace.marks() == (batch, batch, batch, batch - 1)
    )


def test_append_killed_at_each_point_cut_and_undone(tmp_path: Path) -> None:
    workspace = IcebergWorkspace(tmp_path / "w", APPEND)
    staged_only = (KILLED, KILLED, KILLED - 1, KILLED - 1)
    workspace.kill_at(lambda _: workspace.staged() >= KILLED, lambda _: workspace.marks() == staged_only)
    assert status_written(workspace) == KILLED - 1

    _kill_after_publishing(workspace, KILLED)
    assert status_written(workspace) == KILLED

    # Before staging: the batch is planned, and nothing of it is in the table.
    checkpoint = workspace.stream_folder / "checkpoints" / "0001"
    workspace.kill_once(lambda _: (checkpoint / "offsets" / str(KILLED + 2)).exists())
    assert workspace.marks() == (KILLED + 2, KILLED + 1, KILLED + 1, KILLED + 1)

    check_append_finished(workspace, KILLED)
    _check_swapped_and_undone(workspace)


def _check_swapped_and_undone(workspace: IcebergWorkspace) -> None:
    """Processed again aside, from the start and from a batch on: the rows are those of an uninterrupted run."""
    whole, last, before = workspace.rows(), workspace.written(), set(iceberg_tables.live_files(workspace.output))
    workspace.slackwater("plan", "reset", STREAM, "--from", "earliest", *SWAP, *CONF)
    workspace.slackwater("apply", "plan.json", "--confirm", STREAM, *CONF)
    assert workspace.window_sums() == closed_sums()
    assert before.isdisjoint(iceberg_tables.live_files(workspace.output))
    operation = json.loads((workspace.folder / "plan.json").read_text())["id"]
    workspace.slackwater("undo", operation, "--yes", java=False)
    assert (workspace.rows(), workspace.written()) == (whole, last)

    workspace.slackwater("plan", "replay", STREAM, "--from", "batch:3", *SWAP)
    workspace.slackwater("apply", "plan.json", "--confirm", STREAM, *CONF)
    assert (workspace.rows(), workspace.written()) == (whole, last)
    kept = before & set(iceberg_tables.live_files(workspace.output))
    assert kept not in (set(), before), "the rows of older batches are in the same files"


@pytest.mark.thorough
@pytest.mark.parametrize("body", [pytest.param(UPDATE, id="update"), pytest.param(COMPLETE, id="complete")])
def test_other_modes_killed_and_rebuilt(body: str, tmp_path: Path) -> None:
    workspace = IcebergWorkspace(tmp_path / "w", body)
    # Late enough that the watermark has passed the windows of the first batches.
    _kill_after_publishing(workspace, BATCHES - 2)
    check_replaced_rows(workspace, body)


@pytest.mark.thorough
def test_a_second_stage_reads_the_table_of_the_first(tmp_path: Path) -> None:
    workspace = IcebergWorkspace(tmp_path / "w", TWO_STAGES)
    workspace.kill_once(lambda _: workspace.written() >= 0)

    check_second_stage(workspace)

    newest = f"page={page_of(BATCHES - 1)}"
    assert newest in {name.split("/")[1] for name in iceberg_tables.live_files(workspace.folder / "first")}

    check_both_stages_replaced(workspace)
