"""A Delta table that Spark's own streaming writer fills: cut, staged and swapped under the id of the query."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from deltalake import DeltaTable

from slackwater.core.errors import Refused
from slackwater.core.sink import Owner
from slackwater.sinks.common.contract import of_query
from slackwater.sinks.common.registry import open_output
from slackwater.sinks.delta.sink import DeltaOutput, DeltaQueryTable
from tests.sinks import delta_logs
from tests.sinks.delta_killed import points_of
from tests.sinks.swap_scene import SwapScene
from tests.support.errors import raises_code

QUERY, EARLIER = "11111111-2222-4333-8444-555555555555", "99999999-2222-4333-8444-555555555555"
OPERATION = "20260105T093000-1a2b3c"
STREAM = "5f0e"
LAST, STAGED = 7, 3


class Scene(SwapScene):
    """A table with batches 0 to LAST of the query, and one in staging that its writer has filled with 0 to STAGED."""

    def __init__(self, folder: Path, after: int = -1) -> None:
        self.folder, self.table = folder, folder / "shop" / "counts"
        for path in (self.table.parent, folder / "backup"):
            shutil.rmtree(path, ignore_errors=True)
        delta_logs.commit(self.table, delta_logs.TABLE)
        _write(self.table, range(LAST + 1), "part")
        self.output.claim(Owner(STREAM, "watched/counts", "/srv/home"))
        self.output.stage(OPERATION, after, {})
        self.staging = Path(self.output.staged_path(OPERATION))
        _write(self.staging, range(after + 1, STAGED + 1), "staged")
        self.swap = self.output.swap_of(OPERATION, STREAM, after)

    @property
    def output(self) -> DeltaQueryTable:
        """As a plan opens the output of a recorded identity."""
        sink = {"kind": "table", "name": f"delta.{self.table}", "format": "delta"}
        output = of_query(open_output(sink), QUERY)
        assert isinstance(output, DeltaQueryTable)
        return output

    def visible(self) -> Mapping[str, bytes]:
        return delta_logs.live_files(self.table)

    @property
    def newest(self) -> int | None:
        return DeltaTable(self.table).transaction_version(QUERY)

    def discard(self) -> None:
        self.output.discard(OPERATION, "staged")

    def skips(self, batch: int) -> bool:
        """What Spark's own writer asks the table before it writes a batch of the query."""
        return self.newest is not None and self.newest >= batch


def _write(table: Path, batches: range, prefix: str) -> None:
    for batch in batches:
        delta_logs.write_batch(table, QUERY, batch, files=batch % 3, prefix=prefix)


@pytest.mark.parametrize("after", [-1, 1, STAGED])
def test_the_swap_has_the_mark_of_the_query_and_its_undo_the_one_before(tmp_path: Path, after: int) -> None:
    scene = Scene(tmp_path, after)
    old, new = scene.visible(), delta_logs.live_files(scene.staging)
    for _ in range(2):
        scene.make()
        assert scene.visible() == new
        assert scene.output.last_written() == STAGED
        assert [scene.skips(batch) for batch in (STAGED, STAGED + 1)] == [True, False]
    _write(scene.table, range(STAGED + 1, STAGED + 3), "continued")
    for _ in range(2):
        scene.undo()
        assert scene.visible() == old
        assert [scene.skips(batch) for batch in (LAST, LAST + 1)] == [True, False]
    assert [path.name for path in scene.table.iterdir() if path.name.startswith("_")] == ["_delta_log"]


def test_nothing_is_skipped_after_a_swap_that_has_no_batch(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    shutil.rmtree(scene.staging)
    scene.output.stage(OPERATION, -1, {})
    scene.make()
    assert scene.visible() == {}
    assert not scene.skips(0)
    scene.undo()
    assert scene.skips(LAST)


@pytest.mark.thorough
@pytest.mark.parametrize("after", [-1, 1])
def test_each_step_can_be_killed(tmp_path: Path, after: int) -> None:
    scene = Scene(tmp_path, after)
    old, new = scene.visible(), delta_logs.live_files(scene.staging)
    scene.discard()
    scene.output.stage(OPERATION, after, {})
    started = delta_logs.live_files(scene.staging)
    argument = f"{OPERATION} {after}"
    for point in points_of("stage", scene.table, tmp_path, argument, scene.discard, query=QUERY):
        scene.output.stage(OPERATION, after, {})
        assert delta_logs.live_files(scene.staging) == started, f"killed before change {point}"
        assert scene.output.staged(OPERATION).last_written() == after
    scene = Scene(tmp_path, after)
    for point in points_of("swap", scene.table, tmp_path, scene.swap, lambda: Scene(tmp_path, after), query=QUERY):
        assert (scene.visible(), scene.newest) in ((old, LAST), (new, STAGED)), f"killed before change {point}"
        scene.make()
        assert (scene.visible(), scene.newest) == (new, STAGED)
        scene.undo()
        assert (scene.visible(), scene.newest) == (old, LAST)
    for point in points_of("swap_back", scene.table, tmp_path, scene.swap, scene.make, query=QUERY):
        assert (scene.visible(), scene.newest) in ((old, LAST), (new, STAGED)), f"killed before change {point}"
        scene.undo()
        assert (scene.visible(), scene.newest) == (old, LAST)


def test_the_staged_table_has_the_columns_and_the_rows_of_others(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    staged, real = DeltaTable(scene.staging), DeltaTable(scene.table)
    assert staged.schema() == real.schema()
    delta_logs.write_batch(scene.table, EARLIER, 0, files=1, prefix="earlier")
    scene.output.discard(OPERATION, "staged")
    scene.output.stage(OPERATION, -1, {})
    assert [name for name in delta_logs.live_files(scene.staging) if "earlier" in name]


def test_a_batch_of_a_backfill_is_taken_out_and_its_number_is_free(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    before = scene.visible()
    _write(scene.table, range(LAST + 1, LAST + 2), "backfilled")
    cut = scene.output.cut_after(LAST, {})
    for _ in range(2):
        scene.output.cut(cut, {}, scene.backup)
        assert scene.visible() == before
    assert [scene.skips(batch) for batch in (LAST, LAST + 1)] == [True, False]


@pytest.mark.thorough
@pytest.mark.parametrize("after", [-1, 3])
def test_each_change_of_a_cut_and_its_undo_can_be_killed(tmp_path: Path, after: int) -> None:
    scene = Scene(tmp_path)
    cut = scene.output.cut_after(after, {})
    old = scene.visible(), LAST

    def cut_it() -> None:
        scene.output.cut(cut, {}, scene.backup)

    cut_it()
    new = scene.visible(), after
    for point in points_of("cut", scene.table, tmp_path, cut, lambda: Scene(tmp_path), query=QUERY):
        assert (scene.visible(), scene.newest) in (old, new), f"killed before change {point}"
        cut_it()
        assert (scene.visible(), scene.newest) == new
    for point in points_of("restore", scene.table, tmp_path, cut, cut_it, query=QUERY):
        assert (scene.visible(), scene.newest) in (old, new), f"killed before change {point}"
        scene.output.restore(cut, scene.backup)
        assert (scene.visible(), scene.newest) == old
    scene.output.restore(cut, scene.backup)
    assert [scene.skips(batch) for batch in (LAST, LAST + 1)] == [True, False]


def test_a_table_of_a_stream_of_slackwater_is_not_swapped(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    DeltaOutput(str(scene.table)).claim(Owner("another", "clicks/counts", "/srv/home"))
    with raises_code(Refused, "swap-foreign"):
        scene.make()
