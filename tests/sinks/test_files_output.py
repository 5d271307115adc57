"""The file sink's output without a JVM: what only this kind of output can get wrong."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.core.errors import PipelineError, Refused, SinkUnreadable
from slackwater.core.sink import BackfillDirectory, Owner
from slackwater.formats.compactible import lay_out
from slackwater.sinks.files.backfill_output import claim, discard, found_in, open_backfill_output
from slackwater.sinks.files.manifest import Manifest
from slackwater.sinks.files.manifest_swap import entries_of, steps, switch
from slackwater.sinks.files.sink import FilesOutput
from slackwater.storage.local import LocalStore
from slackwater.storage.open import open_write_store
from slackwater.storage.protocols import LEFTOVER
from tests.sinks.manifests import MANIFEST, content_of, data_file, listed_files, spark_reads, write_batches
from tests.support.errors import raises_code

TORN = ["", "v", "v9\n", 'v1\n{"path":"file:///x"', "v1\nnothing"]


def _output(folder: Path) -> FilesOutput:
    return FilesOutput(str(folder))


def test_last_written_is_the_newest_entry(tmp_path: Path) -> None:
    assert _output(tmp_path).last_written() == -1
    write_batches(tmp_path / "out", 12, 10)
    assert _output(tmp_path / "out").last_written() == 12


@pytest.mark.parametrize("content", TORN)
def test_newest_entry_that_cannot_be_parsed_is_an_error(tmp_path: Path, content: str) -> None:
    write_batches(tmp_path, 3, 10)
    (tmp_path / MANIFEST / "4").write_text(content)
    with raises_code(SinkUnreadable, "sink-unreadable") as caught:
        _output(tmp_path).last_written()
    assert str(caught.value.where).endswith(f"{MANIFEST}/4")


@pytest.mark.parametrize("partitioned", [False, True], ids=["flat", "partitioned"])
@pytest.mark.parametrize("interval", [4, 20])
def test_files_that_no_entry_names_are_orphans_and_no_damage(
    tmp_path: Path, interval: int, *, partitioned: bool
) -> None:
    write_batches(tmp_path, 12, interval, partitioned=partitioned, side_files=True)
    (tmp_path / "_temporary").mkdir()
    (tmp_path / "_temporary" / "part-99.json").touch()
    (tmp_path / "_slackwater.json").write_text("{}")
    empty = [data_file(tmp_path, batch, partitioned=partitioned) for batch in range(13) if batch % 3 == 2]

    assert _output(tmp_path).orphans() == tuple(sorted(str(file.relative_to(tmp_path)) for file in empty))
    assert _output(tmp_path).damage("all") == ()
    assert _output(tmp_path / "nothing").orphans() == ()


# Each file is forced to the disk, which takes as long as the disk needs.
@settings(deadline=None)
@given(last=st.integers(0, 25), interval=st.integers(1, 10), after=st.integers(-1, 25), purged=st.booleans())
def test_cut_leaves_exactly_the_batches_before(
    tmp_path_factory: pytest.TempPathFactory, last: int, interval: int, after: int, *, purged: bool
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    recorded = write_batches(folder / "out", last, interval, purged=purged, side_files=True)
    output, backup = _output(folder / "out"), LocalStore(folder / "operation" / "backup")
    whole = _bytes(folder / "out")

    found = output.cut_after(after, recorded)
    output.cut(found, recorded, backup)
    output.cut(found, recorded, backup)

    batches = [batch for batch in recorded if batch % 3 != 2]
    kept = [data_file(folder / "out", batch) for batch in batches if batch <= after]
    assert output.last_written() == min(after, last)
    assert sorted(listed_files(folder / "out")) == sorted(kept)
    assert len(found.files) + len(kept) == len(batches)
    for name in found.files:
        assert not (folder / "out" / name).exists()
        assert not (folder / "out" / f".{name}.crc").exists()
        assert (folder / "operation" / "backup" / name).read_bytes() == content_of(int(Path(name).stem[5:]))
    output.restore(found, backup)
    assert _bytes(folder / "out") == whole


def test_cut_is_refused_where_the_files_of_a_batch_are_unknown(tmp_path: Path) -> None:
    write_batches(tmp_path, 9, 10, purged=True)
    with raises_code(Refused, "sink-cut-unknown"):
        _output(tmp_path).cut_after(6, {})


def test_an_entry_of_a_huge_batch_is_refused_at_once(tmp_path: Path) -> None:
    write_batches(tmp_path, 3, 10)
    (tmp_path / MANIFEST / str(10**18)).write_text("v1")
    with raises_code(Refused, "sink-cut-unknown"):
        _output(tmp_path).cut_after(2, {})
    assert [(one.kind, one.path) for one in _output(tmp_path).damage()] == [("missing", f"{MANIFEST}/4")]


def test_a_copied_output_is_recognised_and_the_original_is_not_touched(tmp_path: Path) -> None:
    recorded = write_batches(tmp_path / "prod", 5, 10)
    shutil.copytree(tmp_path / "prod", tmp_path / "staging")
    before = _bytes(tmp_path)
    staging = _output(tmp_path / "staging")
    with raises_code(Refused, "manifest-foreign") as caught:
        staging.cut_after(3, recorded)
    assert "copied or moved" in caught.value.message
    real = _output(tmp_path / "prod").cut_after(3, recorded)
    with pytest.raises(Refused):
        staging.cut(real, recorded, LocalStore(tmp_path / "backup"))
    assert {damage.kind for damage in staging.damage()} == {"foreign"}
    assert _bytes(tmp_path) == before


@pytest.mark.parametrize(
    "path",
    [
        "file:///etc/passwd",
        "{out}/../outside",
        "{out}/_spark_metadata/3",
        "{out}/_slackwater.json",
        "{out}/manifest.json",
        "{out}/link/secret",
        "{out}",
        "{out}/",
        "part-4.json",
        "s3a://bucket/out/part-4.json",
    ],
)
def test_a_manifest_that_names_a_file_outside_the_output_is_refused(tmp_path: Path, path: str) -> None:
    out = tmp_path / "out"
    write_batches(out, 3, 10)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret").write_text("keep")
    (out / "link").symlink_to(tmp_path / "elsewhere")
    line = {"path": path.format(out=out.as_uri()), "size": 1, "isDir": False, "modificationTime": 0, "action": "add"}
    (out / MANIFEST / "4").write_text("v1\n" + json.dumps(line))
    before = _bytes(tmp_path)
    with raises_code(Refused, "manifest-foreign"):
        _output(out).cut_after(2, {})
    assert _bytes(tmp_path) == before


def test_an_output_reached_by_a_symlink_is_cut(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    recorded = write_batches(tmp_path / "link" / "out", 5, 10)
    output = _output(tmp_path / "real" / "out")
    cut = output.cut_after(3, recorded)
    assert cut.files == ("part-4.json",)
    output.cut(cut, recorded, LocalStore(tmp_path / "backup"))
    assert output.last_written() == 3


def test_restore_is_refused_after_a_newer_batch(tmp_path: Path) -> None:
    recorded = write_batches(tmp_path / "out", 5, 10)
    output, backup = _output(tmp_path / "out"), LocalStore(tmp_path / "backup")
    cut = output.cut_after(2, recorded)
    output.cut(cut, recorded, backup)
    manifest = tmp_path / "out" / MANIFEST
    (manifest / "3").write_text("v1")
    _refused(tmp_path, "output-changed", lambda: output.restore(cut, backup))
    (manifest / "3").unlink()
    (manifest / "6").write_text("v1")
    _refused(tmp_path, "restore-conflict", lambda: output.restore(cut, backup))
    (manifest / "6").unlink()
    (tmp_path / "out" / "part-4.json").write_text("another")
    _refused(tmp_path, "output-changed", lambda: output.restore(cut, backup))


def test_a_file_that_changes_after_the_cut_was_started_stops_it(tmp_path: Path) -> None:
    recorded = write_batches(tmp_path / "out", 5, 10)
    output, backup = _output(tmp_path / "out"), LocalStore(tmp_path / "backup")
    cut = output.cut_after(2, recorded)
    output.cut(cut, recorded, backup)
    output.restore(cut, backup)
    (tmp_path / "out" / "part-4.json").write_text("another")
    _refused(tmp_path, "output-changed", lambda: output.cut(cut, recorded, backup))


def test_a_cut_that_the_manifest_does_not_list_is_refused(tmp_path: Path) -> None:
    recorded = write_batches(tmp_path / "out", 5, 10)
    output, backup = _output(tmp_path / "out"), LocalStore(tmp_path / "backup")
    cut = output.cut_after(2, recorded)
    for wrong in (replace(cut, files=(*cut.files, "part-1.json")), replace(cut, files=()), replace(cut, batches=(5,))):
        _refused(tmp_path, "cut-mismatch", partial(output.cut, wrong, recorded, backup))


def test_a_compacted_entry_that_stands_for_all_before_is_not_taken_for_one_batch(tmp_path: Path) -> None:
    recorded = write_batches(tmp_path / "out", 12, 10, purged=True)
    # As a ledger that was lost has it again: the oldest entry that is left has the lines of all older batches.
    merged = {9: (tmp_path / "out" / MANIFEST / "9.compact").read_text()}
    output, again = _output(tmp_path / "out"), merged | {batch: recorded[batch] for batch in (10, 11, 12)}
    before = _bytes(tmp_path)

    with raises_code(Refused, "sink-cut-unknown", match="batch 9"):
        output.cut_after(8, again)
    assert output.cut_after(9, again) == output.cut_after(9, recorded)
    assert _bytes(tmp_path) == before


def test_the_backup_of_another_output_or_cut_is_refused(tmp_path: Path) -> None:
    backup = LocalStore(tmp_path / "backup")
    recorded = {name: write_batches(tmp_path / name, 5, 10) for name in ("one", "two")}
    one, two = _output(tmp_path / "one"), _output(tmp_path / "two")
    cut = one.cut_after(2, recorded["one"])
    one.cut(cut, recorded["one"], backup)
    _refused(tmp_path, "backup-foreign", lambda: two.restore(cut, backup))
    _refused(tmp_path, "backup-foreign", lambda: two.cut(cut, recorded["two"], backup))
    later = two.cut_after(3, recorded["two"])
    _refused(tmp_path, "backup-foreign", lambda: one.restore(later, backup))


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"schema":"other"}', '{"schema":"slackwater.sink-backup/1"}', "[" * 10**5]
)
def test_a_record_that_cannot_be_parsed_is_refused(tmp_path: Path, content: str) -> None:
    recorded = write_batches(tmp_path / "out", 5, 10)
    output, backup = _output(tmp_path / "out"), LocalStore(tmp_path / "backup")
    cut = output.cut_after(2, recorded)
    output.cut(cut, recorded, backup)
    (tmp_path / "backup" / "manifest.json").write_text(content)
    _refused(tmp_path, "backup-damaged", lambda: output.restore(cut, backup))
    _refused(tmp_path, "backup-damaged", lambda: output.cut(cut, recorded, backup))
    (tmp_path / "backup" / "manifest.json").unlink()
    _refused(tmp_path, "backup-damaged", lambda: output.restore(cut, backup))


def test_a_data_file_that_was_lost_before_does_not_stop_a_cut(tmp_path: Path) -> None:
    recorded = write_batches(tmp_path / "out", 5, 10)
    (tmp_path / "out" / "part-4.json").unlink()
    whole = _bytes(tmp_path / "out")
    output, backup = _output(tmp_path / "out"), LocalStore(tmp_path / "backup")
    cut = output.cut_after(2, recorded)
    output.cut(cut, recorded, backup)
    assert output.last_written() == 2
    output.restore(cut, backup)
    assert _bytes(tmp_path / "out") == whole


def test_cut_and_restore_on_another_store() -> None:
    location = "memory://cut-and-restore/out"
    store, backup = open_write_store(location), open_write_store("memory://cut-and-restore/backup")
    lines = {}
    for batch in range(6):
        line = {"path": f"{location}/part%20{batch}", "size": 1, "isDir": False, "modificationTime": 0, "action": "add"}
        lines[batch] = "v1\n" + json.dumps(line)
        store.write(f"{MANIFEST}/{batch}", lines[batch].encode())
        store.write(f"part {batch}", b"x")
    output = FilesOutput(location)
    cut = output.cut_after(2, {})
    assert cut.files == ("part 3", "part 4", "part 5")
    output.cut(cut, {}, backup)
    assert output.last_written() == 2
    assert not store.exists("part 4")
    output.restore(cut, backup)
    assert output.last_written() == 5
    assert store.read("part 4") == b"x"
    everything, all_taken = output.cut_after(-1, {}), open_write_store("memory://cut-and-restore/all")
    store.write("part 2-of-another-program", b"x")
    output.cut(everything, {}, all_taken)
    assert store.list(MANIFEST), "without a file there the log does not exist, and readers take all files"
    assert (output.last_written(), store.exists("part 0")) == (-1, False)
    output.restore(everything, all_taken)
    assert output.last_written() == 5
    output.claim(Owner("a", "b", "c"))
    with pytest.raises(Refused):
        output.claim(Owner("other", "b", "c"))


class TestDamage:
    """Cheap checks read the newest entries and the files of the newest batch that has any."""

    def test_a_sound_output_has_none(self, tmp_path: Path) -> None:
        for interval in (1, 3, 10):
            write_batches(tmp_path / str(interval), 14, interval, purged=True)
            assert _output(tmp_path / str(interval)).damage() == ()
            assert _output(tmp_path / str(interval)).damage("all") == ()

    def test_an_output_that_does_not_exist_has_none(self, tmp_path: Path) -> None:
        assert _output(tmp_path / "nothing").damage("all") == ()

    @pytest.mark.parametrize("content", TORN)
    def test_newest_entry(self, tmp_path: Path, content: str) -> None:
        write_batches(tmp_path, 3, 10)
        (tmp_path / MANIFEST / "4").write_text(content)
        (damage,) = _output(tmp_path).damage()
        assert damage.path == f"{MANIFEST}/4"
        assert damage.kind in {"empty", "torn", "foreign", "too-new"}

    def test_missing_entries(self, tmp_path: Path) -> None:
        write_batches(tmp_path, 16, 10)
        for batch in (12, 13, 15):
            (tmp_path / MANIFEST / str(batch)).unlink()
        found = [(damage.path, damage.kind, damage.expected) for damage in _output(tmp_path).damage()]
        assert found == [
            (f"{MANIFEST}/12", "missing", "entries of batches 12 to 13"),
            (f"{MANIFEST}/15", "missing", "entries of batch 15"),
        ]

    @pytest.mark.parametrize("last", [13, 14, 19])
    def test_files_of_the_newest_batch_that_wrote_any(self, tmp_path: Path, last: int) -> None:
        write_batches(tmp_path, last, 10)
        newest = max(batch for batch in range(last + 1) if batch % 3 != 2)
        data_file(tmp_path, newest).write_bytes(b"short")
        assert [(damage.path, damage.kind) for damage in _output(tmp_path).damage()] == [
            (f"part-{newest}.json", "torn")
        ]
        data_file(tmp_path, newest).unlink()
        assert [(damage.path, damage.kind) for damage in _output(tmp_path).damage()] == [
            (f"part-{newest}.json", "missing")
        ]

    def test_every_file_is_checked_only_when_asked(self, tmp_path: Path) -> None:
        write_batches(tmp_path, 16, 10)
        data_file(tmp_path, 0).unlink()
        assert _output(tmp_path).damage() == ()
        assert [damage.path for damage in _output(tmp_path).damage("all")] == ["part-0.json"]


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '{"stream_id": 1, "stream": "a", "home": "b"}', '{"stream_id": "a"}']
)
def test_an_owner_that_cannot_be_parsed_is_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "_slackwater.json").write_text(content)
    for ask in (_output(tmp_path).owner, lambda: _output(tmp_path).claim(Owner("a", "b", "c"))):
        with raises_code(SinkUnreadable, "sink-owner-unreadable"):
            ask()
    assert (tmp_path / "_slackwater.json").read_text() == content


@pytest.mark.parametrize("name", ["a?b", "a[1]", "{a,b}", "a*b", "a\\b"])
def test_a_glob_is_not_given_to_readers(tmp_path: Path, name: str) -> None:
    with raises_code(PipelineError, "sink-path"):
        _output(tmp_path / name).reader_path()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a#b", "a%20b", "a b", "ü", "a:b"])
def test_readers_find_a_manifest(tmp_path: Path, name: str) -> None:
    path = _output(tmp_path / name).reader_path()
    assert path == str(tmp_path / name)
    assert (tmp_path / name / MANIFEST).is_dir()
    assert [each.name for each in tmp_path.iterdir()] == [name]


def _refused(folder: Path, code: str, act: Callable[[], object]) -> None:
    before = _bytes(folder)
    with raises_code(Refused, code):
        act()
    assert _bytes(folder) == before


def _bytes(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# The entries of a manifest replaced by other ones: after each change Spark reads all of the old or all of the new.


INTERVAL = 10


class Stopped(Exception):
    """Raised before a change, as a kill would come."""


class Watched(LocalStore):
    """Checks after each change what Spark would read; stops before change ``stop``, from 1."""

    def __init__(self, root: Path, old: list[str], new: list[str], interval: int, stop: int = 0) -> None:
        super().__init__(root)
        self._allowed, self._interval, self._left = (old, new), interval, stop
        self.folder = root

    def write(self, path: str, data: bytes) -> None:
        self._count()
        assert not self.exists(path), f"{path} is replaced: not every store can in one step"
        super().write(path, data)
        self.check()

    def delete(self, path: str) -> None:
        self._count()
        super().delete(path)
        self.check()

    def check(self) -> None:
        entries = {path.name: path.read_text() for path in (self.folder / MANIFEST).iterdir()}
        assert spark_reads(entries, self._interval) in self._allowed

    def _count(self) -> None:
        self._left -= 1
        if self._left == 0:
            raise Stopped


def log_of(name: str, last: int, interval: int = INTERVAL) -> dict[str, str]:
    """What Spark keeps after batches 0 to ``last``, each with a file of its own, of a log with this interval."""
    return lay_out({batch: [_line(name, batch)] for batch in range(last + 1)}, last, interval)


def lines_of(name: str, last: int) -> list[str]:
    return [_line(name, batch) for batch in range(last + 1)]


def _line(name: str, batch: int) -> str:
    return (
        f'{{"path":"file:///out/{name}-{batch}.json","size":1,"isDir":false,"modificationTime":0,'
        '"blockReplication":1,"blockSize":1,"action":"add"}'
    )


def _written(folder: Path, entries: dict[str, str]) -> Path:
    (folder / MANIFEST).mkdir(parents=True)
    for name, content in entries.items():
        (folder / MANIFEST / name).write_text(content)
    return folder


@pytest.mark.parametrize("newest", [-1, 0, 12, 25])
@pytest.mark.parametrize("last", [-1, 3, 11, 39])
@pytest.mark.parametrize("interval", [2, INTERVAL])
def test_all_of_the_old_entries_or_all_of_the_new_ones(tmp_path: Path, newest: int, last: int, interval: int) -> None:
    old, new = log_of("old", newest, interval), log_of("new", last, interval)
    parties = (lines_of("old", newest), lines_of("new", last), interval)
    stopped, point = True, 0
    while stopped:
        point += 1
        folder = _written(tmp_path / str(point), old)
        try:
            switch(Watched(folder, *parties, stop=point), new)
            stopped = False
        except Stopped:
            # A write that was killed leaves a hidden file.
            (folder / MANIFEST / f".1.compact.x{LEFTOVER}").write_text("v1")
            store = Watched(folder, *parties)
            switch(store, new if point % 2 else old)
            assert entries_of(Manifest(store)) == (new if point % 2 else old)
            assert not [path for path in (folder / MANIFEST).iterdir() if path.name.endswith(LEFTOVER)]
            switch(store, new)
        assert entries_of(Manifest(LocalStore(folder))) == new
    assert point > 1 or old == new


def test_entries_that_spark_has_not_deleted_yet_are_kept(tmp_path: Path) -> None:
    older = {str(batch): "\n".join(["v1", _line("new", batch)]) for batch in range(7, 9)}
    new = {**log_of("new", 25), **older}
    folder = _written(tmp_path, {**log_of("old", 25), "18": "v1"})
    store = Watched(folder, lines_of("old", 25), lines_of("new", 25), INTERVAL)
    switch(store, new)
    assert entries_of(Manifest(store)) == new


def test_a_manifest_that_spark_cannot_read_is_refused_before_anything_is_changed(tmp_path: Path) -> None:
    entries = {**log_of("old", 3, 4), "9": "v1"}
    folder = _written(tmp_path, entries)
    with raises_code(Refused, "swap-unsupported"):
        switch(LocalStore(folder), log_of("new", 3))
    assert entries_of(Manifest(LocalStore(folder))) == entries


def test_few_steps_lead_from_any_entry_to_any_other() -> None:
    assert list(steps(10, 20)) == [20]
    assert list(steps(7, 7)) == []
    assert max(len(list(steps(count, 24))) for count in (10_001, 9_999, 8_192, 2**14 - 1)) <= 40


@given(st.integers(1, 100_000), st.integers(1, 100_000))
def test_the_distance_of_two_steps_divides_both(count: int, target: int) -> None:
    last = count
    for last, here in _pairs(count, steps(count, target)):
        assert here % abs(here - last) == 0
        assert last % abs(here - last) == 0
        count = here
    assert count == target


def _pairs(first: int, rest: Iterator[int]) -> Iterator[tuple[int, int]]:
    for here in rest:
        yield first, here
        first = here


# A backfill directory on each kind of store: who owns it, what is in it, and what of it is removed.


OPERATION, OTHER = "20260105T093000-1a2b3c", "20260105T093000-ffffff"
INTERRUPTED = "day=2/part-00000-6f5c1c2e-0f6b-4a43-9d1e-2f4f5b7f0a11.c000.snappy.parquet"


@pytest.fixture(params=["local", "memory", "s3"])
def output(request: pytest.FixtureRequest, tmp_path: Path) -> BackfillDirectory:
    if request.param == "s3":
        return BackfillDirectory("parquet", f"{request.getfixturevalue('s3_location')}/side")
    return BackfillDirectory(
        "parquet", str(tmp_path / "side") if request.param == "local" else f"memory:/{tmp_path}/side"
    )


def _fill(output: BackfillDirectory) -> None:
    """What a batch writes, and one that was interrupted before it."""
    store = open_write_store(output.path)
    root = f"file://{output.path}" if output.path.startswith("/") else output.path
    line = {"path": f"{root}/day=1/rows.parquet", "size": 4, "modificationTime": 1, "action": "add"}
    store.write("day=1/rows.parquet", b"rows")
    store.write(INTERRUPTED, b"row")
    store.write("_spark_metadata/0", f"v1\n{json.dumps(line)}".encode())
    store.write("_spark_metadata/.0.crc", b"crc")


def test_nothing_is_left_of_what_was_written(output: BackfillDirectory) -> None:
    assert found_in(output) == ()
    claim(output, OPERATION, "clicks/per_page", "/home")
    _fill(output)
    store = open_write_store(output.path)
    store.write(f".half{LEFTOVER}", b"half")
    assert open_backfill_output(output).last_written() == 0
    assert found_in(output) == ("_slackwater.json", "_spark_metadata", "day=1", "day=2")

    for _ in range(2):
        discard(output, OPERATION)

        assert found_in(output) == ()
        assert not any(folder.files for folder in store.folders())
        assert store.local_path("") is None or store.list() == ()


def test_what_is_not_its_own_stays(output: BackfillDirectory) -> None:
    claim(output, OPERATION, "clicks/per_page", "/home")
    _fill(output)
    store = open_write_store(output.path)
    store.write("day=1/notes.parquet", b"mine")

    discard(output, OTHER)
    assert found_in(output) == ("_slackwater.json", "_spark_metadata", "day=1", "day=2")
    with pytest.raises(Refused, match="Another stream"):
        claim(output, OTHER, "clicks/later", "/home")

    discard(output, OPERATION)
    left = [(folder.path, folder.files) for folder in store.folders() if folder.files]
    assert left == [("day=1", ("notes.parquet",))]
