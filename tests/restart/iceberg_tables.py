"""Workspaces whose output is an Iceberg table, in a directory or in a catalog, read without the code under test."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.restart.delta_tables import DeltaWorkspace, closed_sums
from tests.restart.scenario import CONF, STREAM
from tests.restart.small import Saved
from tests.sinks import iceberg_tables
from tests.sinks.iceberg_catalogs import NAME, in_postgres

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


class CatalogWorkspace(IcebergWorkspace):
    """The same with a table in a catalog whose database is a PostgreSQL server's; ``url`` is libpq's."""

    def __init__(self, folder: Path, body: str, url: str) -> None:
        super().__init__(folder, body.replace('sinks.delta("out"', f'sinks.iceberg("{NAME}"'))
        self.lake = in_postgres(folder, url)
        self.lake.write_settings(**{".jdbc.password": "env:LAKE_PASSWORD"})
        settings = folder / "slackwater.toml"
        settings.write_text(f'connectors = ["postgresql"]\n{settings.read_text()}')
        self.output = folder / "warehouse"
        with self.lake.catalog() as catalog:
            catalog.create_namespace_if_not_exists("gold")
            if catalog.table_exists("gold.hourly"):
                catalog.drop_table("gold.hourly")

    def live_files(self, table: Path) -> Iterable[str]:
        del table
        return [task.file.file_path for task in self.lake.table().scan().plan_files()]

    def values(self, table: str = "out") -> list[dict[str, Any]]:
        del table
        found: list[dict[str, Any]] = self.lake.table().scan().to_arrow().to_pylist()
        return found

    def _metadata(self) -> dict[str, Any]:
        with self.lake.catalog() as catalog:
            if not catalog.table_exists("gold.hourly"):
                return {}
            return catalog.load_table("gold.hourly").metadata.model_dump(mode="json", by_alias=True, exclude_none=True)


class SavedInCatalog(Saved):
    """A copy of a workspace with the metadata that the catalog has named for the table."""

    def __init__(self, workspace: CatalogWorkspace, at: Path) -> None:
        super().__init__(workspace, at)
        self._lake = workspace.lake
        self._metadata = workspace.lake.table().metadata_location

    def restore(self) -> None:
        super().restore()
        with self._lake.catalog() as catalog:
            catalog.drop_table("gold.hourly")
            catalog.register_table("gold.hourly", self._metadata)


def check_swapped_and_undone(workspace: IcebergWorkspace) -> None:
    """Processed again in staging, from the start: the rows are those of an uninterrupted run, and undo returns them."""
    whole, last, before = workspace.rows(), workspace.written(), set(workspace.live_files(workspace.output))
    workspace.slackwater("plan", "reset", STREAM, "--from", "earliest", *SWAP, *CONF)
    workspace.slackwater("apply", "plan.json", "--confirm", STREAM, *CONF)
    assert workspace.window_sums() == closed_sums()
    assert before.isdisjoint(workspace.live_files(workspace.output))
    operation = json.loads((workspace.folder / "plan.json").read_text())["id"]
    workspace.slackwater("undo", operation, "--yes", java=False)
    assert (workspace.rows(), workspace.written()) == (whole, last)


def check_replayed_from_a_batch(workspace: IcebergWorkspace) -> None:
    """Processed again in staging, from a batch on: older rows stay in their files."""
    whole, last, before = workspace.rows(), workspace.written(), set(workspace.live_files(workspace.output))
    workspace.slackwater("plan", "replay", STREAM, "--from", "batch:3", *SWAP)
    workspace.slackwater("apply", "plan.json", "--confirm", STREAM, *CONF)
    assert (workspace.rows(), workspace.written()) == (whole, last)
    kept = before & set(workspace.live_files(workspace.output))
    assert kept not in (set(), before), "the rows of older batches are in the same files"
