"""Delta tables as outputs, beyond the contract suite: merges, compactions, other writers, cuts that were undone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from slackwater.errors import PipelineError, Refused, SinkUnreadable
from slackwater.model.sink import Owner
from slackwater.sinks.delta.output import DeltaOutput, app_of
from slackwater.storage.local import LocalStore
from slackwater.storage.protocols import StoreTraits
from tests.sinks import delta_logs

OWNER = Owner("5f0e", "clicks/per_page", "/srv/home")
APP = app_of(OWNER.stream_id)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """An empty table with its owner."""
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
    assert DeltaOutput(str(table)).damage(thorough=True) == ()


def test_rows_of_another_writer_are_never_cut(table: Path) -> None:
    _write(table, 0, 4)
    delta_logs.commit(table, [delta_logs.remove(table, "part-3-0 a.parquet")])
    before = delta_logs.newest(table)
    with pytest.raises(Refused) as refused:
        DeltaOutput(str(table)).cut_after(1, {})
    assert refused.value.code == "sink-uncuttable"
    assert delta_logs.newest(table) == before


def test_a_table_that_was_written_to_since_is_not_cut_or_restored(table: Path) -> None:
    _write(table, 0, 5)
    output, backup = DeltaOutput(str(table)), LocalStore(table.parent / "backup")
    cut = output.cut_after(2, {})
    delta_logs.commit(table, [delta_logs.add(table, "other.parquet", b"others")])
    with pytest.raises(Refused) as refused:
        output.cut(cut, {}, backup)
    assert refused.value.code == "cut-mismatch"

    cut = output.cut_after(2, {})
    output.cut(cut, {}, backup)
    delta_logs.write_batch(table, APP, 3)
    with pytest.raises(Refused) as refused:
        output.restore(cut, backup)
    assert refused.value.code == "restore-conflict"


def test_files_that_vacuum_has_deleted_cannot_be_restored(table: Path) -> None:
    _write(table, 0, 5)
    output, backup = DeltaOutput(str(table)), LocalStore(table.parent / "backup")
    cut = output.cut_after(2, {})
    output.cut(cut, {}, backup)
    (table / cut.files[0]).unlink()
    version = delta_logs.newest(table)
    with pytest.raises(Refused) as refused:
        output.restore(cut, backup)
    assert refused.value.code == "delta-restore"
    assert delta_logs.newest(table) == version


def test_commits_that_the_log_no_longer_has(table: Path) -> None:
    _write(table, 0, 5)
    _checkpoint(table)
    for version in range(4):
        (table / delta_logs.LOG / f"{version:020}.json").unlink()
    output = DeltaOutput(str(table))
    assert output.cut_after(3, {}).batches == (4, 5)
    with pytest.raises(Refused) as refused:
        output.cut_after(0, {})
    assert refused.value.code == "delta-log-cleaned"


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
    assert {one.path for one in output.damage(thorough=True)} == {names[3][0], names[1][0]}

    entry = table / delta_logs.LOG / f"{4:020}.json"
    whole = entry.read_bytes()
    for torn in (b"", b'{"txn"', b"[]\n", b'{"txn": {}}\n', b'{"add": {}}\n'):
        entry.write_bytes(torn)
        assert [one.kind for one in output.damage()] == ["delta-log"]
    entry.write_bytes(b'{"txn"')
    with pytest.raises(SinkUnreadable) as unreadable:
        output.last_written()
    assert unreadable.value.code == "delta-log-unreadable"
    entry.write_bytes(whole)
    (table / delta_logs.LOG / f"{2:020}.json").unlink()
    assert next((one.path, one.kind) for one in output.damage()) == (f"{delta_logs.LOG}/{2:020}.json", "missing")


def test_readers(table: Path, tmp_path: Path) -> None:
    assert DeltaOutput(str(table)).reader_path() == str(table)
    with pytest.raises(PipelineError) as absent:
        DeltaOutput(str(tmp_path / "nothing")).reader_path()
    assert absent.value.code == "output-absent"
    output = DeltaOutput(str(table))
    assert output.name_of((table / delta_logs.LOG / "0.json").as_uri()) is None


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
    with pytest.raises(Refused) as refused:
        output.restore(cut, backup)
    assert refused.value.code == "backup-damaged"
    assert delta_logs.newest(table) == version


@pytest.mark.parametrize("action", ["cut", "restore"])
def test_killed_before_each_file_change(table: Path, action: str) -> None:
    """In processes of their own: the library's runtime does not survive a fork."""
    _write(table, 0, 3)
    whole = delta_logs.live_files(table)
    if action == "restore":
        _run_killed("cut", 99, table)
        whole = delta_logs.live_files(table)
    template = table.parent / "template"
    shutil.copytree(table.parent, template, ignore=shutil.ignore_patterns("template"))
    for number in range(1, 20):
        code = _run_killed(action, number, table)
        if code == 0:
            break
        assert delta_logs.live_files(table) == whole
        assert _run_killed(action, 99, table) == 0
        assert DeltaOutput(str(table)).last_written() == (1 if action == "cut" else 3)
        for name in ("out", "backup"):
            shutil.rmtree(table.parent / name, ignore_errors=True)
            if (template / name).exists():
                shutil.copytree(template / name, table.parent / name)
    assert DeltaOutput(str(table)).last_written() == (1 if action == "cut" else 3)


def _run_killed(action: str, number: int, table: Path) -> int:
    """Cut after batch 1 or restore, killed before a file change; the exit code."""
    command = [sys.executable, "-m", "tests.sinks.programs.cut_delta", action, str(number), str(table)]
    return subprocess.run(command, check=False).returncode


def _checkpoint(table: Path) -> None:
    from deltalake import DeltaTable  # noqa: PLC0415 - heavy

    DeltaTable(str(table)).create_checkpoint()


def test_a_store_that_cannot_commit_a_version_alone(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(table, 0, 5)
    delta_logs.commit(table, [delta_logs.add(table, "other.parquet", b"others")])
    output, backup = DeltaOutput(str(table)), LocalStore(table.parent / "backup")
    cut, version = output.cut_after(2, {}), delta_logs.newest(table)
    monkeypatch.setattr(LocalStore, "traits", StoreTraits(remote=True, atomic_rename=False, atomic_replace=True))
    with pytest.raises(Refused) as refused:
        output.cut(cut, {}, backup)
    assert refused.value.code == "delta-store"
    assert (delta_logs.newest(table), output.last_written()) == (version, 5)
