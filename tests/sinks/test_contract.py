"""What every output promises, tried on each registered kind: marks, owner, cut and restore, killed at every step."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from slackwater.errors import Refused
from slackwater.model.sink import Owner
from slackwater.sinks.contract import Output
from slackwater.sinks.registry import kinds, open_output, register
from slackwater.storage.local import LocalStore
from tests.sinks.kinds import KINDS, LAST, OWNER, SinkKind, bytes_below
from tests.sinks.made_up import DirectoryOutput
from tests.sinks.test_silent import SILENT
from tests.support.kill_points import kill_points

AFTER = 7

register("made-up", DirectoryOutput)


@dataclass
class Example:
    """An output of one kind with batches 0 to LAST, and a backup folder beside it."""

    kind: SinkKind
    folder: Path
    recorded: Mapping[int, str]

    @property
    def output(self) -> Output:
        return open_output(self.kind.identity(self.folder))

    @property
    def backup(self) -> LocalStore:
        return LocalStore(self.folder.parent / "backup")

    def bytes(self) -> dict[str, bytes]:
        return bytes_below(self.folder)

    def state(self) -> Mapping[str, object]:
        return self.kind.state(self.folder)

    def cut(self, after: int = AFTER) -> None:
        output = self.output
        output.cut(output.cut_after(after, self.recorded), self.recorded, self.backup)


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def example(request: pytest.FixtureRequest, tmp_path: Path) -> Example:
    return _example(request.param, tmp_path)


@pytest.fixture(params=[kind for kind in KINDS if kind.forks], ids=lambda kind: kind.name)
def killable(request: pytest.FixtureRequest, tmp_path: Path) -> Example:
    return _example(request.param, tmp_path)


def _example(kind: SinkKind, folder: Path) -> Example:
    return Example(kind, folder / "out", kind.write(folder / "out"))


def test_every_registered_kind_passes_the_suite() -> None:
    identities = {kind.identity(Path("out"))["kind"] for kind in KINDS}
    assert identities | set(SILENT) == set(kinds())


def test_last_written_and_traits(example: Example, tmp_path: Path) -> None:
    assert example.output.last_written() == LAST
    assert example.output.traits == example.kind.traits
    assert open_output(example.kind.identity(tmp_path / "nothing")).last_written() == -1
    assert example.output.damage(thorough=True) == ()


def test_location_is_the_same_by_every_way(example: Example, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(example.folder)
    (tmp_path / "x").mkdir()
    for way in (tmp_path / "link", tmp_path / "x" / ".." / "out", Path(f"{example.folder}/")):
        assert open_output(example.kind.identity(way)).location == example.output.location
    assert open_output(example.kind.identity(tmp_path / "x")).location != example.output.location


def test_one_owner(example: Example) -> None:
    output, visible = example.output, example.kind.visible(example.folder)
    assert output.owner() is None
    output.claim(OWNER)
    output.claim(OWNER)
    assert output.owner() == OWNER
    with pytest.raises(Refused) as refused:
        output.claim(Owner("other", "clicks/other", "/srv/other"))
    assert refused.value.code == "sink-owned"
    assert output.owner() == OWNER
    moved = replace(OWNER, home="/srv/moved")
    output.claim(moved)
    assert output.owner() == moved
    assert output.last_written() == LAST
    assert example.kind.visible(example.folder) == visible


def test_claiming_an_output_that_does_not_exist_yet(example: Example, tmp_path: Path) -> None:
    fresh = open_output(example.kind.identity(tmp_path / "new" / "out"))
    fresh.claim(OWNER)
    assert fresh.owner() == OWNER
    assert fresh.last_written() == -1


def test_files_are_known_by_what_readers_call_them(example: Example, tmp_path: Path) -> None:
    for name in example.output.cut_after(AFTER, example.recorded).files:
        assert not name.startswith("/")
        assert example.output.name_of(example.kind.reader_uri(example.folder, name)) == name
        assert example.output.name_of((tmp_path / name).as_uri()) is None


@pytest.mark.parametrize("after", [-1, 0, 3, AFTER, 8, LAST - 1, LAST, LAST + 5])
def test_cut_removes_what_it_names_and_restore_brings_everything_back(example: Example, after: int) -> None:
    whole, visible = example.state(), example.kind.visible(example.folder)
    output = example.output
    cut = output.cut_after(after, example.recorded)
    assert cut.after == after
    assert cut.batches == tuple(range(after + 1, LAST + 1))

    output.cut(cut, example.recorded, example.backup)

    assert output.last_written() == min(after, LAST)
    kept = example.kind.visible(example.folder)
    assert kept == {name: data for name, data in visible.items() if name not in cut.files}
    assert sum(len(visible[name]) for name in cut.files) == cut.bytes
    if example.kind.removes_files:
        assert not [name for name in cut.files if (example.folder / name).exists()]
    assert output.damage(thorough=True) == ()

    after_cut = example.bytes()
    output.cut(cut, example.recorded, example.backup)
    assert example.bytes() == after_cut
    for _ in range(2):
        output.restore(cut, example.backup)
        assert example.state() == whole


def test_a_file_that_the_output_does_not_name_is_refused(example: Example) -> None:
    (example.folder / "other.txt").write_text("not the sink's")
    before = example.bytes()
    output = example.output
    cut = output.cut_after(AFTER, example.recorded)
    kept_file = next(iter(set(example.kind.visible(example.folder)) - set(cut.files)))
    for files in (
        (*cut.files, "other.txt"),
        (*cut.files, "../outside"),
        (*cut.files, kept_file),
        cut.files[1:],
        (*cut.files[1:], (example.folder / cut.files[0]).as_uri()),
    ):
        with pytest.raises(Refused):
            output.cut(replace(cut, files=files), example.recorded, example.backup)
        assert example.bytes() == before


def test_damaged_backup_is_refused(example: Example) -> None:
    output = example.output
    cut = output.cut_after(AFTER, example.recorded)
    output.cut(cut, example.recorded, example.backup)
    after_cut, whole_backup = example.bytes(), Path(example.backup.location)
    for path in [
        path for path in whole_backup.rglob("*") if path.is_file() and str(path.relative_to(whole_backup)) in cut.files
    ]:
        data = path.read_bytes()
        for damaged in (data + b"x", b"", None):
            path.unlink()
            if damaged is not None:
                path.write_bytes(damaged)
            with pytest.raises(Refused) as refused:
                output.restore(cut, example.backup)
            assert refused.value.code == "backup-damaged"
            assert example.bytes() == after_cut
        path.write_bytes(data)


def test_restoring_a_cut_that_never_started_changes_nothing(example: Example) -> None:
    cut, whole = example.output.cut_after(AFTER, example.recorded), example.bytes()
    example.output.restore(cut, example.backup)
    assert example.bytes() == whole


def test_cut_can_be_killed_before_each_file_change(killable: Example, tmp_path: Path) -> None:
    example = killable
    whole, visible = example.bytes(), example.kind.visible(example.folder)
    cut = example.output.cut_after(AFTER, example.recorded)
    shutil.copytree(example.folder, tmp_path / "template")

    def start_over() -> None:
        shutil.rmtree(example.folder)
        shutil.rmtree(tmp_path / "backup", ignore_errors=True)
        shutil.copytree(tmp_path / "template", example.folder)

    def take_out() -> None:
        example.output.cut(cut, example.recorded, example.backup)

    take_out()
    expected, kept = example.bytes(), example.kind.visible(example.folder)
    points = 0
    for points in kill_points(take_out, tmp_path, start_over):
        seen = example.kind.visible(example.folder)
        assert kept.items() <= seen.items() <= visible.items(), f"killed before file change {points}"
        if points % 2:
            take_out()
            assert example.bytes() == expected, f"killed before file change {points}"
        example.output.restore(cut, example.backup)
        assert example.bytes() == whole, f"killed before file change {points}, then undone"
    assert points >= 2 * len(cut.files)


def test_restore_can_be_killed_before_each_file_change(killable: Example, tmp_path: Path) -> None:
    example = killable
    whole, visible = example.bytes(), example.kind.visible(example.folder)
    cut = example.output.cut_after(AFTER, example.recorded)

    def take_out() -> None:
        example.output.cut(cut, example.recorded, example.backup)

    def put_back() -> None:
        example.output.restore(cut, example.backup)

    take_out()
    expected, kept = example.bytes(), example.kind.visible(example.folder)
    points = 0
    for points in kill_points(put_back, tmp_path, take_out):
        seen = example.kind.visible(example.folder)
        assert kept.items() <= seen.items() <= visible.items(), f"killed before file change {points}"
        if points % 2:
            put_back()
            assert example.bytes() == whole, f"killed before file change {points}"
        take_out()
        assert example.bytes() == expected, f"killed before file change {points}, then cut again"
    assert points >= 2 * len(cut.files)
