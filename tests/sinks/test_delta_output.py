"""Delta tables as outputs, beyond the contract suite: merges, compactions, other writers, cuts that were undone."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from slackwater.core.errors import PipelineError, Refused, SinkUnreadable
from slackwater.core.sink import Owner
from slackwater.sinks.common.changes import CutRecord
from slackwater.sinks.common.contract import LostMarker
from slackwater.sinks.delta import changes
from slackwater.sinks.delta.log import DeltaLog, DeltaSpan
from slackwater.sinks.delta.sink import DeltaOutput, app_of
from slackwater.sinks.delta.table import WRITABLE_FEATURES, DeltaVersion
from slackwater.storage.local import LocalStore
from tests.sinks import delta_logs
from tests.sinks.delta_killed import points_of
from tests.support.errors import raises_code

OWNER = Owner("5f0e", "clicks/per_page", "/srv/home")
APP = app_of(OWNER.stream_id)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    delta_logs.commit(folder, delta_logs.TABLE)
    DeltaOutput(str(folder)).claim(OWNER)
    return folder


def _write(table: Path, first: int, last: int, *, replaces: bool = False) -> Mapping[int, list[str]]:
    """Batches of one file; each replaces the file of the one before where asked."""
    names: dict[int, list[str]] = {}
    for batch in range(first, last + 1):
        before = names.get(batch - 1, [])
        names[batch] = delta_logs.write_batch(table, APP, batch, replaces=before if replaces else ())
    return names


def test_a_table_that_has_rows_and_no_transactions(table: Path) -> None:
    """As a copy by CREATE TABLE AS SELECT: what the rows are of is unknown. An empty one has none."""
    output = DeltaOutput(str(table))
    assert output.lost_marker(-1) is None
    assert DeltaOutput(str(table.parent / "none")).lost_marker(-1) is None
    delta_logs.commit(table, [delta_logs.add(table, "copied.parquet", b"rows")])
    assert output.last_written() == -1
    assert output.lost_marker(-1) == LostMarker("delete all rows of the table")
    _write(table, 0, 1)
    assert output.lost_marker(1) is None


def _cut(table: Path, after: int, backup: str = "backup") -> None:
    output = DeltaOutput(str(table))
    output.cut(output.cut_after(after, {}), {}, LocalStore(table.parent / backup))


def _restore(table: Path, after: int, version: int, backup: str = "backup") -> None:
    """Undo a cut that was worked out from ``version``."""
    record = LocalStore(table.parent / backup)
    copy = table.parent / "as-it-was"
    shutil.copytree(table, copy)
    for path in (copy / delta_logs.LOG).glob("*.json"):
        if int(path.stem) > version:
            path.unlink()
    cut = DeltaOutput(str(copy)).cut_after(after, {})
    shutil.rmtree(copy)
    DeltaOutput(str(table)).restore(cut, record)


def test_batches_that_replace_files_are_cut_and_undone(table: Path) -> None:
    _write(table, 0, 5, replaces=True)
    whole, version = delta_logs.live_files(table), delta_logs.newest(table)
    cut = DeltaOutput(str(table)).cut_after(2, {})
    assert cut.batches == (3, 4, 5)
    assert cut.files == tuple(whole)
    assert cut.rows is None, "rows were replaced"
    assert cut.version == str(version)

    _cut(table, 2)

    assert list(delta_logs.live_files(table)) == ["part-2-0 a.parquet"]
    assert delta_logs.transactions(table) == {APP: 2}
    _restore(table, 2, version)
    assert delta_logs.live_files(table) == whole
    assert delta_logs.transactions(table) == {APP: 5}


def test_rows_of_a_cut_are_counted(table: Path) -> None:
    for batch in range(4):
        delta_logs.write_batch(table, APP, batch, files=2, rows=10 + batch)
    assert DeltaOutput(str(table)).cut_after(1, {}).rows == 2 * 12 + 2 * 13
    delta_logs.write_batch(table, APP, 4, rows=None)
    assert DeltaOutput(str(table)).cut_after(1, {}).rows is None


def test_a_cut_goes_past_earlier_cuts_and_undone_ones(table: Path) -> None:
    _write(table, 0, 9)
    version = delta_logs.newest(table)
    _cut(table, 6, "first")
    _restore(table, 6, version, "first")
    _write(table, 10, 11)
    _cut(table, 8, "second")
    shown = sorted(delta_logs.live_files(table))
    assert shown == [f"part-{batch}-0 a.parquet" for batch in range(9)]

    for name in [f"part-{batch}-0 a.parquet" for batch in (9, 10)]:
        (table / name).unlink()
    _write(table, 9, 10)
    _cut(table, 3, "third")

    assert sorted(delta_logs.live_files(table)) == [f"part-{batch}-0 a.parquet" for batch in range(4)]
    assert DeltaOutput(str(table)).last_written() == 3


def test_a_compaction_does_not_prevent_a_cut(table: Path) -> None:
    names = _write(table, 0, 4)
    compacted = delta_logs.add(table, "compacted.parquet", b"all rows", 5, data_change=False)
    old = [delta_logs.remove(table, name, data_change=False) for batch in names.values() for name in batch]
    delta_logs.commit(table, [compacted, *old])
    _write(table, 5, 6)

    _cut(table, 3)

    assert sorted(delta_logs.live_files(table)) == [f"part-{batch}-0 a.parquet" for batch in range(4)]
    assert DeltaOutput(str(table)).damage("all") == ()


def test_rows_of_another_writer_are_never_cut(table: Path) -> None:
    _write(table, 0, 4)
    delta_logs.commit(table, [delta_logs.remove(table, "part-3-0 a.parquet")])
    before = delta_logs.newest(table)
    with raises_code(Refused, "sink-uncuttable"):
        DeltaOutput(str(table)).cut_after(1, {})
    assert delta_logs.newest(table) == before


def test_a_table_that_was_written_to_since_is_not_cut_or_restored(table: Path) -> None:
    _write(table, 0, 5)
    output, backup = DeltaOutput(str(table)), LocalStore(table.parent / "backup")
    cut = output.cut_after(2, {})
    delta_logs.commit(table, [delta_logs.add(table, "other.parquet", b"others")])
    with raises_code(Refused, "cut-mismatch"):
        output.cut(cut, {}, backup)

    cut = output.cut_after(2, {})
    output.cut(cut, {}, backup)
    delta_logs.write_batch(table, APP, 3)
    with raises_code(Refused, "restore-conflict"):
        output.restore(cut, backup)


@pytest.mark.parametrize("by_restore", [True, False])
def test_a_cut_that_another_writer_was_faster_than(
    table: Path, monkeypatch: pytest.MonkeyPatch, *, by_restore: bool
) -> None:
    """It is recorded and was never made: undo has nothing to do, and what is continued is checked again."""
    _write(table, 0, 5)
    if not by_restore:
        delta_logs.commit(table, [delta_logs.add(table, "other.parquet", b"others")])
    output, backup = DeltaOutput(str(table)), LocalStore(table.parent / "backup")
    cut = output.cut_after(2, {})

    real = DeltaOutput._delete_batches

    def raced(output: DeltaOutput, record: CutRecord, version: int) -> None:
        delta_logs.commit(table, [delta_logs.add(table, "faster.parquet", b"others")])
        real(output, record, version)

    monkeypatch.setattr(DeltaOutput, "_delete_batches", raced)
    with raises_code(Refused, "output-changed"):
        output.cut(cut, {}, backup)
    monkeypatch.undo()
    whole, version = delta_logs.live_files(table), delta_logs.newest(table)
    with raises_code(Refused, "cut-mismatch"):
        output.cut(cut, {}, backup)
    output.check_restore(cut, backup)
    output.restore(cut, backup)
    assert (delta_logs.live_files(table), delta_logs.newest(table)) == (whole, version)


def test_a_cut_that_others_have_committed_behind_is_done(table: Path) -> None:
    """An apply that was killed behind its commit continues; undo would take out what they have added."""
    _write(table, 0, 5)
    output, backup = DeltaOutput(str(table)), LocalStore(table.parent / "backup")
    cut = output.cut_after(2, {})
    output.cut(cut, {}, backup)
    info = {"commitInfo": {"timestamp": 0, "operation": "VACUUM START", "operationParameters": {}}}
    delta_logs.commit(table, [info])
    output.cut(cut, {}, backup)
    output.check_restore(cut, backup)
    delta_logs.commit(table, [delta_logs.add(table, "other.parquet", b"others")])
    version = delta_logs.newest(table)
    output.cut(cut, {}, backup)
    with pytest.raises(Refused) as refused:
        output.restore(cut, backup)
    assert (refused.value.code, delta_logs.newest(table)) == ("restore-conflict", version)


def test_files_that_were_compacted_behind_the_record_are_not_removed_one_by_one(table: Path) -> None:
    _write(table, 0, 5)
    delta_logs.commit(table, [delta_logs.add(table, "other.parquet", b"others")])
    output, backup = DeltaOutput(str(table)), LocalStore(table.parent / "backup")
    cut, record = output._planned_cut(2)
    assert record is not None
    changes.RECORD.write(backup, record)
    compacted = delta_logs.add(table, "compacted.parquet", b"rows", data_change=False)
    delta_logs.commit(table, [compacted, delta_logs.remove(table, cut.files[0], data_change=False)])
    before = delta_logs.live_files(table)
    with raises_code(Refused, "sink-uncuttable"):
        output.cut(cut, {}, backup)
    output.restore(cut, backup)
    assert delta_logs.live_files(table) == before


def test_files_that_vacuum_has_deleted_cannot_be_restored(table: Path) -> None:
    _write(table, 0, 5)
    output, backup = DeltaOutput(str(table)), LocalStore(table.parent / "backup")
    cut = output.cut_after(2, {})
    output.cut(cut, {}, backup)
    (table / cut.files[0]).unlink()
    version = delta_logs.newest(table)
    with raises_code(Refused, "delta-restore"):
        output.restore(cut, backup)
    assert delta_logs.newest(table) == version


def test_commits_that_the_log_no_longer_has(table: Path) -> None:
    _write(table, 0, 5)
    _checkpoint(table)
    for version in range(4):
        (table / delta_logs.LOG / f"{version:020}.json").unlink()
    output = DeltaOutput(str(table))
    assert output.cut_after(3, {}).batches == (4, 5)
    with raises_code(Refused, "delta-log-cleaned"):
        output.cut_after(0, {})


def test_the_newest_batch_is_in_the_checkpoint_alone(table: Path) -> None:
    _write(table, 0, 5)
    _checkpoint(table)
    for path in (table / delta_logs.LOG).glob("*.json"):
        path.unlink()
    delta_logs.commit(table.parent / "next", [delta_logs.add(table, "other.parquet", b"others")])
    (table.parent / "next" / delta_logs.LOG / f"{0:020}.json").rename(table / delta_logs.LOG / f"{7:020}.json")

    assert DeltaOutput(str(table)).last_written() == 5


def test_without_its_mark_the_table_still_shows_its_newest_batch(table: Path) -> None:
    _write(table, 0, 3)
    (table / "_slackwater.json").unlink()
    assert DeltaOutput(str(table)).last_written() == 3


def test_a_table_with_rows_of_others_only_is_new_to_a_stream(table: Path) -> None:
    delta_logs.commit(table, [{"txn": {"appId": "a query", "version": 7}}])
    assert DeltaOutput(str(table)).last_written() == -1
    (table / "_slackwater.json").unlink()
    assert DeltaOutput(str(table)).last_written() == -1


def test_damage(table: Path) -> None:
    names = _write(table, 0, 3)
    output = DeltaOutput(str(table))
    (table / names[3][0]).write_bytes(b"torn")
    (table / names[1][0]).unlink()
    assert [(one.path, one.kind) for one in output.damage()] == [(names[3][0], "torn")]
    assert {one.path for one in output.damage("all")} == {names[3][0], names[1][0]}

    entry = table / delta_logs.LOG / f"{4:020}.json"
    whole = entry.read_bytes()
    for torn in (b"", b'{"txn"', b"[]\n", b'{"txn": {}}\n', b'{"add": {}}\n'):
        entry.write_bytes(torn)
        assert [one.kind for one in output.damage()] == ["delta-log"]
    entry.write_bytes(b'{"txn"')
    with raises_code(SinkUnreadable, "delta-log-unreadable"):
        output.last_written()
    entry.write_bytes(whole)
    (table / delta_logs.LOG / f"{2:020}.json").unlink()
    assert next((one.path, one.kind) for one in output.damage()) == (f"{delta_logs.LOG}/{2:020}.json", "missing")


def test_readers(table: Path, tmp_path: Path) -> None:
    assert DeltaOutput(str(table)).reader_path() == str(table)
    with raises_code(PipelineError, "output-absent"):
        DeltaOutput(str(tmp_path / "nothing")).reader_path()
    output = DeltaOutput(str(table))
    assert output.relative_path((table / delta_logs.LOG / "0.json").as_uri()) is None


@pytest.mark.parametrize(
    ("place", "read"),
    [
        ({"reservoirVersion": 4, "index": -1, "isStartingVersion": False}, False),
        ({"reservoirVersion": 4, "index": 0, "isStartingVersion": False}, True),
        ({"reservoirVersion": 5, "index": -1, "isStartingVersion": False}, True),
        ({"reservoirVersion": 3, "index": 7, "isStartingVersion": True}, False),
        ({"reservoirVersion": 4, "index": -1, "isStartingVersion": True}, True),
    ],
)
def test_what_readers_have_read(table: Path, place: dict[str, object], *, read: bool) -> None:
    """Version 3 has batch 2, the newest one that is kept."""
    _write(table, 0, 5)
    output = DeltaOutput(str(table))
    cut = output.cut_after(2, {})
    assert output.was_read(["-", '{"logOffset":3}', json.dumps({**place, "reservoirId": delta_logs.ID})], cut) is read
    assert not output.was_read([json.dumps({**place, "reservoirId": "another table"})], cut)
    assert not output.was_read(["-", '{"logOffset":3}'], cut)


@pytest.mark.parametrize("changed", [b"", b"[]", b"{}", b'{"schema": "slackwater.delta-backup/1", "after": 1}'])
def test_a_damaged_record_is_refused(table: Path, changed: bytes) -> None:
    _write(table, 0, 3)
    output, backup = DeltaOutput(str(table)), LocalStore(table.parent / "backup")
    cut = output.cut_after(1, {})
    output.cut(cut, {}, backup)
    version = delta_logs.newest(table)
    backup.write("delta.json", changed)
    with raises_code(Refused, "backup-damaged"):
        output.restore(cut, backup)
    assert delta_logs.newest(table) == version


@pytest.mark.parametrize("action", ["cut", "restore"])
def test_killed_before_each_file_change(table: Path, action: str) -> None:
    _write(table, 0, 3)
    output, backup = DeltaOutput(str(table)), LocalStore(table.parent / "backup")
    cut, template = output.cut_after(1, {}), table.parent.with_name(f"{table.parent.name}-template")
    if action == "restore":
        output.cut(cut, {}, backup)
    before = delta_logs.live_files(table)
    shutil.copytree(table.parent, template)

    def prepare() -> None:
        shutil.rmtree(table.parent)
        shutil.copytree(template, table.parent)

    def finish() -> None:
        output.cut(cut, {}, backup) if action == "cut" else output.restore(cut, backup)

    last = 1 if action == "cut" else 3
    for number in points_of(action, table, table.parent, cut, prepare):
        assert delta_logs.live_files(table) == before, f"killed before change {number}"
        finish()
        assert output.last_written() == last
    assert output.last_written() == last


@pytest.mark.parametrize("by_restore", [True, False])
def test_a_writer_between_the_check_and_the_commit(table: Path, *, by_restore: bool) -> None:
    """The commit follows the version that was checked, or is refused: it is never rebased on another one."""
    _write(table, 0, 3)
    if not by_restore:
        delta_logs.commit(table, [delta_logs.add(table, "other.parquet", b"others")])
    output, log = DeltaOutput(str(table)), DeltaLog(LocalStore(table))
    newest = delta_logs.newest(table)
    span = DeltaSpan(log, APP, 1)
    assert span.by_restore is by_restore
    _, record = output._planned_cut(1)
    assert record is not None
    delta_logs.commit(table, [delta_logs.add(table, "between.parquet", b"others")])
    before = delta_logs.live_files(table)
    for act in (output._delete_batches, output._restore):
        with raises_code(Refused, "output-changed"):
            act(record, newest)
        assert (delta_logs.live_files(table), delta_logs.newest(table)) == (before, newest + 1)
    output._restore(record, newest + 1)
    assert "between.parquet" not in delta_logs.live_files(table)


@pytest.mark.parametrize("writable", [True, False])
def test_what_deltalake_writes_is_what_it_is_said_to_write(table: Path, *, writable: bool) -> None:
    """Each feature alone, by a cut: one that is missing in the list would be refused without a reason."""
    others = {
        "domainMetadata",
        "icebergCompatV1",
        "identityColumns",
        "inCommitTimestamp",
        "rowTracking",
        "typeWidening",
    }
    others |= {"allowColumnDefaults", "clustering", "vacuumProtocolCheck", "made up"}
    for feature in sorted(WRITABLE_FEATURES if writable else others):
        shutil.rmtree(table)
        delta_logs.commit(table, delta_logs.TABLE)
        DeltaOutput(str(table)).claim(OWNER)
        reads = {} if feature not in _READERS else {"readerFeatures": [feature]}
        versions = {"minReaderVersion": 3 if reads else 1, "minWriterVersion": 7}
        delta_logs.commit(table, [{"protocol": {**versions, **reads, "writerFeatures": [feature]}}])
        _write(table, 0, 2)
        output, version = DeltaOutput(str(table)), delta_logs.newest(table)
        if writable:
            output.cut(output.cut_after(0, {}), {}, LocalStore(table.parent / f"backup-{feature}"))
            assert output.last_written() == 0
            continue
        with pytest.raises(Refused) as refused:
            output.cut_after(0, {})
        assert (refused.value.code, feature in str(refused.value.found)) == ("sink-uncuttable", True)
        with raises_code(Refused, "delta-commit"):
            DeltaVersion(str(table)).commit(APP, 0, {})
        assert delta_logs.newest(table) == version


_READERS = {"columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "v2Checkpoint", "variantType"}
_READERS |= {"vacuumProtocolCheck"}


@pytest.mark.parametrize(("version", "cuttable"), [(5, True), (6, False)])
def test_a_protocol_that_names_no_features(table: Path, version: int, *, cuttable: bool) -> None:
    delta_logs.commit(table, [{"protocol": {"minReaderVersion": 2, "minWriterVersion": version}}])
    _write(table, 0, 2)
    output = DeltaOutput(str(table))
    if cuttable:
        output.cut(output.cut_after(0, {}), {}, LocalStore(table.parent / "backup"))
        assert output.last_written() == 0
        return
    with raises_code(Refused, "sink-uncuttable", found="writer version 6"):
        output.cut_after(0, {})


def test_a_table_that_files_may_not_be_removed_from(table: Path) -> None:
    metadata = json.loads(json.dumps(delta_logs.TABLE[2]))
    metadata["metaData"]["configuration"] = {"delta.appendOnly": "true"}
    delta_logs.commit(table, [metadata])
    _write(table, 0, 2)
    with raises_code(Refused, "sink-uncuttable", found="delta.appendOnly"):
        DeltaOutput(str(table)).cut_after(0, {})


def _checkpoint(table: Path) -> None:
    from deltalake import DeltaTable  # noqa: PLC0415 - heavy

    DeltaTable(str(table)).create_checkpoint()
