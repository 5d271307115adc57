"""Iceberg tables as outputs, beyond the contract suite: other writers, rollbacks, expired snapshots, damage, kills."""

import gzip
import json
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from slackwater.core.errors import PipelineError, Refused, SinkUnreadable
from slackwater.core.sink import Cut, Owner
from slackwater.sinks import iceberg
from slackwater.sinks.common.registry import catalogue, open_output
from slackwater.sinks.iceberg.metadata import DirectoryTable, Metadata, MetadataChange, version_path
from slackwater.sinks.iceberg.output import CATALOG_TRAITS, IcebergOutput
from slackwater.storage.local import LocalStore
from slackwater.storage.protocols import StoreTraits
from tests.sinks import iceberg_tables
from tests.support.errors import raises_code

OWNER = Owner("5f0e", "clicks/per_page", "/srv/home")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table with batches 0 to 5 of one file each, and its owner."""
    folder = tmp_path / "out"
    iceberg_tables.create(folder)
    for batch in range(6):
        iceberg_tables.write_batch(folder, OWNER.stream_id, batch)
    IcebergOutput(str(folder)).claim(OWNER)
    return folder


def _output(table: Path) -> IcebergOutput:
    return IcebergOutput(str(table))


def _backup(table: Path) -> LocalStore:
    return LocalStore(table.parent / "backup")


def _snapshots(table: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = iceberg_tables.metadata(table)["snapshots"]
    return found


def _refused(code: str, call: Any, *arguments: object) -> Refused:
    with raises_code(Refused, code) as refused:
        call(*arguments)
    return refused.value


def _roll_back(table: Path, snapshot: int) -> None:
    """As Spark's ``rollback_to_snapshot`` does: no property changes."""
    refs = {"main": {"type": "branch", "snapshot-id": snapshot}}
    iceberg_tables.change(table, **{"current-snapshot-id": snapshot, "refs": refs})


def _expire(table: Path, *ids: int) -> None:
    """As ``expire_snapshots`` does; the files stay."""
    kept = [one for one in _snapshots(table) if one["snapshot-id"] not in ids]
    iceberg_tables.change(table, snapshots=kept)


def test_a_cut_raises_the_fence_and_keeps_the_history_whole(table: Path) -> None:
    before, output = iceberg_tables.metadata(table), _output(table)
    cut = output.cut_after(2, {})
    assert (cut.batches, cut.rows, len(cut.files)) == ((3, 4, 5), 3, 3)
    output.cut(cut, {}, _backup(table))

    after = iceberg_tables.metadata(table)
    mark = json.loads(after["properties"][iceberg_tables.PROPERTY])
    assert (mark["batch"], mark["epoch"], mark["snapshot"]) == (2, 2, after["current-snapshot-id"])
    assert after["snapshot-log"][-1]["snapshot-id"] == after["refs"]["main"]["snapshot-id"] == mark["snapshot"]
    assert len(after["snapshots"]) == len(before["snapshots"])
    assert (
        after["metadata-log"][-1]["metadata-file"]
        == f"{table}/metadata/v{iceberg_tables.newest(table) - 1}.metadata.json"
    )
    assert (table / "metadata" / "version-hint.text").read_text() == str(iceberg_tables.newest(table))
    output.restore(cut, _backup(table))
    assert json.loads(iceberg_tables.metadata(table)["properties"][iceberg_tables.PROPERTY])["epoch"] == 3


def test_the_table_before_its_first_snapshot(tmp_path: Path) -> None:
    table = tmp_path / "out"
    iceberg_tables.create(table, snapshot=False)
    iceberg_tables.write_batch(table, OWNER.stream_id, 0)
    cut, output = _output(table).cut_after(-1, {}), _output(table)
    output.cut(cut, {}, _backup(table))
    fields = iceberg_tables.metadata(table)
    assert (fields["current-snapshot-id"], fields["snapshot-log"], fields["refs"]) == (-1, [], {})
    assert (output.last_written(), iceberg_tables.live_files(table)) == (-1, {})
    output.restore(cut, _backup(table))
    assert (output.last_written(), len(iceberg_tables.live_files(table))) == (0, 1)


def test_who_rolls_the_table_back_takes_batches_out_of_it(table: Path) -> None:
    by_batch = _snapshots(table)[1:]
    _roll_back(table, by_batch[3]["snapshot-id"])
    assert _output(table).last_written() == 3
    assert _output(table).cut_after(1, {}).batches == (2, 3)
    _roll_back(table, _snapshots(table)[0]["snapshot-id"])
    assert _output(table).last_written() == -1


def test_expired_snapshots_do_not_change_what_was_written(table: Path) -> None:
    other = iceberg_tables.commit(table, [iceberg_tables.data_file(table, "other.parquet", [9])])
    ids = [one["snapshot-id"] for one in _snapshots(table)]
    _expire(table, *(one for one in ids if one != other))
    assert _output(table).last_written() == 5, "the property names the parent, which has expired"

    later = iceberg_tables.commit(table, [iceberg_tables.data_file(table, "later.parquet", [9])])
    _expire(table, other)
    assert [one["snapshot-id"] for one in _snapshots(table)] == [later]
    assert _output(table).last_written() == 5, "older metadata has the snapshot"

    for version in range(1, iceberg_tables.newest(table)):
        (table / "metadata" / f"v{version}.metadata.json").unlink()
    for path in (table / "metadata").glob("0*.metadata.json"):
        path.unlink()
    with raises_code(SinkUnreadable, "iceberg-history"):
        _output(table).last_written()


def test_snapshots_that_have_expired_cannot_be_gone_back_to(table: Path) -> None:
    ids = [one["snapshot-id"] for one in _snapshots(table)]
    _expire(table, *ids[:4])
    assert _output(table).cut_after(3, {}).batches == (4, 5)
    _refused("iceberg-expired", _output(table).cut_after, 2, {})


def test_rows_of_another_writer_are_never_cut(table: Path) -> None:
    iceberg_tables.commit(table, [iceberg_tables.data_file(table, "other.parquet", [9])])
    assert _output(table).last_written() == 5
    refusal = _refused("sink-uncuttable", _output(table).cut_after, 2, {})
    assert str(iceberg_tables.metadata(table)["current-snapshot-id"]) in (refusal.found or "")

    iceberg_tables.write_batch(table, OWNER.stream_id, 6)
    cut = _output(table).cut_after(5, {})
    assert (cut.batches, cut.files) == ((6,), ("data/part-6-0 a.parquet",)), "the other's rows came before batch 6"
    assert _output(table).cut_after(6, {}) == Cut(6, ())


def test_a_compaction_does_not_prevent_a_cut(table: Path) -> None:
    fields = iceberg_tables.metadata(table)
    iceberg_tables.commit(table, [])
    compaction = iceberg_tables.metadata(table)["snapshots"][-1]
    compaction["summary"]["operation"] = "replace"
    iceberg_tables.change(table, snapshots=[*fields["snapshots"], compaction])
    output = _output(table)
    output.cut(output.cut_after(2, {}), {}, _backup(table))
    assert sorted(iceberg_tables.live_files(table)) == [f"data/part-{batch}-0 a.parquet" for batch in range(3)]


def test_a_table_that_was_written_to_since_is_not_cut_or_restored(table: Path) -> None:
    output, backup = _output(table), _backup(table)
    cut = output.cut_after(2, {})
    iceberg_tables.write_batch(table, OWNER.stream_id, 6)
    _refused("cut-mismatch", output.cut, cut, {}, backup)

    cut = output.cut_after(2, {})
    output.cut(cut, {}, backup)
    iceberg_tables.write_batch(table, OWNER.stream_id, 3)
    before = iceberg_tables.newest(table)
    _refused("restore-conflict", output.restore, cut, backup)
    _refused("output-changed", output.cut, cut, {}, backup)
    assert iceberg_tables.newest(table) == before


def test_a_cut_that_another_writer_was_faster_than(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is recorded and was never made: undo has nothing to do, and what is continued is checked again."""
    output, backup = _output(table), _backup(table)
    cut, commit = output.cut_after(2, {}), DirectoryTable.commit

    def raced(self: DirectoryTable, base: Metadata, change: MetadataChange) -> None:
        iceberg_tables.commit(table, [iceberg_tables.data_file(table, "other.parquet", [9])])
        commit(self, base, change)

    monkeypatch.setattr(DirectoryTable, "commit", raced)
    _refused("output-changed", output.cut, cut, {}, backup)
    monkeypatch.undo()
    before = iceberg_tables.newest(table)
    _refused("sink-uncuttable", output.cut, cut, {}, backup)
    output.check_restore(cut, backup)
    output.restore(cut, backup)
    assert (iceberg_tables.newest(table), output.last_written()) == (before, 5)


def test_a_cut_that_others_have_committed_behind_is_done(table: Path) -> None:
    """An apply that was killed behind its commit continues; undo would take out what they have added."""
    for after in (2, -1):
        output, backup = _output(table), LocalStore(table.parent / f"backup{after}")
        cut = output.cut_after(after, {})
        output.cut(cut, {}, backup)
        iceberg_tables.commit(table, [iceberg_tables.data_file(table, f"other{after}.parquet", [9])])
        before = iceberg_tables.newest(table)
        output.cut(cut, {}, backup)
        _refused("restore-conflict", output.restore, cut, backup)
        assert (iceberg_tables.newest(table), output.last_written()) == (before, after)
        if after == 2:
            iceberg_tables.write_batch(table, OWNER.stream_id, 3)
            _refused("output-changed", output.cut, cut, {}, backup)
            _roll_back(table, _snapshots(table)[1 + after]["snapshot-id"])


@pytest.mark.parametrize("kind", ["variant", "geometry(srid:1)"])
def test_metadata_that_the_library_cannot_parse_is_refused_before_anything_is_recorded(table: Path, kind: str) -> None:
    output, backup = _output(table), _backup(table)
    cut = output.cut_after(2, {})
    fields = iceberg_tables.metadata(table)
    for schema in fields["schemas"]:
        schema["fields"].append({"id": 99, "name": "v", "required": False, "type": kind})
    iceberg_tables.change(table, **{**fields, "format-version": 3, "next-row-id": 0})
    before = iceberg_tables.newest(table)
    refusal = _refused("sink-uncuttable", output.cut_after, 2, {})
    assert kind in str(refusal.found)
    _refused("sink-uncuttable", output.cut, cut, {}, backup)
    _refused("swap-unsupported", output.stage, "20260105T093000-1a2b3c", -1, {})
    assert (iceberg_tables.newest(table), output.last_written(), backup.list()) == (before, 5, ())


def test_a_version_that_another_writer_adds_first_is_never_replaced(table: Path) -> None:
    base = version_path(iceberg_tables.newest(table) - 1)
    theirs = iceberg_tables.metadata(table)
    with pytest.raises(FileExistsError):
        DirectoryTable(LocalStore(table)).add(base, {})
    assert iceberg_tables.metadata(table) == theirs
    assert _output(table).last_written() == 5


def test_the_hint_of_a_faster_writer_is_not_replaced_by_an_older_one(table: Path) -> None:
    """A stream that runs while ``prune`` drops a branch: it could not commit any more."""

    class Late(LocalStore):
        def write(self, path: str, data: bytes) -> None:
            if path.endswith("version-hint.text"):
                iceberg_tables.change(table)
            super().write(path, data)

    number = iceberg_tables.newest(table)
    DirectoryTable(Late(table)).add(version_path(number), iceberg_tables.metadata(table))
    assert iceberg_tables.newest(table) == number + 2
    assert not (table / "metadata" / "version-hint.text").exists(), "readers list the folder"


def test_a_snapshot_that_expired_after_the_cut_cannot_be_restored(table: Path) -> None:
    output, backup = _output(table), _backup(table)
    head = iceberg_tables.metadata(table)["current-snapshot-id"]
    cut = output.cut_after(2, {})
    output.cut(cut, {}, backup)
    _expire(table, head)
    _refused("iceberg-restore", output.restore, cut, backup)
    assert output.last_written() == 2


def test_a_batch_without_a_snapshot_is_cut(table: Path) -> None:
    """MERGE without rows: the property alone has the number."""
    current = iceberg_tables.metadata(table)["current-snapshot-id"]
    iceberg_tables.mark(table, OWNER.stream_id, 6, current)
    output, backup = _output(table), _backup(table)
    assert output.last_written() == 6
    cut = output.cut_after(5, {})
    assert (cut.batches, cut.files, cut.rows) == ((6,), (), 0)
    output.cut(cut, {}, backup)
    assert (output.last_written(), iceberg_tables.metadata(table)["current-snapshot-id"]) == (5, current)
    output.restore(cut, backup)
    assert output.last_written() == 6


def test_without_its_mark_the_table_still_shows_its_newest_batch(table: Path) -> None:
    (table / "_slackwater.json").unlink()
    assert _output(table).last_written() == 5


def test_a_table_of_another_stream_is_new_to_this_one(table: Path) -> None:
    (table / "_slackwater.json").unlink()
    _output(table).claim(Owner("other", "clicks/other", "/srv/home"))
    assert _output(table).last_written() == -1


def test_compressed_metadata(table: Path) -> None:
    number = iceberg_tables.newest(table)
    plain = table / "metadata" / f"v{number}.metadata.json"
    packed = table / "metadata" / f"v{number}.gz.metadata.json"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    output = _output(table)
    assert output.last_written() == 5
    output.cut(output.cut_after(4, {}), {}, _backup(table))
    assert json.loads(gzip.decompress((table / "metadata" / f"v{number + 1}.gz.metadata.json").read_bytes()))["refs"]
    assert output.last_written() == 4


def test_damage(table: Path) -> None:
    (table / "data" / "part-5-0 a.parquet").write_bytes(b"torn")
    (table / "data" / "part-1-0 a.parquet").unlink()
    found = {(one.path, one.kind) for one in _output(table).damage("all")}
    assert found == {("data/part-5-0 a.parquet", "torn"), ("data/part-1-0 a.parquet", "missing")}
    assert _output(table).damage() == ()

    current = _snapshots(table)[-1]["manifest-list"]
    Path(current).unlink()
    assert [(f"{table}/{one.path}", one.kind) for one in _output(table).damage()] == [(current, "missing")]
    with raises_code(SinkUnreadable, "iceberg-manifest"):
        _output(table).cut_after(2, {})

    newest = table / "metadata" / f"v{iceberg_tables.newest(table)}.metadata.json"
    for torn in (
        b"",
        b"[]",
        b'{"location": "x", "snapshots": [{}]}',
        b'{"location": "x", "properties": {"slackwater.written": "{"}}',
    ):
        newest.write_bytes(torn)
        assert [one.kind for one in _output(table).damage()] == ["iceberg-metadata"]
        with raises_code(SinkUnreadable, "iceberg-unreadable"):
            _output(table).last_written()


def test_readers(table: Path, tmp_path: Path) -> None:
    assert _output(table).reader_path() == str(table)
    with raises_code(PipelineError, "output-absent"):
        IcebergOutput(str(tmp_path / "nothing")).reader_path()
    assert _output(table).relative_path((table / "metadata" / "v1.metadata.json").as_uri()) is None


def test_what_readers_have_read(table: Path) -> None:
    ids = [one["snapshot-id"] for one in _snapshots(table)[1:]]
    cut = _output(table).cut_after(2, {})
    for batch, read in ((2, False), (3, True), (5, True)):
        offset = json.dumps({"version": 1, "snapshot_id": ids[batch], "position": 1, "scan_all_files": False})
        assert _output(table).was_read(["-", '{"logOffset":3}', offset], cut) is read
    assert not _output(table).was_read(["-", '{"logOffset":3}', '{"snapshot_id": 7}'], cut)


@pytest.mark.parametrize("changed", [b"", b"[]", b"{}", b'{"schema": "slackwater.iceberg-backup/1", "after": 1}'])
def test_a_damaged_record_is_refused(table: Path, changed: bytes) -> None:
    output, backup = _output(table), _backup(table)
    cut = output.cut_after(1, {})
    output.cut(cut, {}, backup)
    before = iceberg_tables.newest(table)
    whole = json.loads(backup.read("iceberg.json"))
    for data in (changed, json.dumps({**whole, "version": "x"}).encode()):
        backup.write("iceberg.json", data)
        _refused("backup-damaged", output.restore, cut, backup)
    backup.write("iceberg.json", json.dumps({**whole, "output": "/elsewhere"}).encode())
    _refused("backup-foreign", output.restore, cut, backup)
    assert iceberg_tables.newest(table) == before


def test_a_store_that_cannot_commit_a_version_alone(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output, before = _output(table), iceberg_tables.newest(table)
    cut = output.cut_after(2, {})
    monkeypatch.setattr(LocalStore, "traits", StoreTraits(remote=True, atomic_rename=False, atomic_replace=True))
    _refused("sink-uncuttable", output.cut, cut, {}, _backup(table))
    assert (iceberg_tables.newest(table), output.last_written()) == (before, 5)


@pytest.mark.parametrize("keys", [(), ("id",)])
def test_a_slash_or_a_path_is_a_directory_and_anything_else_a_name(keys: tuple[str, ...]) -> None:
    for table, identity in (
        ("./out", {"kind": "iceberg", "path": str(Path.cwd() / "out")}),
        (Path("out"), {"kind": "iceberg", "path": str(Path.cwd() / "out")}),
        ("hdfs://node/lake/out", {"kind": "iceberg", "path": "hdfs://node/lake/out"}),
        ("lake.gold.out", {"kind": "iceberg", "table": "lake.gold.out"}),
    ):
        sink = iceberg(table, keys=keys)
        assert sink.identity() == identity
        known = [(entry.traits, entry.output_modes) for entry in catalogue() if entry.name == "iceberg"]
        assert (sink.traits, sink.output_modes) in known


def test_a_table_of_a_catalog_shows_nothing() -> None:
    output = open_output({"kind": "iceberg", "table": "lake.gold.hourly"})
    assert (output.last_written(), output.owner(), output.damage("all")) == (None, None, ())
    assert (output.location, output.reader_path()) == ("iceberg table lake.gold.hourly", "lake.gold.hourly")
    assert output.traits == CATALOG_TRAITS
    _refused("sink-uncuttable", output.cut_after, 3, {})
    with raises_code(SinkUnreadable, "sink-identity"):
        open_output({"kind": "iceberg"})


@pytest.mark.parametrize("action", ["cut", "restore"])
def test_killed_before_each_file_change(table: Path, action: str) -> None:
    (table.parent / "plan.json").write_text(json.dumps(asdict(_output(table).cut_after(2, {}))))
    if action == "restore":
        assert _run_killed("cut", 99, table) == 0
    template = table.parent / "template"
    shutil.copytree(table.parent, template, ignore=shutil.ignore_patterns("template"))
    expected = 2 if action == "cut" else 5
    for number in range(1, 20):
        code = _run_killed(action, number, table)
        assert _output(table).last_written() == len(iceberg_tables.live_files(table)) - 1
        if code == 0:
            break
        assert _run_killed(action, 99, table) == 0, f"killed before change {number}"
        assert _output(table).last_written() == expected == len(iceberg_tables.live_files(table)) - 1
        for name in ("out", "backup"):
            shutil.rmtree(table.parent / name, ignore_errors=True)
            if (template / name).exists():
                shutil.copytree(template / name, table.parent / name)
    assert _output(table).last_written() == expected
    assert number >= 4, "the commit is several file changes"


def _run_killed(action: str, number: int, table: Path) -> int:
    """Cut after batch 2 or restore, killed before a file change; the exit code."""
    command = [sys.executable, "-m", "tests.sinks.programs.cut_iceberg", action, str(number), str(table)]
    return subprocess.run(command, check=False).returncode
