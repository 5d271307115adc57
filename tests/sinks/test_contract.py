"""What every output promises, tried on each registered kind: marks, owner, cut and restore, killed at every step."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from slackwater.core.errors import Refused
from slackwater.core.sink import Cut, Owner, WriterCalls
from slackwater.sinks.common import registry
from slackwater.sinks.common.contract import Output
from slackwater.sinks.common.registry import SINKS, open_output, recognised
from slackwater.storage.local import LocalStore
from tests.sinks.databases import OWNER, PostgresKind
from tests.sinks.kafka_kind import KafkaKind
from tests.sinks.kinds import FILE_KINDS, KINDS, LAST, FileKind, SinkKind
from tests.sinks.made_up import SINK
from tests.sinks.test_opaque_output import SILENT
from tests.support.errors import raises_code

AFTER = 7

# Without its entries: the catalogue is tested by others in this process.
registry.SINKS.register("made-up", replace(SINK, entries=()))


@dataclass
class Example:
    """An output of one kind with batches 0 to LAST, and a backup folder next to it."""

    kind: SinkKind
    folder: Path
    recorded: Mapping[int, str]

    @property
    def output(self) -> Output:
        return open_output(self.kind.identity(self.folder))

    @property
    def backup(self) -> LocalStore:
        return LocalStore(self.folder.parent / "backup")

    def contents(self) -> dict[str, bytes]:
        return dict(self.kind.everything(self.folder))

    def cut(self, after: int = AFTER) -> None:
        output = self.output
        output.cut(output.cut_after(after, self.recorded), self.recorded, self.backup)


@dataclass
class FilesExample(Example):
    kind: FileKind


EXAMPLES = [
    pytest.param(kind, id=kind.name, marks=[pytest.mark.kafka] if isinstance(kind, KafkaKind) else []) for kind in KINDS
]

SAME_STEPS = (
    "files-compacted-after-the-cut",
    "files-purged-in-part",
    "delta-created-by-batch-0",
    "delta-with-another-writer",
    "iceberg-created-without-a-snapshot",
)
"""Cut and restored by the changes of another kind, before each of which the gate kills that one."""


@pytest.fixture(params=EXAMPLES)
def example(request: pytest.FixtureRequest, tmp_path: Path) -> Example:
    return _example(request, tmp_path)


@pytest.fixture(params=[kind for kind in KINDS if kind.traits.cuts], ids=lambda kind: kind.name)
def cuttable(request: pytest.FixtureRequest, tmp_path: Path) -> Example:
    return _example(request, tmp_path)


@pytest.fixture(
    params=[
        pytest.param(kind, id=kind.name, marks=[pytest.mark.thorough] if kind.name in SAME_STEPS else [])
        for kind in KINDS
        if kind.traits.cuts and kind.forks
    ]
)
def killable(request: pytest.FixtureRequest, tmp_path: Path) -> Example:
    return _example(request, tmp_path)


@pytest.fixture(params=FILE_KINDS, ids=lambda kind: kind.name)
def in_files(request: pytest.FixtureRequest, tmp_path: Path) -> FilesExample:
    kind: FileKind = request.param
    folder = tmp_path / "out"
    return FilesExample(kind, folder, kind.write(folder))


def _example(request: pytest.FixtureRequest, tmp_path: Path) -> Example:
    kind: SinkKind = request.param
    if isinstance(kind, PostgresKind):
        kind.server = request.getfixturevalue("postgres")
    if isinstance(kind, KafkaKind):
        kind.servers = request.getfixturevalue("broker").bootstrap_servers
    folder = tmp_path / "out"
    return Example(kind, folder, kind.write(folder))


def test_every_registered_kind_passes_the_suite() -> None:
    identities = {kind.identity(Path("out"))["kind"] for kind in KINDS}
    assert identities | set(SILENT) == {
        "made-up" if name == "made-up" else name.replace("-", "_") for name in registry.SINKS.names()
    }


def test_last_written_and_traits(example: Example, tmp_path: Path) -> None:
    assert example.output.last_written() == LAST
    assert example.output.traits == example.kind.traits
    assert open_output(example.kind.identity(tmp_path / "nothing")).last_written() == -1
    assert example.output.damage("all") == ()


def test_location_is_the_same_by_every_way(in_files: FilesExample, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(in_files.folder)
    (tmp_path / "x").mkdir()
    for way in (tmp_path / "link", tmp_path / "x" / ".." / "out", Path(f"{in_files.folder}/")):
        assert open_output(in_files.kind.identity(way)).location == in_files.output.location
    assert open_output(in_files.kind.identity(tmp_path / "x")).location != in_files.output.location


def test_one_owner(example: Example) -> None:
    output, visible = example.output, example.kind.visible(example.folder)
    assert output.owner() == example.kind.owner
    output.claim(OWNER)
    output.claim(OWNER)
    assert output.owner() == OWNER
    with raises_code(Refused, "sink-owned"):
        output.claim(Owner("other", "clicks/other", "/srv/other"))
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


def test_a_released_directory_can_be_taken_by_another_stream(in_files: FilesExample) -> None:
    output, other = in_files.output, Owner("other", "clicks/other", "/srv/other")
    output.claim(OWNER)
    output.release("other")
    assert output.owner() == OWNER
    output.release(OWNER.stream_id)
    output.release(OWNER.stream_id)
    assert output.owner() is None
    output.claim(other)
    assert output.owner() == other


@pytest.mark.parametrize(
    "calls",
    [
        *(WriterCalls(name, {"path": "out"}) for name in ("parquet", "redis", *SINKS.names())),
        *(WriterCalls(name, {}, table="clicks", location="out") for name in ("parquet", "delta", "iceberg")),
        WriterCalls("kafka", {"topic": "clicks", "kafka.bootstrap.servers": "broker:9092"}),
        WriterCalls("memory", {}, query="clicks"),
        WriterCalls("parquet", {}, function="foreachBatch"),
    ],
    ids=lambda calls: "-".join(filter(None, (calls.format, calls.table, calls.function))),
)
def test_every_output_of_an_application_can_be_released(
    calls: WriterCalls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``release`` is only of streams that Slackwater does not write: none of them marks batches in a database."""
    monkeypatch.chdir(tmp_path)
    output = open_output(recognised(calls))
    output.claim(OWNER)
    output.release(OWNER.stream_id)
    assert output.owner() is None
    output.claim(Owner("other", "clicks/other", "/srv/other"))


def test_files_are_known_by_what_readers_call_them(in_files: FilesExample, tmp_path: Path) -> None:
    for name in in_files.output.cut_after(AFTER, in_files.recorded).files:
        assert not name.startswith("/")
        assert in_files.output.relative_path(in_files.kind.reader_uri(in_files.folder, name)) == name
        assert in_files.output.relative_path((tmp_path / name).as_uri()) is None


@pytest.mark.parametrize("after", [-1, 0, 3, AFTER, 8, LAST - 1, LAST, LAST + 5])
def test_cut_removes_what_it_names_and_restore_brings_everything_back(cuttable: Example, after: int) -> None:
    whole, visible = cuttable.contents(), cuttable.kind.visible(cuttable.folder)
    output = cuttable.output
    cut = output.cut_after(after, cuttable.recorded)
    taken = cuttable.kind.cut_names(cuttable.folder, cut)
    assert cut.after == after
    assert cut.batches == tuple(range(after + 1, LAST + 1))

    output.cut(cut, cuttable.recorded, cuttable.backup)

    assert output.last_written() == min(after, LAST)
    kept = cuttable.kind.visible(cuttable.folder)
    assert kept == {name: data for name, data in visible.items() if name not in taken}
    assert cut.rows in {None, len(taken)}
    assert sum(len(visible[name]) for name in cut.files) == cut.bytes
    if cuttable.kind.removes_files:
        assert not [name for name in cut.files if (cuttable.folder / name).exists()]
    assert output.damage("all") == ()

    after_cut = cuttable.contents()
    output.cut(cut, cuttable.recorded, cuttable.backup)
    assert cuttable.contents() == after_cut
    for _ in range(2):
        output.restore(cut, cuttable.backup)
        assert cuttable.contents() == whole


def test_a_file_that_the_output_does_not_name_is_refused(in_files: FilesExample) -> None:
    (in_files.folder / "other.txt").write_text("not the sink's")
    before = in_files.contents()
    output = in_files.output
    cut = output.cut_after(AFTER, in_files.recorded)
    kept_file = next(iter(set(in_files.kind.visible(in_files.folder)) - set(cut.files)))
    for files in (
        (*cut.files, "other.txt"),
        (*cut.files, "../outside"),
        (*cut.files, kept_file),
        cut.files[1:],
        (*cut.files[1:], (in_files.folder / cut.files[0]).as_uri()),
    ):
        with pytest.raises(Refused):
            output.cut(replace(cut, files=files), in_files.recorded, in_files.backup)
        assert in_files.contents() == before


def test_damaged_backup_is_refused(in_files: FilesExample) -> None:
    output = in_files.output
    cut = output.cut_after(AFTER, in_files.recorded)
    output.cut(cut, in_files.recorded, in_files.backup)
    after_cut, whole_backup = in_files.contents(), Path(in_files.backup.location)
    for path in [
        path for path in whole_backup.rglob("*") if path.is_file() and str(path.relative_to(whole_backup)) in cut.files
    ]:
        data = path.read_bytes()
        for damaged in (data + b"x", b"", None):
            path.unlink()
            if damaged is not None:
                path.write_bytes(damaged)
            with raises_code(Refused, "backup-damaged"):
                output.restore(cut, in_files.backup)
            assert in_files.contents() == after_cut
        path.write_bytes(data)


def test_restoring_a_cut_that_never_started_changes_nothing(cuttable: Example) -> None:
    cut, whole = cuttable.output.cut_after(AFTER, cuttable.recorded), cuttable.contents()
    cuttable.output.restore(cut, cuttable.backup)
    assert cuttable.contents() == whole


def test_cut_can_be_killed_before_each_change(killable: Example, tmp_path: Path) -> None:
    whole, visible = killable.contents(), killable.kind.visible(killable.folder)
    cut = killable.output.cut_after(AFTER, killable.recorded)

    def start_over() -> None:
        shutil.rmtree(tmp_path / "backup", ignore_errors=True)
        killable.kind.reset(killable.folder)

    def take_out() -> None:
        killable.output.cut(cut, killable.recorded, killable.backup)

    take_out()
    expected, kept = killable.contents(), killable.kind.visible(killable.folder)
    points = 0
    for points in killable.kind.kill_points(take_out, tmp_path, start_over):
        seen = killable.kind.visible(killable.folder)
        assert kept.items() <= seen.items() <= visible.items(), f"killed before change {points}"
        if points % 2:
            take_out()
            assert killable.contents() == expected, f"killed before change {points}"
        killable.output.restore(cut, killable.backup)
        assert killable.contents() == whole, f"killed before change {points}, then undone"
    assert points >= 2 * len(cut.files)


def test_restore_can_be_killed_before_each_change(killable: Example, tmp_path: Path) -> None:
    whole, visible = killable.contents(), killable.kind.visible(killable.folder)
    cut = killable.output.cut_after(AFTER, killable.recorded)

    def take_out() -> None:
        killable.output.cut(cut, killable.recorded, killable.backup)

    def swap_back() -> None:
        killable.output.restore(cut, killable.backup)

    take_out()
    expected, kept = killable.contents(), killable.kind.visible(killable.folder)
    points = 0
    for points in killable.kind.kill_points(swap_back, tmp_path, take_out):
        seen = killable.kind.visible(killable.folder)
        assert kept.items() <= seen.items() <= visible.items(), f"killed before change {points}"
        if points % 2:
            swap_back()
            assert killable.contents() == whole, f"killed before change {points}"
        take_out()
        assert killable.contents() == expected, f"killed before change {points}, then cut again"
    assert points >= 2 * len(cut.files)


def test_an_output_that_cannot_be_cut_refuses_with_the_reason(example: Example) -> None:
    if example.kind.traits.cuts:
        return
    with raises_code(Refused, "sink-uncuttable"):
        example.output.cut_after(AFTER, {})
    for after in (LAST, LAST + 1):
        cut, whole = example.output.cut_after(after, {}), example.contents()
        assert cut == Cut(after, ())
        example.output.cut(cut, {}, example.backup)
        example.output.restore(cut, example.backup)
        assert example.contents() == whole
