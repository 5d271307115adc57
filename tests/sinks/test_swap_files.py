"""The file sink's output staged and swapped, without a JVM: manifests, kills at each step, refusals."""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest

from slackwater import sinks
from slackwater.core.errors import Refused
from slackwater.core.sink import Others, Owner, Swap, others_of
from slackwater.sinks import files
from slackwater.sinks.all_of import AllOfOutput
from slackwater.sinks.common.changes import start
from slackwater.sinks.common.registry import open_output
from slackwater.sinks.common.staging import MARK, StagingDirectory
from slackwater.sinks.files.directory_swap import name_files_in
from slackwater.sinks.files.sink import FilesOutput
from slackwater.storage.local import LocalStore
from tests.sinks.manifests import MANIFEST, data_file, listed_files, write_batches
from tests.sinks.swap_scene import SwapScene
from tests.support.errors import raises_code
from tests.support.kill_points import kill_points

OPERATION = "20260105T093000-1a2b3c"
OWNER = Owner("5f0e", "clicks/per_page", "/srv/home")
LAST, STAGED = 12, 9
ABSENT, DAMAGED = "staged-absent", "staged-damaged"
FOREIGN = 'v1\n{"path":"file:///etc/passwd","size":1,"isDir":false,"modificationTime":0,"action":"add"}'
Bytes = Mapping[str, bytes]


class Scene(SwapScene):
    """An output with batches 0 to LAST, and next to it a staged one with batches 0 to STAGED, partitioned."""

    def __init__(self, folder: Path, name: str = "out", interval: int = 4) -> None:
        self.folder = folder
        self.out = folder / "data" / name
        self.interval = interval
        self.write()
        self.swap = self.output.swap_of(OPERATION, OWNER.stream_id)

    def write(self) -> None:
        for path in (self.folder / "data", self.folder / "backup"):
            shutil.rmtree(path, ignore_errors=True)
        self.recorded = write_batches(self.out, LAST, 10, side_files=True)
        self.output.claim(OWNER)
        self.output.stage(OPERATION, -1, {})
        write_batches(self.staging, STAGED, self.interval, purged=True, partitioned=True, side_files=True)
        self.output.staged(OPERATION).claim(OWNER)

    @property
    def output(self) -> FilesOutput:
        return FilesOutput(str(self.out))

    @property
    def staging(self) -> Path:
        return self.out.with_name(f".{self.out.name}.slackwater-{OPERATION}")

    def visible(self) -> Bytes:
        return {str(path.relative_to(self.out)): path.read_bytes() for path in listed_files(self.out)}


def bytes_below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(folder: Path, code: str, act: Callable[[], object]) -> None:
    before = bytes_below(folder)
    with raises_code(Refused, code):
        act()
    assert bytes_below(folder) == before


@pytest.mark.parametrize("name", ["out", "a b", "ü#%20", "day=1"])
@pytest.mark.parametrize("interval", [3, 20])
def test_swapped_and_swapped_back(tmp_path: Path, name: str, interval: int) -> None:
    scene = Scene(tmp_path, name, interval)
    old, staging = bytes_below(scene.out), bytes_below(scene.staging)
    data = {path: held for path, held in staging.items() if path.endswith(".json") and path[0] not in "._"}

    for _ in range(2):
        scene.make()
        assert scene.output.last_written() == STAGED
        assert scene.output.damage("all") == ()
        assert scene.output.owner() == OWNER
        assert scene.visible() == {path: held for path, held in data.items() if int(path[-6]) % 3 != 2}
        assert not (scene.out / MARK).exists()
        assert set(scene.out.parent.iterdir()) == {scene.out, scene.staging}
        kept = bytes_below(scene.staging)
        assert json.loads(kept.pop(MARK))["state"] == "replaced"
        assert kept == old

    # The stream has continued before the swap is undone.
    (scene.out / MANIFEST / str(STAGED + 1)).write_text("v1")
    for _ in range(2):
        scene.undo()
        assert bytes_below(scene.out) == old
        staged = scene.output.staged(OPERATION)
        assert (staged.last_written(), staged.damage("all")) == (STAGED + 1, ())
    again = bytes_below(scene.staging)
    assert {path: again[path] for path in staging if MANIFEST not in path} == {
        path: held for path, held in staging.items() if MANIFEST not in path
    }
    scene.make()
    assert scene.output.last_written() == STAGED + 1


def test_the_side_file_of_a_rewritten_entry_is_removed(tmp_path: Path) -> None:
    scene = Scene(tmp_path, interval=100)
    scene.make()
    left = [path.name for path in (scene.out / MANIFEST).iterdir() if path.name.startswith(".")]
    batches_without_files = {f".{batch}.crc" for batch in range(STAGED + 1) if batch % 3 == 2}
    assert set(left) == batches_without_files
    assert (scene.out / "day=0" / ".part-0.json.crc").exists()


def test_an_output_reached_by_a_symlink(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    (tmp_path / "link").symlink_to(scene.out)
    output = FilesOutput(str(tmp_path / "link"))
    assert output.staged(OPERATION).location == str(scene.staging)
    output.swap(output.swap_of(OPERATION, OWNER.stream_id), scene.backup)
    assert (output.last_written(), output.damage("all")) == (STAGED, ())
    assert (tmp_path / "link").is_symlink()


def test_readers_of_the_parent_folder_do_not_find_the_staged_output(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    schema = pyarrow.schema([("rows", pyarrow.string())])
    found = pyarrow.dataset.dataset(scene.out.parent, schema, format="csv").files
    assert found
    assert not [path for path in found if "slackwater" in path]
    assert set(scene.out.parent.glob("[!.]*")) == {scene.out}
    assert scene.out.stat().st_mode == scene.staging.stat().st_mode


def test_the_sink_and_the_output_name_one_place(tmp_path: Path) -> None:
    sink, output = files("json", tmp_path / "out", compression="gzip"), FilesOutput(str(tmp_path / "out"))
    staged = sink.staged(OPERATION)
    assert open_output(staged.identity()).location == output.staged(OPERATION).location
    assert replace(staged, path=sink.path) == sink


@pytest.mark.parametrize("after", [0, 3, 7, 8, LAST])
@pytest.mark.parametrize(("interval", "purged"), [(10, False), (4, True), (3, True)])
def test_a_staged_output_with_older_batches_has_what_a_cut_leaves(
    tmp_path: Path, after: int, interval: int, *, purged: bool
) -> None:
    recorded = write_batches(tmp_path / "cut", LAST, interval, purged=purged, partitioned=True, side_files=True)
    cutting, output = FilesOutput(str(tmp_path / "cut")), FilesOutput(str(tmp_path / "out"))
    cutting.cut(cutting.cut_after(after, recorded), recorded, LocalStore(tmp_path / "backup"))
    recorded = write_batches(tmp_path / "out", LAST, interval, purged=purged, partitioned=True, side_files=True)
    whole = bytes_below(tmp_path / "out")

    for _ in range(2):
        output.stage(OPERATION, after, recorded)
        staged = output.staged(OPERATION)
        folder = Path(staged.location)
        assert (staged.last_written(), staged.damage("all")) == (after, ())
        expected = {str(path.relative_to(tmp_path / "cut")) for path in listed_files(tmp_path / "cut")}
        assert {str(path.relative_to(folder)) for path in listed_files(folder)} == expected
        entries = {path.name for path in (folder / MANIFEST).iterdir()}
        assert entries == {path.name for path in (tmp_path / "cut" / MANIFEST).iterdir() if path.name[0] != "."}
        assert (folder / "day=0" / ".part-0.json.crc").exists()
    assert bytes_below(tmp_path / "out") == whole
    output.discard(OPERATION, "staged")
    assert bytes_below(tmp_path / "out") == whole


class TestOfOthers:
    """Files that no manifest entry names."""

    @staticmethod
    def _others(scene: Scene) -> dict[str, str]:
        """The files of others that readers of the directory find now."""
        names = ("notes.txt", ".hidden/a", "day=0/other.json", "link", "late.json")
        return {name: (scene.out / name).read_text() for name in names if (scene.out / name).exists()}

    @staticmethod
    def _write(scene: Scene) -> dict[str, str]:
        for name in ("notes.txt", ".hidden/a", "day=0/other.json"):
            (scene.out / name).parent.mkdir(exist_ok=True)
            (scene.out / name).write_text(name)
        (scene.out / "link").symlink_to("notes.txt")
        return TestOfOthers._others(scene)

    def test_they_stay(self, tmp_path: Path) -> None:
        scene = Scene(tmp_path)
        before, old = self._write(scene), bytes_below(scene.out)
        assert len(before) == 4
        for _ in range(2):
            scene.make()
            assert self._others(scene) == before
        for _ in range(2):
            scene.undo()
            assert (self._others(scene), bytes_below(scene.out)) == (before, old)

    def test_what_is_written_after_the_swap_survives_its_undo(self, tmp_path: Path) -> None:
        scene = Scene(tmp_path)
        self._write(scene)
        scene.make()
        (scene.out / "late.json").write_text("late")
        (scene.out / "notes.txt").unlink()
        (scene.out / "notes.txt").write_text("replaced")
        after = self._others(scene)
        for _ in range(2):
            scene.undo()
            assert self._others(scene) == after
        scene.make()
        assert self._others(scene) == after

    def test_what_is_written_while_the_directories_are_exchanged(self, tmp_path: Path) -> None:
        scene = Scene(tmp_path)
        before = self._write(scene)
        scene.make()
        # The program had the directory open that was in place before.
        (scene.staging / "late.json").write_text("late")
        scene.make()
        assert self._others(scene) == {**before, "late.json": "late"}

    def test_a_name_that_a_batch_has(self, tmp_path: Path) -> None:
        scene = Scene(tmp_path)
        (scene.out / "day=0").mkdir()
        (scene.out / "day=0" / "part-0.json").write_text("of another program")
        refused(tmp_path, "swap-unsupported", scene.make)

    @pytest.mark.parametrize("action", ["swap", "undo"])
    def test_killed_before_each_change(self, tmp_path: Path, action: str) -> None:
        scene = Scene(tmp_path)

        def prepare() -> None:
            scene.write()
            self._write(scene)
            if action == "undo":
                scene.make()
                (scene.out / "late.json").write_text("late")

        prepare()
        before = self._others(scene)
        act = scene.make if action == "swap" else scene.undo
        points = 0
        for points in kill_points(act, tmp_path, prepare):
            assert self._others(scene) == before, f"killed before change {points}"
            act() if points % 2 else scene.undo()
            assert self._others(scene) == before, f"killed before change {points}, then ended"
        assert points > STAGED if action == "swap" else points > 5


def test_older_batches_that_the_output_does_not_have_are_not_staged(tmp_path: Path) -> None:
    write_batches(tmp_path / "out", LAST, 4, purged=True)
    output = FilesOutput(str(tmp_path / "out"))
    for after, code in ((LAST + 1, "stage-incomplete"), (6, "sink-cut-unknown")):
        with raises_code(Refused, code):
            output.stage(OPERATION, after, {})
        output.discard(OPERATION, "staged")
    data_file(tmp_path / "out", 4).unlink()
    with raises_code(Refused, "stage-incomplete"):
        output.stage(OPERATION, LAST, {})
    output.discard(OPERATION, "staged")
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]


@pytest.mark.parametrize("interval", [4, 100])
def test_a_cut_after_a_swap_does_not_trust_copies_of_the_replaced_manifest(tmp_path: Path, interval: int) -> None:
    scene = Scene(tmp_path, interval=interval)
    scene.make()
    if interval == 4:
        # Batches up to 7 are in a compacted entry; the ledger's copies of them name files of the replaced output.
        with raises_code(Refused, "sink-cut-unknown"):
            scene.output.cut_after(5, scene.recorded)
    cut = scene.output.cut_after(7, scene.recorded)
    assert cut.files == (str(data_file(Path(), 9, partitioned=True)),)


class TestRefused:
    """Before anything is changed."""

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            (lambda scene: StagingDirectory(str(scene.out), OPERATION).set_mark(scene.staging, "building"), ABSENT),
            (lambda scene: scene.output.discard(OPERATION, "staged"), ABSENT),
            (lambda scene: data_file(scene.staging, 4, partitioned=True).unlink(), DAMAGED),
            (lambda scene: data_file(scene.staging, 4, partitioned=True).write_text("torn"), DAMAGED),
            (lambda scene: (scene.staging / MANIFEST / "9").write_text("v1\n{"), DAMAGED),
            (lambda scene: (scene.staging / MANIFEST / "8").unlink(), DAMAGED),
            (lambda scene: (scene.staging / MANIFEST / "10").write_text(FOREIGN), "manifest-foreign"),
            (lambda scene: (scene.staging / "_slackwater.json").unlink(), "swap-foreign"),
            (lambda scene: (scene.out / MANIFEST / str(LAST + 1)).write_text("v1"), "swap-moved"),
        ],
    )
    def test_a_swap(self, tmp_path: Path, change: Callable[[Scene], object], code: str) -> None:
        scene = Scene(tmp_path)
        change(scene)
        refused(tmp_path, code, scene.make)
        if code == ABSENT:
            refused(tmp_path, code, lambda: scene.output.check_swap(scene.swap, scene.backup))

    def test_another_stream(self, tmp_path: Path) -> None:
        scene = Scene(tmp_path)
        other = replace(scene.swap, stream_id="other")
        refused(tmp_path, "swap-foreign", lambda: scene.output.swap(other, scene.backup))

    def test_a_place_that_is_taken(self, tmp_path: Path) -> None:
        scene = Scene(tmp_path)
        for content in ('{"operation": "other", "state": "staged"}', "{", "[]"):
            (scene.staging / MARK).write_text(content)
            for act in (
                lambda: scene.output.stage(OPERATION, -1, {}),
                lambda: scene.output.discard(OPERATION, "staged"),
                lambda: scene.output.discard(OPERATION, "replaced"),
                scene.make,
            ):
                refused(tmp_path, "staged-foreign", act)

    def test_the_backup_of_another_swap(self, tmp_path: Path) -> None:
        scene = Scene(tmp_path)
        scene.make()
        other = Swap(OPERATION, OWNER.stream_id, LAST + 1)
        refused(tmp_path, "backup-foreign", lambda: scene.output.swap(other, scene.backup))
        refused(tmp_path, "backup-foreign", lambda: scene.output.swap_back(other, scene.backup))

    def test_a_bucket_as_an_output(self) -> None:
        """There is nothing next to it."""
        output = FilesOutput("memory://bucket/")
        assert not output.traits.swaps
        assert not files("json", "memory://bucket").traits.swaps
        with raises_code(Refused, "swap-unsupported"):
            output.stage(OPERATION, -1, {})

    @pytest.mark.parametrize("path", ["/proc", "/proc/out"])
    def test_a_directory_that_cannot_be_exchanged(self, path: str) -> None:
        """A mount point, and one in a folder where nobody can create another."""
        with raises_code(Refused, "swap-unsupported"):
            FilesOutput(path).stage(OPERATION, -1, {})

    def test_a_directory_that_cannot_be_renamed(self, tmp_path: Path) -> None:
        place = StagingDirectory(str(tmp_path / "out"), OPERATION)
        refused(tmp_path, "swap-unsupported", place.exchange)


def test_undoing_a_swap_that_never_started_changes_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    before = bytes_below(tmp_path)
    scene.undo()
    assert bytes_below(tmp_path) == before


def test_only_what_is_marked_is_discarded(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.output.discard(OPERATION, "replaced")
    assert scene.staging.exists()
    scene.make()
    scene.output.discard(OPERATION, "staged")
    assert scene.staging.exists()
    for _ in range(2):
        scene.output.discard(OPERATION, "replaced")
        assert list(scene.out.parent.iterdir()) == [scene.out]
    assert scene.output.damage("all") == ()
    refused(tmp_path, "backup-damaged", scene.undo)


def test_a_swap_can_be_killed_before_each_change(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    old, whole = scene.visible(), bytes_below(scene.out)
    scene.make()
    new, data = scene.visible(), bytes_below(tmp_path / "data")
    points = 0
    for points in kill_points(scene.make, tmp_path, scene.write):
        assert scene.visible() in (old, new)
        if points % 2:
            scene.make()
            assert bytes_below(tmp_path / "data") == data, f"killed before change {points}"
        scene.undo()
        assert bytes_below(scene.out) == whole, f"killed before change {points}, then undone"
        assert scene.output.staged(OPERATION).damage("all") == ()
    assert points > STAGED


def test_undoing_it_can_be_killed_before_each_change(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    old, whole = scene.visible(), bytes_below(scene.out)
    scene.make()
    new, data = scene.visible(), bytes_below(tmp_path / "data")
    points = 0
    for points in kill_points(scene.undo, tmp_path, scene.make):
        assert scene.visible() in (old, new)
        if points % 2:
            scene.undo()
            assert bytes_below(scene.out) == whole, f"killed before change {points}"
        scene.make()
        assert bytes_below(tmp_path / "data") == data, f"killed before change {points}, then swapped again"
    assert points > 5


@pytest.mark.parametrize("then", ["swap", "undo"])
def test_an_exchange_in_three_steps_is_finished(tmp_path: Path, then: str) -> None:
    """Where the file system cannot exchange two folders."""
    scene = Scene(tmp_path)
    whole, place = bytes_below(scene.out), StagingDirectory(str(scene.out), OPERATION)
    scene.make()
    data = bytes_below(tmp_path / "data")
    points = 0
    for points in kill_points(place.exchange_by_renames, tmp_path, lambda: _about_to_exchange(scene)):
        scene.make() if then == "swap" else scene.undo()
        below = scene.out if then == "undo" else tmp_path / "data"
        assert bytes_below(below) == (whole if then == "undo" else data), f"killed before change {points}"
    assert points == 3


def _about_to_exchange(scene: Scene) -> None:
    """As a swap is before it exchanges the folders."""
    scene.write()
    start(scene.backup, scene.output.location, scene.swap)
    name_files_in(StagingDirectory(str(scene.out), OPERATION), scene.out)


def test_staging_can_be_killed_before_each_change(tmp_path: Path) -> None:
    recorded = write_batches(tmp_path / "out", LAST, 4, side_files=True)
    output = FilesOutput(str(tmp_path / "out"))
    output.stage(OPERATION, 8, recorded)
    whole = bytes_below(tmp_path)
    for point in kill_points(
        lambda: output.stage(OPERATION, 8, recorded), tmp_path, lambda: output.discard(OPERATION, "staged")
    ):
        output.stage(OPERATION, 8, recorded)
        # A killed write leaves a hidden file.
        found = {path: data for path, data in bytes_below(tmp_path).items() if not path.endswith(".slackwater.tmp")}
        assert found == whole, f"killed before change {point}"


def test_discarding_can_be_killed_before_each_change(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    whole = bytes_below(scene.out)
    for _ in kill_points(lambda: scene.output.discard(OPERATION, "staged"), tmp_path, scene.write):
        scene.output.discard(OPERATION, "staged")
        assert not scene.staging.exists()
        assert bytes_below(scene.out) == whole


# Several outputs swapped together, one after the other: killed in between, refused by one of them.


ALL_OF: Any = sinks.all_of


class Both(SwapScene):
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.scenes = [Scene(folder / name) for name in ("first", "second")]
        self.swap = self.output.swap_of(OPERATION, OWNER.stream_id)

    @property
    def output(self) -> AllOfOutput:
        return AllOfOutput([scene.output for scene in self.scenes])

    def below(self) -> list[dict[str, bytes]]:
        return [bytes_below(scene.out) for scene in self.scenes]


def test_swapped_and_swapped_back_and_killed_in_between(tmp_path: Path) -> None:
    both = Both(tmp_path)
    assert both.output.traits.swaps
    assert both.swap.replaced == LAST
    whole = both.below()
    both.make()
    swapped = both.below()
    assert [scene.output.last_written() for scene in both.scenes] == [STAGED, STAGED]
    both.undo()
    assert both.below() == whole
    points = 0
    for points in kill_points(both.make, tmp_path, both.undo):
        both.make()
        assert both.below() == swapped, f"killed before change {points}"
    for point in kill_points(both.undo, tmp_path, both.make):
        both.undo()
        assert both.below() == whole, f"killed before change {point}"
    assert points > STAGED


def test_none_is_swapped_where_one_of_them_refuses(tmp_path: Path) -> None:
    both = Both(tmp_path)
    data_file(both.scenes[1].staging, 4, partitioned=True).unlink()
    refused(tmp_path, "staged-damaged", both.make)


def test_staged_and_discarded_together(tmp_path: Path) -> None:
    both = Both(tmp_path)
    for scene in both.scenes:
        scene.output.discard(OPERATION, "staged")
    for _ in range(2):
        both.output.stage(OPERATION, LAST - 1, {})
        assert both.output.staged(OPERATION).last_written() == LAST - 1
    both.output.staged(OPERATION).claim(OWNER)
    both.make()
    both.output.discard(OPERATION, "staged")
    both.output.discard(OPERATION, "replaced")
    assert [list(scene.out.parent.iterdir()) for scene in both.scenes] == [[scene.out] for scene in both.scenes]
    assert both.output.last_written() == LAST - 1


def test_sinks_that_can_and_cannot_be_staged(tmp_path: Path) -> None:
    delta = sinks.delta(tmp_path / "out")
    able = ALL_OF(delta, sinks.postgres("postgresql://user@host/db", "out", keep_batch_id=True))
    assert able.traits.swaps
    staged, output = open_output(able.staged(OPERATION).identity()), open_output(able.identity())
    assert staged.location == output.staged(OPERATION).location
    unable = ALL_OF(delta, sinks.jdbc("sqlite:///out.db", "out"))
    assert not unable.traits.swaps
    output_of_it: Any = open_output(unable.identity())
    for act in (lambda: unable.staged(OPERATION), lambda: output_of_it.stage(OPERATION, -1, {})):
        refused(tmp_path, "swap-unsupported", act)


def test_what_others_have_in_all_of_them_is_counted_together() -> None:
    parts = (
        Swap("x", "id", 1, others=Others(2, 1, 1)),
        Swap("x", "id", 1, others=Others(3, sure=False)),
        Swap("x", "id", 1),
    )
    assert others_of(Swap("x", "id", 1, parts)) == Others(5, 1, 1, sure=False)
    assert others_of(Swap("x", "id", 1, (*parts, Swap("x", "id", 1, others=Others(None))))).rows is None
    assert not others_of(Swap("x", "id", 1)).any
    assert Others(1_000).text == "1,000 rows"
