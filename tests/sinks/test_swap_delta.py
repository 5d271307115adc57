"""A Delta table staged and swapped, without Spark: logs are written by hand, and read by deltalake, too."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from slackwater.core.errors import Refused
from slackwater.core.sink import NO_OTHERS, Others, Owner, Swap
from slackwater.sinks import delta
from slackwater.sinks.common.registry import open_output
from slackwater.sinks.common.staging import StagingDirectory
from slackwater.sinks.delta import changes
from slackwater.sinks.delta.sink import DeltaOutput, app_of
from slackwater.sinks.delta.table import DeltaVersion
from slackwater.storage.local import LocalStore
from tests.sinks import delta_logs
from tests.sinks.delta_killed import points_of
from tests.sinks.swap_scene import SwapScene
from tests.support.errors import raises_code

OPERATION = "20260105T093000-1a2b3c"
OWNER = Owner("5f0e", "clicks/per_page", "/srv/home")
APP = app_of(OWNER.stream_id)
LAST, STAGED = 7, 4


class Scene(SwapScene):
    """A table with batches 0 to LAST, and next to it a staged one with batches 0 to STAGED."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.table = folder / "data" / "a table"
        self.write()
        self.swap = self.output.swap_of(OPERATION, OWNER.stream_id)

    def write(self) -> None:
        for path in (self.folder / "data", self.folder / "backup"):
            shutil.rmtree(path, ignore_errors=True)
        _write(self.table, LAST, "part")
        self.output.claim(OWNER)
        self.output.stage(OPERATION, -1, {})
        _write(self.staging, STAGED, "staged")
        self.output.staged(OPERATION).claim(OWNER)

    @property
    def output(self) -> DeltaOutput:
        return DeltaOutput(str(self.table))

    @property
    def staging(self) -> Path:
        return self.table.with_name(f".{self.table.name}.slackwater-{OPERATION}")

    def visible(self) -> Mapping[str, bytes]:
        return delta_logs.live_files(self.table)


def _write(table: Path, last: int, prefix: str) -> None:
    delta_logs.commit(table, delta_logs.TABLE)
    for batch in range(last + 1):
        delta_logs.write_batch(table, APP, batch, files=batch % 3, prefix=prefix)


def refused(scene: Scene, code: str, act: Callable[[], object]) -> None:
    before = scene.visible(), delta_logs.newest(scene.table), delta_logs.transactions(scene.table)
    with raises_code(Refused, code):
        act()
    assert (scene.visible(), delta_logs.newest(scene.table), delta_logs.transactions(scene.table)) == before


def test_swapped_and_swapped_back(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    old, new = scene.visible(), delta_logs.live_files(scene.staging)
    version = delta_logs.newest(scene.table)

    for _ in range(2):
        scene.make()
        assert scene.visible() == new
        assert (scene.output.last_written(), scene.output.owner()) == (STAGED, OWNER)
        assert scene.output.damage("all") == ()
        assert delta_logs.newest(scene.table) == version + 1, "one commit"
        assert DeltaTable(scene.table).transaction_version(APP) == STAGED

    # The stream has continued before the swap is undone.
    delta_logs.write_batch(scene.table, APP, STAGED + 1, prefix="continued")
    assert scene.output.last_written() == STAGED + 1
    for _ in range(2):
        scene.undo()
        assert scene.visible() == old
        assert scene.output.last_written() == LAST
        assert delta_logs.newest(scene.table) == version + 3
        assert DeltaTable(scene.table).transaction_version(APP) == LAST
    for _ in range(2):
        scene.make()
        assert scene.visible() == new
        assert delta_logs.newest(scene.table) == version + 4
    scene.undo()
    assert scene.visible() == old
    scene.output.discard(OPERATION, "staged")
    assert list(scene.table.parent.iterdir()) == [scene.table]
    cut = scene.output.cut_after(LAST - 1, {})
    assert cut.batches == (LAST,), "the history is that of before the swap"


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("after", [0, 3, LAST])
def test_a_staged_table_with_older_batches_has_what_a_cut_leaves(tmp_path: Path, after: int, *, shared: bool) -> None:
    for name in ("out", "cut"):
        _write(tmp_path / name, LAST, "part")
        DeltaOutput(str(tmp_path / name)).claim(OWNER)
        if shared:
            delta_logs.commit(tmp_path / name, [delta_logs.add(tmp_path / name, "other.parquet", b"others")])
    output, cutting = DeltaOutput(str(tmp_path / "out")), DeltaOutput(str(tmp_path / "cut"))
    cutting.cut(cutting.cut_after(after, {}), {}, LocalStore(tmp_path / "backup"))
    whole = delta_logs.live_files(tmp_path / "out")

    staged = output.staged(OPERATION)
    folder = Path(staged.location)
    for _ in range(2):
        output.stage(OPERATION, after, {})
        assert delta_logs.live_files(folder) == delta_logs.live_files(tmp_path / "cut")
        assert (staged.last_written(), staged.damage("all")) == (after, ())
        assert DeltaTable(folder).metadata().id != DeltaTable(tmp_path / "out").metadata().id
    staged.claim(OWNER)
    delta_logs.write_batch(folder, APP, after + 1, prefix="staged")
    new = delta_logs.live_files(folder)
    output.swap(output.swap_of(OPERATION, OWNER.stream_id), LocalStore(tmp_path / "swap"))
    assert delta_logs.live_files(tmp_path / "out") == new
    assert output.last_written() == after + 1
    output.swap_back(replace(output.swap_of(OPERATION, OWNER.stream_id), replaced=LAST), LocalStore(tmp_path / "swap"))
    assert delta_logs.live_files(tmp_path / "out") == whole


def test_older_batches_that_the_table_does_not_have_are_not_staged(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.output.discard(OPERATION, "staged")
    refused(scene, "stage-incomplete", lambda: scene.output.stage(OPERATION, LAST + 1, {}))
    scene.output.discard(OPERATION, "staged")
    for version in range(4):
        (scene.table / delta_logs.LOG / f"{version:020}.json").unlink()
    refused(scene, "delta-log-cleaned", lambda: scene.output.stage(OPERATION, LAST, {}))


def test_batches_that_were_swapped_in_are_one_commit_and_cut_one_by_one(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    new = delta_logs.live_files(scene.staging)
    scene.make()
    delta_logs.write_batch(scene.table, APP, STAGED + 1, prefix="continued")
    whole = scene.visible()
    assert scene.output.cut_after(STAGED, {}).batches == (STAGED + 1,)
    for after in (STAGED, STAGED - 1, 1, -1):
        cut, backup = scene.output.cut_after(after, {}), LocalStore(tmp_path / f"cut{after}")
        assert set(cut.files) == {name for name in whole if int(name.split("-")[1]) > after}
        for _ in range(2):
            scene.output.cut(cut, {}, backup)
            assert scene.visible() == {name: data for name, data in new.items() if int(name.split("-")[1]) <= after}
            assert scene.output.last_written() == after
        for _ in range(2):
            scene.output.restore(cut, backup)
            assert (scene.visible(), scene.output.last_written()) == (whole, STAGED + 1)
    scene.output.cut(scene.output.cut_after(1, {}), {}, LocalStore(tmp_path / "cut"))
    delta_logs.write_batch(scene.table, APP, 2, prefix="again")
    again = scene.output.cut_after(0, {})
    assert set(again.files) == {"staged-1-0 a.parquet", "again-2-0 a.parquet"}, "what was cut does not count again"


@pytest.mark.parametrize("after", [-1, 2])
def test_batches_that_replaced_rows_are_cut_only_all_at_once(tmp_path: Path, after: int) -> None:
    scene = Scene(tmp_path)
    scene.output.discard(OPERATION, "staged")
    scene.output.stage(OPERATION, after, {})
    scene.output.staged(OPERATION).claim(OWNER)
    if after < 0:
        delta_logs.commit(scene.staging, delta_logs.TABLE)
    first = delta_logs.write_batch(scene.staging, APP, after + 1, prefix="staged", files=1)
    delta_logs.write_batch(scene.staging, APP, after + 2, prefix="staged", files=1, replaces=first)
    scene.make()
    refused(scene, "sink-uncuttable", lambda: scene.output.cut_after(after + 1, {}))
    kept = {name: data for name, data in scene.visible().items() if not name.startswith("staged")}
    scene.output.cut(scene.output.cut_after(after, {}), {}, LocalStore(tmp_path / "cut"))
    assert (scene.visible(), scene.output.last_written()) == (kept, after)


@pytest.mark.parametrize("by_others", [False, True])
def test_batches_that_replaced_rows_of_older_ones_are_not_cut_or_replayed(tmp_path: Path, *, by_others: bool) -> None:
    """MERGE in the staged table writes a file again that has rows of the batches before."""
    scene = Scene(tmp_path)
    scene.output.discard(OPERATION, "staged")
    scene.output.stage(OPERATION, 2, {})
    scene.output.staged(OPERATION).claim(OWNER)
    replaced = ["part-1-0 a.parquet"]
    if by_others:
        add = delta_logs.add(scene.staging, "compacted.parquet", b"older", data_change=False)
        delta_logs.commit(scene.staging, [delta_logs.remove(scene.staging, replaced.pop(), data_change=False), add])
    delta_logs.write_batch(scene.staging, APP, 3, prefix="staged", replaces=replaced)
    new = delta_logs.live_files(scene.staging)
    scene.make()
    for after in (0, 2):
        refused(scene, "sink-uncuttable", partial(scene.output.cut_after, after, {}))
        refused(scene, "sink-uncuttable", partial(scene.output.swap_of, "another", "5f0e", after))
    assert scene.visible() == new
    delta_logs.write_batch(scene.table, APP, 4, prefix="continued")
    scene.output.cut(scene.output.cut_after(3, {}), {}, LocalStore(tmp_path / "cut"))
    assert (scene.visible(), scene.output.last_written()) == (new, 3)


def _staged_again(scene: Scene, operation: str, after: int, last: int, prefix: str) -> Swap:
    """Another operation builds a table in staging, and swaps it."""
    swap = scene.output.swap_of(operation, OWNER.stream_id, after)
    scene.output.stage(operation, after, {})
    staged = scene.output.staged(operation)
    staged.claim(OWNER)
    folder = Path(staged.location)
    if delta_logs.newest(folder) < 0:
        delta_logs.commit(folder, delta_logs.TABLE)
    for batch in range(after + 1, last + 1):
        delta_logs.write_batch(folder, APP, batch, prefix=prefix)
    scene.output.swap(swap, LocalStore(scene.folder / "backups" / operation))
    return swap


def _names(scene: Scene) -> set[str]:
    return {name.removesuffix(" a.parquet") for name in scene.visible()}


@pytest.mark.parametrize("by_others", [False, True])
def test_swapped_again_and_again_cut_and_undone_in_turn(tmp_path: Path, *, by_others: bool) -> None:
    scene = Scene(tmp_path)
    scene.make()
    others = {"other.parquet"} if by_others else set()
    if by_others:
        delta_logs.commit(scene.table, [delta_logs.add(scene.table, "other.parquet", b"others")])
    delta_logs.write_batch(scene.table, APP, STAGED + 1, prefix="continued")
    states = [scene.visible()]
    swaps = [_staged_again(scene, "20260106T000000-000001", 2, 4, "second")]
    assert _names(scene) == {"staged-1-0", "staged-2-0", "staged-2-1", "second-3-0", "second-4-0"} | others
    states.append(scene.visible())
    swaps.append(_staged_again(scene, "20260106T000000-000002", 1, 3, "third"))
    assert _names(scene) == {"staged-1-0", "third-2-0", "third-3-0"} | others
    states.append(scene.visible())
    swaps.append(_staged_again(scene, "20260106T000000-000003", -1, 1, "fourth"))
    assert _names(scene) == {"fourth-0-0", "fourth-1-0"} | others
    assert scene.output.cut_after(-1, {}).files == ("fourth-0-0 a.parquet", "fourth-1-0 a.parquet")
    for swap in reversed(swaps):
        scene.output.swap_back(swap, LocalStore(scene.folder / "backups" / swap.operation))
        assert scene.visible() == states.pop()
    assert scene.output.last_written() == STAGED + 1
    cut = scene.output.cut_after(2, {})
    assert {name.split("-")[1] for name in cut.files} == {"4", "5"}, "batch 3 has no file"


class TestOfOthers:
    """Rows that the stream did not write."""

    @staticmethod
    def _append(scene: Scene, name: str = "other.parquet", rows: int = 3) -> None:
        delta_logs.commit(scene.table, [delta_logs.add(scene.table, name, b"others", rows)])

    @staticmethod
    def _again(scene: Scene) -> None:
        scene.output.discard(OPERATION, "staged")
        scene.swap = scene.output.swap_of(OPERATION, OWNER.stream_id)
        scene.output.stage(OPERATION, -1, {})
        scene.output.staged(OPERATION).claim(OWNER)
        if delta_logs.newest(scene.staging) < 0:
            delta_logs.commit(scene.staging, delta_logs.TABLE)
        delta_logs.write_batch(scene.staging, APP, 0, prefix="staged")

    def test_files_that_others_added_stay(self, tmp_path: Path) -> None:
        scene = Scene(tmp_path)
        self._append(scene)
        self._again(scene)
        assert scene.swap.others == NO_OTHERS
        before = scene.visible()
        scene.make()
        assert set(scene.visible()) == {"other.parquet", "staged-0-0 a.parquet"}
        scene.undo()
        assert scene.visible() == before

    def test_a_table_that_had_rows_before_the_stream(self, tmp_path: Path) -> None:
        scene = Scene(tmp_path)
        shutil.rmtree(scene.table)
        delta_logs.commit(scene.table, [*delta_logs.TABLE, delta_logs.add(scene.table, "first.parquet", b"first")])
        for batch in range(3):
            delta_logs.write_batch(scene.table, APP, batch)
        scene.output.claim(OWNER)
        self._again(scene)
        assert scene.swap.others == NO_OTHERS
        scene.make()
        assert set(scene.visible()) == {"first.parquet", "staged-0-0 a.parquet"}

    def test_rows_that_others_updated_are_counted(self, tmp_path: Path) -> None:
        scene = Scene(tmp_path)
        metrics = {"numUpdatedRows": "1", "numCopiedRows": "8"}
        info = {"commitInfo": {"timestamp": 0, "operation": "UPDATE", "operationMetrics": metrics}}
        updated = delta_logs.add(scene.table, "updated.parquet", b"updated", 10)
        removed = delta_logs.remove(scene.table, "part-1-0 a.parquet")
        delta_logs.commit(scene.table, [info, updated, removed])
        self._again(scene)
        assert scene.swap.others == Others(2, 1, 1)
        assert scene.swap.others.text == "2 rows, 1 file, 1 commit"
        scene.make()
        assert set(scene.visible()) == {"staged-0-0 a.parquet"}, "who swaps without consent is for apply to refuse"
        scene.undo()
        assert "updated.parquet" in scene.visible()

    def test_compaction_meanwhile_is_no_change(self, tmp_path: Path) -> None:
        scene = Scene(tmp_path)
        compacted = delta_logs.add(scene.table, "compacted.parquet", b"compacted", data_change=False)
        removed = delta_logs.remove(scene.table, "part-1-0 a.parquet", data_change=False)
        delta_logs.commit(scene.table, [compacted, removed])
        scene.make()
        assert {name.split("-")[0] for name in scene.visible()} == {"staged"}

    def test_a_commit_of_others_meanwhile(self, tmp_path: Path) -> None:
        scene = Scene(tmp_path)
        self._append(scene)
        refused(scene, "swap-moved", scene.make)

    def test_a_commit_between_the_check_and_the_swap(self, tmp_path: Path) -> None:
        """What is checked is the version that the commit follows."""
        scene = Scene(tmp_path)
        place = StagingDirectory(str(scene.table), OPERATION)
        newest = delta_logs.newest(scene.table)
        self._append(scene)
        refused(scene, "swap-moved", lambda: changes.swap_in(place, APP, STAGED, newest))
        refused(scene, "swap-moved", lambda: changes.swap_back(place, 3, APP, 2, newest))

    def test_a_cut_and_its_undo_follow_the_version_that_was_checked(self, tmp_path: Path) -> None:
        scene = Scene(tmp_path)
        newest, backup = delta_logs.newest(scene.table), LocalStore(tmp_path / "cut")
        cut = scene.output.cut_after(3, {})
        self._append(scene)
        with pytest.raises(FileExistsError):
            DeltaVersion(str(scene.table), newest).restore(3, APP, 2)
        refused(scene, "cut-mismatch", lambda: scene.output.cut(cut, {}, backup))
        scene.output.cut(scene.output.cut_after(3, {}), {}, backup)
        assert "other.parquet" in scene.visible()

    def test_their_number_is_in_the_refusal_of_an_undo(self, tmp_path: Path) -> None:
        scene = Scene(tmp_path)
        scene.make()
        cut, backup = scene.output.cut_after(0, {}), LocalStore(tmp_path / "cut")
        scene.output.cut(cut, {}, backup)
        for number in range(2):
            self._append(scene, f"other{number}.parquet")
        acts: list[Callable[[], object]] = [lambda: scene.output.restore(cut, backup), scene.undo]
        for act in acts:
            with pytest.raises(Refused) as caught:
                act()
            assert (caught.value.code, str(caught.value.found)[:26]) == (
                "restore-conflict",
                "6 rows, 2 files, 2 commits",
            )


class TestWrittenByALibrary:
    """Tables with checkpoints, partitions and other schemas, as deltalake writes and reads them."""

    @staticmethod
    def _write(table: Path, batches: Sequence[int], rows: Callable[[int], Mapping[str, Any]]) -> None:
        for batch in batches:
            write_deltalake(
                table,
                pa.table(dict(rows(batch))),
                mode="append",
                partition_by=["day"],
                commit_properties=CommitProperties(app_transactions=[Transaction(APP, batch)]),
            )

    @staticmethod
    def _rows(table: Path) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = DeltaTable(table).to_pyarrow_table().to_pylist()
        return sorted(rows, key=repr)

    def _scene(self, folder: Path, staged: Callable[[int], Mapping[str, Any]]) -> DeltaOutput:
        output = DeltaOutput(str(folder / "out"))
        output.claim(OWNER)
        self._write(folder / "out", range(4), lambda batch: {"day": [f"ö {batch % 2}"], "n": [batch]})
        output.stage(OPERATION, -1, {})
        output.staged(OPERATION).claim(OWNER)
        self._write(Path(output.staged(OPERATION).location), range(6), staged)
        return output

    @pytest.mark.parametrize("cleaned", [False, True])
    def test_after_a_checkpoint(self, tmp_path: Path, *, cleaned: bool) -> None:
        output = self._scene(tmp_path, lambda batch: {"day": [f"ö {batch % 3}"], "n": [100 + batch]})
        table, staging = tmp_path / "out", Path(output.staged(OPERATION).location)
        for folder in (table, staging):
            DeltaTable(folder).create_checkpoint()
            for entry in list((folder / delta_logs.LOG).glob("*.json")) if cleaned else []:
                if int(entry.stem) < DeltaTable(folder).version():
                    entry.unlink()
        old, new = self._rows(table), self._rows(staging)
        swap, backup = output.swap_of(OPERATION, OWNER.stream_id), LocalStore(tmp_path / "backup")
        output.swap(swap, backup)
        assert self._rows(table) == new
        DeltaTable(table).create_checkpoint()
        assert self._rows(table) == new
        assert output.last_written() == 5
        output.swap_back(swap, backup)
        assert self._rows(table) == old
        assert (output.last_written(), output.damage("all")) == (3, ())

    def test_whose_files_are_that_only_a_checkpoint_has_is_unknown(self, tmp_path: Path) -> None:
        output = self._scene(tmp_path, lambda batch: {"day": ["x"], "n": [batch]})
        table = tmp_path / "out"
        assert output.swap_of(OPERATION, OWNER.stream_id).others == NO_OTHERS
        DeltaTable(table).create_checkpoint()
        self._write(table, [4], lambda batch: {"day": ["x"], "n": [batch]})
        for entry in list((table / delta_logs.LOG).glob("*.json"))[:]:
            if int(entry.stem) < DeltaTable(table).version():
                entry.unlink()
        assert output.swap_of(OPERATION, OWNER.stream_id).others == Others(None, 4, 0, sure=False)
        whole = output.whole({})
        assert (len(whole.files), whole.batches) == (5, tuple(range(5))), "who has read it can be asked all the same"
        assert whole.bytes == sum((table / name).stat().st_size for name in whole.files)

    def test_with_other_columns(self, tmp_path: Path) -> None:
        output = self._scene(tmp_path, lambda batch: {"day": ["x"], "n": [str(batch)], "more": [1.5]})
        table, staging = tmp_path / "out", Path(output.staged(OPERATION).location)
        old, new, known = self._rows(table), self._rows(staging), DeltaTable(table).metadata()
        swap, backup = output.swap_of(OPERATION, OWNER.stream_id), LocalStore(tmp_path / "backup")
        output.swap(swap, backup)
        assert self._rows(table) == new
        assert DeltaTable(table).metadata().id == known.id
        output.swap_back(swap, backup)
        assert self._rows(table) == old
        assert DeltaTable(table).metadata() == known

    def test_after_vacuum_a_swap_cannot_be_undone(self, tmp_path: Path) -> None:
        output = self._scene(tmp_path, lambda batch: {"day": ["x"], "n": [batch]})
        swap, backup = output.swap_of(OPERATION, OWNER.stream_id), LocalStore(tmp_path / "backup")
        output.swap(swap, backup)
        DeltaTable(tmp_path / "out").vacuum(0, enforce_retention_duration=False, dry_run=False)
        new = self._rows(tmp_path / "out")
        with raises_code(Refused, "backup-damaged"):
            output.swap_back(swap, backup)
        assert self._rows(tmp_path / "out") == new
        assert len(new) == 6


def test_the_sink_and_the_output_name_one_place(tmp_path: Path) -> None:
    sink, output = delta(tmp_path / "out", keys="id"), DeltaOutput(str(tmp_path / "out"))
    staged = sink.staged(OPERATION)
    assert open_output(staged.identity()).location == output.staged(OPERATION).location
    assert replace(staged, path=sink.path) == sink
    remote = delta("s3://bucket/data/out").staged(OPERATION)
    assert remote.location == DeltaOutput("s3://bucket/data/out").staged(OPERATION).location
    assert remote.location == f"s3://bucket/data/.out.slackwater-{OPERATION}"


_NTZ = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["timestampNtz"],
    "writerFeatures": ["timestampNtz"],
}


class TestRefused:
    """Before anything is changed."""

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            (lambda scene: shutil.rmtree(scene.staging / delta_logs.LOG), "staged-absent"),
            (lambda scene: scene.output.discard(OPERATION, "staged"), "staged-absent"),
            (lambda scene: min(scene.staging.glob("*.parquet")).write_text("torn"), "staged-damaged"),
            (lambda scene: delta_logs.write_batch(scene.table, APP, LAST + 1), "swap-moved"),
        ],
    )
    def test_a_swap(self, tmp_path: Path, change: Callable[[Scene], object], code: str) -> None:
        scene = Scene(tmp_path)
        change(scene)
        refused(scene, code, scene.make)

    def test_a_place_that_is_taken(self, tmp_path: Path) -> None:
        scene = Scene(tmp_path)
        (scene.staging / "_slackwater_swap.json").unlink()
        for act in (
            lambda: scene.output.stage(OPERATION, -1, {}),
            lambda: scene.output.discard(OPERATION, "staged"),
            scene.make,
        ):
            refused(scene, "staged-foreign", act)
        assert delta_logs.live_files(scene.staging)

    def test_another_stream(self, tmp_path: Path) -> None:
        scene = Scene(tmp_path)
        other = replace(scene.swap, stream_id="other")
        refused(scene, "swap-foreign", lambda: scene.output.swap(other, scene.backup))

    def test_no_table(self, tmp_path: Path) -> None:
        output = DeltaOutput(str(tmp_path / "out"))
        output.stage(OPERATION, -1, {})
        with raises_code(Refused, "swap-unsupported"):
            output.swap(output.swap_of(OPERATION, OWNER.stream_id), LocalStore(tmp_path / "backup"))

    @pytest.mark.parametrize(
        ("staged", "changed", "protocol"),
        [
            (False, {"configuration": {"delta.appendOnly": "true"}}, None),
            (False, {"configuration": {"delta.columnMapping.mode": "name"}}, None),
            (False, {"configuration": {"delta.constraints.positive": "b > 0"}}, None),
            (False, {}, {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["inCommitTimestamp"]}),
            # A column of a type that the table has no feature for: the library would commit it, and then nobody could
            # read the table.
            (True, {"schemaString": delta_logs.SCHEMA.replace('"long"', '"timestamp_ntz"')}, _NTZ),
            (True, {"partitionColumns": ["b"]}, None),
        ],
    )
    def test_what_a_commit_would_ignore_or_cannot_take_over(
        self, tmp_path: Path, changed: Mapping[str, object], protocol: Mapping[str, object] | None, *, staged: bool
    ) -> None:
        scene = Scene(tmp_path)
        metadata = {"metaData": {**delta_logs.TABLE[2]["metaData"], **changed}}
        features: list[Mapping[str, Any]] = [] if protocol is None else [{"protocol": protocol}]
        delta_logs.commit(scene.staging if staged else scene.table, [*features, metadata])
        refused(scene, "swap-unsupported", scene.make)

    def test_undo_after_another_writer(self, tmp_path: Path) -> None:
        scene = Scene(tmp_path)
        scene.make()
        delta_logs.commit(scene.table, [delta_logs.add(scene.table, "other.parquet", b"others")])
        refused(scene, "restore-conflict", scene.undo)


def test_a_swap_can_be_killed_before_each_change(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    old, new = scene.visible(), delta_logs.live_files(scene.staging)
    points = 0
    for points in points_of("swap", scene.table, tmp_path, scene.swap, scene.write):
        assert scene.visible() in (old, new)
        if points % 2:
            scene.make()
            assert scene.visible() == new, f"killed before change {points}"
            assert delta_logs.newest(scene.table) == LAST + 2
        scene.undo()
        assert scene.visible() == old, f"killed before change {points}, then undone"
        assert scene.output.last_written() == LAST
        scene.make()
        assert scene.visible() == new
    assert points > STAGED


def test_undoing_it_can_be_killed_before_each_change(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    old, new = scene.visible(), delta_logs.live_files(scene.staging)
    points = 0
    for points in points_of("swap_back", scene.table, tmp_path, scene.swap, scene.make):
        assert scene.visible() in (old, new)
        scene.undo()
        assert scene.visible() == old, f"killed before change {points}"
        assert scene.output.last_written() == LAST
    assert points >= 2


def test_staging_can_be_killed_before_each_change(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.output.discard(OPERATION, "staged")
    scene.output.stage(OPERATION, 3, {})
    expected = delta_logs.live_files(scene.staging)
    for point in points_of(
        "stage", scene.table, tmp_path, f"{OPERATION} 3", lambda: scene.output.discard(OPERATION, "staged")
    ):
        scene.output.stage(OPERATION, 3, {})
        assert delta_logs.live_files(scene.staging) == expected, f"killed before change {point}"
        assert scene.output.staged(OPERATION).last_written() == 3
