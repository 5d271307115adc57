"""An Iceberg table that Iceberg's own streaming sink fills: a batch is taken out and put back, and nothing else."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from slackwater.core.errors import Refused
from slackwater.sinks.common.contract import of_query
from slackwater.sinks.common.registry import open_output
from slackwater.sinks.iceberg.output import IcebergQueryTable
from slackwater.storage.local import LocalStore
from tests.sinks import iceberg_tables
from tests.sinks.swap_scene import SwapScene
from tests.support.errors import raises_code
from tests.support.kill_points import kill_points

QUERY, EARLIER = "11111111-2222-4333-8444-555555555555", "99999999-2222-4333-8444-555555555555"
OPERATION, STREAM = "20260105T093000-1a2b3c", "5f0e"
LAST, STAGED = 4, 2


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """With batches of an earlier query, then 0 to LAST of this one."""
    folder = tmp_path / "shop" / "counts"
    iceberg_tables.create(folder)
    for query in (EARLIER, QUERY):
        for batch in range(LAST + 1):
            write(folder, query, batch)
    return folder


def write(table: Path, query: str, batch: int) -> None:
    """As the sink does; a batch without rows has a snapshot, too."""
    names = [iceberg_tables.data_file(table, f"{query[:4]}-{batch}.parquet", [batch])] if batch % 2 else []
    iceberg_tables.commit_epoch(table, query, batch, names)


def opened(table: Path) -> IcebergQueryTable:
    sink = {"kind": "table", "name": f"iceberg.{table}", "format": "iceberg"}
    output = of_query(open_output(sink), QUERY)
    assert isinstance(output, IcebergQueryTable)
    return output


def newest(table: Path) -> int | None:
    """What the sink finds before it commits a batch."""
    sink = {"kind": "table", "name": f"iceberg.{table}", "format": "iceberg"}
    output = open_output(sink)
    return output.written_by(QUERY)


@pytest.mark.parametrize("after", [LAST - 1, 1, -1])
def test_batches_of_the_query_are_taken_out_and_put_back(table: Path, tmp_path: Path, after: int) -> None:
    before, backup = iceberg_tables.metadata(table)["current-snapshot-id"], LocalStore(tmp_path / "backup")
    cut = opened(table).cut_after(after, {})
    assert cut.batches == tuple(range(after + 1, LAST + 1))
    for _ in range(2):
        opened(table).cut(cut, {}, backup)
        assert (opened(table).last_written(), newest(table)) == (after, after)
    for _ in range(2):
        opened(table).restore(cut, backup)
        assert (opened(table).last_written(), newest(table)) == (LAST, LAST)
        assert iceberg_tables.metadata(table)["current-snapshot-id"] == before
    # The program goes on after a cut.
    opened(table).cut(opened(table).cut_after(after, {}), {}, LocalStore(tmp_path / "again"))
    write(table, QUERY, after + 1)
    assert (opened(table).last_written(), newest(table)) == (after + 1, after + 1)


@pytest.mark.thorough
@pytest.mark.parametrize("after", [2, -1])
def test_each_change_of_a_cut_and_its_undo_can_be_killed(tmp_path: Path, after: int) -> None:
    folder, saved, backup = tmp_path / "w", tmp_path / "saved", LocalStore(tmp_path / "w" / "backup")
    table = folder / "counts"
    iceberg_tables.create(table)
    for batch in range(LAST + 1):
        write(table, QUERY, batch)
    shutil.copytree(folder, saved)
    cut = opened(table).cut_after(after, {})

    def visible() -> tuple[Mapping[str, bytes], int | None]:
        return iceberg_tables.live_files(table), iceberg_tables.epoch_of(table, QUERY)

    def prepare() -> None:
        shutil.rmtree(folder)
        shutil.copytree(saved, folder)

    def cut_it() -> None:
        opened(table).cut(cut, {}, backup)

    def restore_it() -> None:
        opened(table).restore(cut, backup)

    old = visible()
    cut_it()
    new = visible()
    assert (len(new[0]), new[1]) == (sum(batch % 2 for batch in range(after + 1)), after if after >= 0 else None)
    points = 0
    for points in kill_points(cut_it, folder, prepare):
        assert visible() in (old, new), f"killed before change {points}"
        cut_it()
        assert visible() == new
    assert points >= 2
    for points in kill_points(restore_it, folder, cut_it):
        assert visible() in (old, new), f"killed before change {points}"
        restore_it()
        assert visible() == old


class Scene(SwapScene):
    """A table with batches of an earlier query and of this one, and one in staging with batches 0 to STAGED."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.table = folder, folder / "shop" / "counts"
        for path in (self.table, folder / "backup"):
            shutil.rmtree(path, ignore_errors=True)
        iceberg_tables.create(self.table)
        for batch in range(LAST + 1):
            write(self.table, QUERY, batch)
        self.output.stage(OPERATION, -1, {})
        for batch in range(STAGED + 1):
            write(self.staging, QUERY, batch)
        self.swap = self.output.swap_of(OPERATION, STREAM)

    @property
    def output(self) -> IcebergQueryTable:
        return opened(self.table)

    @property
    def staging(self) -> Path:
        return Path(self.output.staged_path(OPERATION))

    def visible(self) -> tuple[Mapping[str, bytes], int | None]:
        """What readers see, and the newest batch that the sink finds."""
        return iceberg_tables.live_files(self.table), newest(self.table)


def test_what_the_sink_has_written_aside_is_put_in_place_and_back(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    old, staging = scene.visible(), iceberg_tables.live_files(scene.staging)
    new = {f"{scene.staging.name}/{name}": data for name, data in staging.items()}, STAGED
    version = iceberg_tables.newest(scene.table)
    assert old[1] == LAST
    for _ in range(2):
        scene.make()
        assert scene.visible() == new
        assert iceberg_tables.newest(scene.table) == version + 1, "one commit"
        assert scene.output.last_written() == STAGED
        assert scene.output.damage("all") == ()
    write(scene.table, QUERY, STAGED + 1)
    assert newest(scene.table) == STAGED + 1
    for _ in range(2):
        scene.output.check_swap_back(scene.swap, scene.backup)
        scene.undo()
        assert scene.visible() == old
    scene.output.discard(OPERATION, "staged")
    assert iceberg_tables.newest(scene.staging) == 0
    assert any((scene.staging / "metadata").iterdir()), "the table knows its snapshots"
    scene.output.stage(OPERATION, -1, {})
    # Iceberg's own library leaves out what is empty.
    schemas = [{**one, "identifier-field-ids": None} for one in iceberg_tables.metadata(scene.staging)["schemas"]]
    iceberg_tables.change(scene.staging, schemas=[{k: v for k, v in one.items() if v is not None} for one in schemas])
    write(scene.staging, QUERY, 0)
    scene.make()
    assert newest(scene.table) == 0
    scene.output.discard(OPERATION, "replaced")
    assert newest(scene.table) == 0
    assert set(iceberg_tables.metadata(scene.table)["refs"]) == {"main"}


def test_what_is_given_up_before_the_swap_is_removed(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    old = scene.visible()
    scene.output.discard(OPERATION, "staged")
    assert not scene.staging.exists()
    assert scene.visible() == old


def test_a_removal_that_was_killed_before_the_files_is_finished(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    for version in (scene.staging / "metadata").glob("*.metadata.json"):
        version.unlink()
    scene.output.discard(OPERATION, "staged")
    assert not scene.staging.exists()


def test_a_swap_without_batches(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    old = scene.visible()
    scene.output.discard(OPERATION, "staged")
    scene.output.stage(OPERATION, -1, {})
    scene.make()
    assert scene.visible() == ({}, None)
    scene.undo()
    assert scene.visible() == old


@pytest.mark.thorough
@pytest.mark.parametrize("action", ["stage", "swap", "swap_back", "discard"])
def test_each_step_can_be_killed(tmp_path: Path, action: str) -> None:
    folder, saved = tmp_path / "w", tmp_path / "saved"
    scene = Scene(folder)
    old = scene.visible()
    scene.make()
    new = scene.visible()
    if action != "swap_back":
        scene.undo()
    if action == "stage":
        scene.output.discard(OPERATION, "staged")
    shutil.copytree(folder, saved)
    steps: dict[str, tuple[Callable[[], None], object]] = {
        "stage": (lambda: scene.output.stage(OPERATION, -1, {}), old),
        "swap": (scene.make, new),
        "swap_back": (scene.undo, old),
        "discard": (lambda: scene.output.discard(OPERATION, "staged"), old),
    }
    step, expected = steps[action]

    def prepare() -> None:
        shutil.rmtree(folder)
        shutil.copytree(saved, folder)

    points = 0
    for points in kill_points(step, folder, prepare):
        assert scene.visible() in (old, new), f"killed before change {points}"
        step()
        assert scene.visible() == expected
        if action == "stage":
            assert (opened(scene.staging).last_written(), iceberg_tables.live_files(scene.staging)) == (-1, {})
        if action == "swap":
            scene.undo()
            assert scene.visible() == old
    assert points >= 2


def test_a_table_that_was_written_to_meanwhile_is_not_swapped(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    write(scene.table, EARLIER, LAST + 2)
    write(scene.table, EARLIER, LAST + 3)
    old = scene.visible()
    with raises_code(Refused, "swap-moved"):
        scene.make()
    assert scene.visible() == old


def test_the_history_of_the_table_stays_in_order(tmp_path: Path) -> None:
    """Iceberg refuses to read a table that is older than its history by more than a minute."""
    scene = Scene(tmp_path)
    changed_ms = int(iceberg_tables.metadata(scene.table)["last-updated-ms"]) + 3_600_000
    iceberg_tables.change(scene.table, **{"last-updated-ms": changed_ms})
    scene.make()
    fields = iceberg_tables.metadata(scene.table)
    times = [one["timestamp-ms"] for one in fields["snapshot-log"]]
    assert times == sorted(times)
    assert fields["last-updated-ms"] >= max(*times, *(one["timestamp-ms"] for one in fields["metadata-log"]))
    assert fields["last-updated-ms"] >= changed_ms


def test_a_replay_behind_a_batch_is_not_staged(table: Path) -> None:
    for act in (lambda: opened(table).stage(OPERATION, 1, {}), lambda: opened(table).swap_of(OPERATION, STREAM, 1)):
        with raises_code(Refused, "swap-unsupported"):
            act()


def test_nothing_is_taken_out_of_a_table_without_the_batch(table: Path) -> None:
    cut = opened(table).cut_after(LAST, {})
    assert (cut.batches, cut.files) == ((), ())
