"""An Iceberg table built on a branch and swapped, without Spark: pyiceberg writes the tables, and reads them, too."""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slackwater.core.errors import Refused
from slackwater.core.sink import NO_OTHERS, Others, Owner
from slackwater.sinks import iceberg
from slackwater.sinks.all_of import AllOfOutput
from slackwater.sinks.common.registry import open_output
from slackwater.sinks.iceberg.output import IcebergOutput
from slackwater.storage.local import LocalStore
from slackwater.storage.protocols import StoreTraits
from tests.sinks import iceberg_tables
from tests.sinks.swap_scene import SwapScene
from tests.support.errors import raises_code
from tests.support.kill_points import kill_points

OPERATION = "20260105T093000-1a2b3c"
OWNER = Owner("5f0e", "clicks/per_page", "/srv/home")
BRANCH, REPLACED = f"slackwater-staged-{OPERATION}", f"slackwater-replaced-{OPERATION}"
LAST, STAGED = 4, 2


class Scene(SwapScene):
    """A table with batches 0 to LAST, and on a branch batches 0 to STAGED."""

    def __init__(self, folder: Path, *, snapshot: bool = True, last: int = LAST) -> None:
        self.folder, self.table = folder, folder / "a table"
        iceberg_tables.create(self.table, snapshot=snapshot)
        for batch in range(last + 1):
            iceberg_tables.write_batch(self.table, OWNER.stream_id, batch, files=batch % 3)
        self.output.claim(OWNER)
        self.output.stage(OPERATION, -1, {})
        self.output.staged(OPERATION).claim(OWNER)
        for batch in range(STAGED + 1):
            self.write_staged(batch)
        self.swap = self.output.swap_of(OPERATION, OWNER.stream_id)

    def write_staged(self, batch: int) -> None:
        iceberg_tables.write_batch(self.table, OWNER.stream_id, batch, epoch=4, branch=BRANCH)

    @property
    def output(self) -> IcebergOutput:
        return IcebergOutput(str(self.table))

    def visible(self) -> Mapping[str, bytes]:
        return iceberg_tables.live_files(self.table)

    def staged(self) -> Mapping[str, bytes]:
        return iceberg_tables.live_files(self.table, BRANCH)

    def epoch(self) -> int:
        epoch: int = json.loads(self.fields["properties"][iceberg_tables.PROPERTY])["epoch"]
        return epoch

    @property
    def fields(self) -> dict[str, Any]:
        return iceberg_tables.metadata(self.table)


def refused(scene: Scene, code: str, act: Callable[[], object]) -> Refused:
    before = iceberg_tables.newest(scene.table), scene.fields
    with raises_code(Refused, code) as caught:
        act()
    assert (iceberg_tables.newest(scene.table), scene.fields) == before
    return caught.value


def own_properties(scene: Scene) -> set[str]:
    return {key for key in scene.fields["properties"] if key.startswith("slackwater.")}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_swapped_and_swapped_back(scene: Scene) -> None:
    old, new, version = scene.visible(), scene.staged(), iceberg_tables.newest(scene.table)
    assert scene.output.staged(OPERATION).last_written() == STAGED

    for _ in range(2):
        scene.make()
        assert scene.visible() == new
        assert (scene.output.last_written(), scene.output.owner()) == (STAGED, OWNER)
        assert scene.output.damage("all") == ()
        assert iceberg_tables.newest(scene.table) == version + 1, "one commit"
        assert scene.epoch() == 4, "higher than that of the last run into either"
        assert set(scene.fields["refs"]) == {"main", REPLACED}
        assert scene.fields["snapshot-log"][-1]["snapshot-id"] == scene.fields["current-snapshot-id"]
    assert iceberg_tables.live_files(scene.table, REPLACED) == old

    # The stream has continued before the swap is undone.
    iceberg_tables.write_batch(scene.table, OWNER.stream_id, STAGED + 1, epoch=5)
    continued = scene.visible()
    assert scene.output.last_written() == STAGED + 1
    for _ in range(2):
        scene.undo()
        assert (scene.visible(), scene.staged()) == (old, continued)
        assert (scene.output.last_written(), scene.output.staged(OPERATION).last_written()) == (LAST, STAGED + 1)
        assert (iceberg_tables.newest(scene.table), scene.epoch()) == (version + 3, 6)
    for _ in range(2):
        scene.make()
        assert scene.visible() == continued
        assert iceberg_tables.newest(scene.table) == version + 4
    scene.undo()
    assert scene.visible() == old
    for _ in range(2):
        scene.output.discard(OPERATION, "staged")
        assert set(scene.fields["refs"]) == {"main"}
        assert own_properties(scene) == {iceberg_tables.PROPERTY}
    assert scene.output.cut_after(LAST - 1, {}).batches == (LAST,), "the history is that of before the swap"


def test_batches_that_were_swapped_in_can_be_cut(scene: Scene) -> None:
    scene.make()
    cut = scene.output.cut_after(0, {})
    assert cut.batches == tuple(range(1, STAGED + 1))
    scene.output.cut(cut, {}, LocalStore(scene.table.parent / "cut"))
    assert (scene.output.last_written(), list(scene.visible())) == (0, ["data/staged-0-0 a.parquet"])


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("after", [-1, 0, 3, LAST])
def test_a_staged_table_with_older_batches_has_what_a_cut_leaves(after: int, version: int, tmp_path: Path) -> None:
    for name in ("out", "cut"):
        iceberg_tables.create(tmp_path / name, version=version)
        for batch in range(LAST + 1):
            iceberg_tables.write_batch(tmp_path / name, OWNER.stream_id, batch)
        IcebergOutput(str(tmp_path / name)).claim(OWNER)
    output, cutting = (IcebergOutput(str(tmp_path / name)) for name in ("out", "cut"))
    cutting.cut(cutting.cut_after(after, {}), {}, LocalStore(tmp_path / "backup"))
    expected, whole = (sorted(iceberg_tables.live_files(tmp_path / name)) for name in ("cut", "out"))

    for _ in range(2):
        output.stage(OPERATION, after, {})
        assert sorted(iceberg_tables.live_files(tmp_path / "out", BRANCH)) == expected
        assert output.staged(OPERATION).last_written() == after
        assert output.staged(OPERATION).damage("all") == ()
    iceberg_tables.write_batch(tmp_path / "out", OWNER.stream_id, after + 1, epoch=3, branch=BRANCH)
    swap, backup = output.swap_of(OPERATION, OWNER.stream_id), LocalStore(tmp_path / "swap")
    output.swap(swap, backup)
    assert sorted(iceberg_tables.live_files(tmp_path / "out")) == [*expected, f"data/staged-{after + 1}-0 a.parquet"]
    assert output.last_written() == after + 1
    output.swap_back(swap, backup)
    assert sorted(iceberg_tables.live_files(tmp_path / "out")) == whole


def test_a_table_without_snapshots(tmp_path: Path) -> None:
    scene = Scene(tmp_path, snapshot=False, last=-1)
    new = scene.staged()
    scene.make()
    assert (scene.visible(), scene.output.last_written()) == (new, STAGED)
    assert set(scene.fields["refs"]) == {"main"}
    scene.undo()
    assert (scene.visible(), scene.staged(), scene.output.last_written()) == ({}, new, -1)
    assert (scene.fields["current-snapshot-id"], set(scene.fields["refs"])) == (-1, {BRANCH})
    scene.make()
    assert (scene.visible(), scene.output.last_written()) == (new, STAGED)
    scene.output.discard(OPERATION, "replaced")
    assert own_properties(scene) == {iceberg_tables.PROPERTY}


def test_a_replaced_table_that_is_discarded_cannot_come_back(scene: Scene) -> None:
    scene.make()
    new = scene.visible()
    scene.output.discard(OPERATION, "staged")
    assert REPLACED in scene.fields["refs"], "it is not a staged one"
    scene.output.discard(OPERATION, "replaced")
    assert set(scene.fields["refs"]) == {"main"}
    refused(scene, "restore-conflict", scene.undo)
    assert scene.visible() == new


def test_what_a_discarded_branch_leaves_is_used_again(scene: Scene) -> None:
    scene.output.discard(OPERATION, "staged")
    snapshots = len(scene.fields["snapshots"])
    scene.output.stage(OPERATION, -1, {})
    assert (len(scene.fields["snapshots"]), scene.staged()) == (snapshots, {})


def test_a_swap_that_was_undone_is_made_with_what_was_staged_since(scene: Scene) -> None:
    old = scene.visible()
    scene.make()
    scene.undo()
    scene.output.discard(OPERATION, "staged")
    scene.output.stage(OPERATION, -1, {})
    scene.write_staged(0)
    scene.make()
    assert (scene.output.last_written(), len(scene.visible())) == (0, 1)
    scene.undo()
    assert scene.visible() == old


def test_the_sink_and_the_output_name_one_place(tmp_path: Path) -> None:
    sink, output = iceberg(tmp_path / "out", keys="id"), IcebergOutput(str(tmp_path / "out"))
    staged = sink.staged(OPERATION)
    assert open_output(staged.identity()).location == output.staged(OPERATION).location
    assert replace(staged, branch=sink.branch) == sink
    with raises_code(Refused, "swap-unsupported"):
        iceberg("lake.gold.hourly").staged(OPERATION)


def test_readers_of_a_table_whose_first_snapshots_have_expired(scene: Scene) -> None:
    """A reset looks for streams that have read any of it."""
    first_run = f"slackwater:{OWNER.stream_id}:1:"
    snapshots = scene.fields["snapshots"]
    ids = [one["snapshot-id"] for one in snapshots if one["summary"].get("wap.id", "").startswith(first_run)]
    kept = [one for one in snapshots if one["snapshot-id"] not in ids[:2]]
    iceberg_tables.change(scene.table, snapshots=kept)
    for version in range(1, iceberg_tables.newest(scene.table)):
        (scene.table / "metadata" / f"v{version}.metadata.json").unlink()
    for path in (scene.table / "metadata").glob("0*.metadata.json"):
        path.unlink()
    whole = scene.output.whole({})
    assert (whole.batches, len(whole.files)) == (tuple(range(LAST + 1)), len(scene.visible()))
    assert (whole.bytes > 0, (whole.rows or 0) > 0) == (True, True)
    for identifier, read in ((ids[-1], True), (ids[2], True), (7, False)):
        assert scene.output.was_read([json.dumps({"snapshot_id": identifier})], whole) is read


def test_two_of_them_swapped_together(tmp_path: Path) -> None:
    scenes = [Scene(tmp_path / name) for name in ("first", "second")]
    output, backup = AllOfOutput([scene.output for scene in scenes]), LocalStore(tmp_path / "backup")
    old, new = ([see(scene) for scene in scenes] for see in (Scene.visible, Scene.staged))
    whole = output.whole({})
    assert (whole.batches, [set(part.files) for part in whole.members]) == (tuple(range(LAST + 1)), list(map(set, old)))
    swap = output.swap_of(OPERATION, OWNER.stream_id)
    output.swap(swap, backup)
    assert ([scene.visible() for scene in scenes], output.last_written()) == (new, STAGED)
    output.swap_back(swap, backup)
    assert ([scene.visible() for scene in scenes], output.last_written()) == (old, LAST)


class TestRefused:
    """Before anything is changed."""

    def test_no_table_or_one_of_no_stream(self, tmp_path: Path) -> None:
        output = IcebergOutput(str(tmp_path / "out"))
        for exists in (False, True):
            if exists:
                iceberg_tables.create(tmp_path / "out")
            with raises_code(Refused, "swap-unsupported"):
                output.stage(OPERATION, -1, {})

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            (lambda scene: scene.output.discard(OPERATION, "staged"), "staged-absent"),
            (lambda scene: (scene.table / "data" / "staged-1-0 a.parquet").write_text("torn"), "staged-damaged"),
            (lambda scene: iceberg_tables.write_batch(scene.table, OWNER.stream_id, LAST + 1), "swap-moved"),
            (lambda scene: TestOfOthers._append(scene, [7, 8]), "swap-moved"),
        ],
    )
    def test_a_swap(self, scene: Scene, change: Callable[[Scene], object], code: str) -> None:
        change(scene)
        refused(scene, code, scene.make)

    @pytest.mark.parametrize("branch", [BRANCH, REPLACED])
    def test_a_branch_of_somebody_else(self, scene: Scene, branch: str) -> None:
        properties = {iceberg_tables.PROPERTY: scene.fields["properties"][iceberg_tables.PROPERTY]}
        refs = {"main": scene.fields["refs"]["main"], branch: scene.fields["refs"][BRANCH]}
        iceberg_tables.change(scene.table, properties=properties, refs=refs)
        for act in (
            lambda: scene.output.stage(OPERATION, -1, {}),
            lambda: scene.output.discard(OPERATION, "staged"),
            lambda: scene.output.discard(OPERATION, "replaced"),
            scene.make,
        ):
            refused(scene, "staged-foreign", act)

    def test_another_stream(self, scene: Scene) -> None:
        other = replace(scene.swap, stream_id="other")
        refused(scene, "swap-foreign", lambda: scene.output.swap(other, scene.backup))

    def test_batches_that_the_table_does_not_have(self, scene: Scene) -> None:
        scene.output.discard(OPERATION, "staged")
        refused(scene, "stage-incomplete", lambda: scene.output.stage(OPERATION, LAST + 1, {}))

    def test_rows_of_another_writer_since_the_batch(self, scene: Scene) -> None:
        scene.output.discard(OPERATION, "staged")
        iceberg_tables.commit(scene.table, [iceberg_tables.data_file(scene.table, "other.parquet", [9])])
        refused(scene, "sink-uncuttable", lambda: scene.output.stage(OPERATION, LAST - 1, {}))
        scene.output.stage(OPERATION, LAST, {})
        assert "data/other.parquet" in scene.staged()

    def test_a_store_that_cannot_commit_a_version_alone(self, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(LocalStore, "traits", StoreTraits(remote=True, atomic_rename=False, atomic_replace=True))
        refused(scene, "swap-unsupported", scene.make)
        refused(scene, "swap-unsupported", lambda: scene.output.stage("other", -1, {}))

    def test_undo_after_somebody_went_back_to_an_older_snapshot(self, scene: Scene) -> None:
        scene.make()
        first = scene.fields["snapshots"][0]["snapshot-id"]
        refs = {**scene.fields["refs"], "main": {"type": "branch", "snapshot-id": first}}
        iceberg_tables.change(scene.table, **{"current-snapshot-id": first, "refs": refs})
        refused(scene, "restore-conflict", scene.undo)

    def test_undo_of_what_has_expired(self, scene: Scene) -> None:
        """Somebody has dropped the branch that keeps the snapshot."""
        head = scene.fields["current-snapshot-id"]
        scene.make()
        refs = {"main": scene.fields["refs"]["main"]}
        kept = [one for one in scene.fields["snapshots"] if one["snapshot-id"] != head]
        iceberg_tables.change(scene.table, refs=refs, snapshots=kept)
        refused(scene, "iceberg-restore", scene.undo)


class TestOfOthers:
    """Rows that the stream did not write."""

    @staticmethod
    def _append(scene: Scene, values: list[int]) -> None:
        iceberg_tables.commit(scene.table, [iceberg_tables.data_file(scene.table, f"other{values}.parquet", values)])

    def test_they_are_counted(self, scene: Scene) -> None:
        assert scene.swap.others == NO_OTHERS
        self._append(scene, [7, 8])
        iceberg_tables.write_batch(scene.table, OWNER.stream_id, LAST + 1)
        swap = scene.output.swap_of(OPERATION, OWNER.stream_id)
        assert swap.others == Others(2, 1, 1)
        before = scene.visible()
        scene.output.swap(swap, scene.backup)
        scene.output.swap_back(swap, scene.backup)
        assert scene.visible() == before

    def test_of_rows_whose_snapshots_have_expired_it_is_unknown(self, scene: Scene) -> None:
        self._append(scene, [7, 8])
        iceberg_tables.write_batch(scene.table, OWNER.stream_id, LAST + 1)
        kept = [scene.fields["current-snapshot-id"], scene.fields["refs"][BRANCH]["snapshot-id"]]
        snapshots = [one for one in scene.fields["snapshots"] if one["snapshot-id"] in kept]
        iceberg_tables.change(scene.table, snapshots=snapshots, **{"metadata-log": []})
        others = scene.output.swap_of(OPERATION, OWNER.stream_id).others
        assert (others.sure, others.rows) == (False, 4 + 2)

    def test_their_number_is_in_the_refusal_of_an_undo(self, scene: Scene) -> None:
        scene.make()
        self._append(scene, [7, 8])
        self._append(scene, [9])
        assert str(refused(scene, "restore-conflict", scene.undo).found).startswith("3 rows, 2 files, 2 commits")


def test_swapped_again_cut_and_undone_in_turn(scene: Scene) -> None:
    scene.make()
    iceberg_tables.write_batch(scene.table, OWNER.stream_id, STAGED + 1, epoch=5)
    before, operation = scene.visible(), "20260106T000000-000001"
    swap, backup = scene.output.swap_of(operation, OWNER.stream_id, 1), LocalStore(scene.table.parent / operation)
    scene.output.stage(operation, 1, {})
    branch = f"slackwater-staged-{operation}"
    name = iceberg_tables.data_file(scene.table, "again.parquet", [2])
    marker = {"wap.id": f"slackwater:{OWNER.stream_id}:6:2:0123"}
    snapshot = iceberg_tables.commit(scene.table, [name], marker, branch)
    iceberg_tables.mark(scene.table, OWNER.stream_id, 2, snapshot, epoch=6, branch=branch)
    assert (swap.others, len(scene.output.whole({}).files)) == (NO_OTHERS, len(before))
    scene.output.swap(swap, backup)
    assert scene.output.last_written() == 2
    assert scene.output.cut_after(0, {}).batches == (1, 2)
    scene.output.swap_back(swap, backup)
    assert (scene.visible(), scene.output.last_written()) == (before, STAGED + 1)


@pytest.mark.parametrize("action", ["stage", "swap", "swap_back"])
def test_killed_before_each_change_of_files(tmp_path: Path, action: str) -> None:
    """Readers see the one or the other; repeated, the action is finished; undone, the table is as it was."""
    scene = Scene(tmp_path / "w")
    old, new = scene.visible(), scene.staged()
    if action == "stage":
        scene.output.discard(OPERATION, "staged")
        kept = [one for one in scene.fields["snapshots"] if "wap.id" in one["summary"]]
        iceberg_tables.change(scene.table, snapshots=kept)
    elif action == "swap_back":
        scene.make()
    do = {"stage": lambda: scene.output.stage(OPERATION, -1, {}), "swap": scene.make, "swap_back": scene.undo}[action]
    shutil.copytree(tmp_path / "w", tmp_path / "template")

    def prepare() -> None:
        shutil.rmtree(tmp_path / "w")
        shutil.copytree(tmp_path / "template", tmp_path / "w")

    points = 0
    for points in kill_points(do, tmp_path / "w", prepare):
        assert scene.visible() in (old, new), f"killed before change {points}"
        do()
        _check_done(scene, action, old, new)
    _check_done(scene, action, old, new)
    assert points >= 4, "the commit is several file changes"


def _check_done(scene: Scene, action: str, old: Mapping[str, bytes], new: Mapping[str, bytes]) -> None:
    swapped = action == "swap"
    assert (scene.visible(), scene.output.last_written()) == ((new, STAGED) if swapped else (old, LAST))
    assert scene.output.damage("all") == ()
    if action == "stage":
        assert (scene.staged(), scene.output.staged(OPERATION).last_written()) == ({}, -1)
        return
    assert set(scene.fields["refs"]) == {"main", REPLACED if swapped else BRANCH}
    scene.undo()
    assert (scene.visible(), scene.staged(), scene.output.last_written()) == (old, new, LAST)
