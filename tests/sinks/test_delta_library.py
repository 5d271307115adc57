"""What a swap writes by deltalake: statistics, partitions, columns, constraints, as its own writer has them."""

import base64
import json
import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from slackwater.core.errors import Refused
from slackwater.core.sink import Owner
from slackwater.sinks.delta.sink import DeltaOutput, app_of
from slackwater.sinks.delta.table import DeltaVersion
from slackwater.storage.local import LocalStore
from tests.sinks import delta_logs
from tests.support.errors import raises_code

OPERATION = "20260105T093000-1a2b3c"
OWNER = Owner("5f0e", "clicks/per_page", "/srv/home")
APP = app_of(OWNER.stream_id)
NOON_UTC = datetime(2026, 1, 1, 12, 0, 3, 456000, UTC)
NOON = NOON_UTC.replace(tzinfo=None)
Columns = Mapping[str, Sequence[object]]


def _append(table: Path | str, columns: Columns | pa.Table, *partitions: str, batch: int | None = None) -> None:
    """Append rows as another writer, or as a batch of the stream."""
    transactions = [] if batch is None else [Transaction(APP, batch)]
    write_deltalake(
        table,
        columns if isinstance(columns, pa.Table) else pa.table(dict(columns)),
        mode="append",
        schema_mode="merge",
        partition_by=list(partitions) or None,
        commit_properties=CommitProperties(app_transactions=transactions),
    )


def _rows(table: Path | str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = DeltaTable(table).to_pyarrow_table().to_pylist()
    return sorted(rows, key=repr)


def _actions(table: Path) -> dict[str, dict[str, object]]:
    """What the newest version has of each file, by path, as the library reads it."""
    rows: list[dict[str, Any]] = pa.table(DeltaTable(table).get_add_actions()).to_pylist()
    return {row["path"]: _flat(row) for row in rows}


def _flat(values: Mapping[str, Any], below: str = "") -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in values.items():
        found |= _flat(value, f"{below}{name}/") if isinstance(value, dict) else {below + name: value}
    return found


def _staged(output: DeltaOutput, after: int = -1) -> Path:
    output.claim(OWNER)
    output.stage(OPERATION, after, {})
    staged = output.staged(OPERATION)
    staged.claim(OWNER)
    return Path(staged.location)


def _swap(output: DeltaOutput, folder: Path) -> None:
    output.swap(output.swap_of(OPERATION, OWNER.stream_id), LocalStore(folder / "backup"))


def _bitmap(*rows: int) -> bytes:
    """A deletion vector (PROTOCOL.md, section "Deletion Vector Format"): one 32-bit Roaring bitmap of one array."""
    header = struct.pack("<iqi", 1681511377, 1, 0)
    return header + struct.pack("<IIHHI", 12346, 1, 0, len(rows) - 1, 16) + struct.pack(f"<{len(rows)}H", *rows)


def _z85(data: bytes) -> str:
    """ZeroMQ's alphabet in place of that of RFC 1924."""
    rfc = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
    zeromq = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    return base64.b85encode(data).decode().translate(str.maketrans(rfc, zeromq))


@pytest.mark.parametrize("checkpointed", [False, True])
def test_statistics_and_partitions_are_those_of_the_files_writer(tmp_path: Path, *, checkpointed: bool) -> None:
    columns: dict[str, Sequence[object]] = {
        "day": [date(2026, 1, 1), None, date(2026, 1, 2)],
        "name": ["a b/ö%", "", None],
        "flag": [True, False, None],
        "number": [-1, 2**62, None],
        "text": ["x" * 60, "ÿ", None],
        "at": [NOON_UTC, NOON_UTC + timedelta(microseconds=1), None],
        "local": [NOON, NOON, None],
        "price": [Decimal("1.10"), Decimal("12345678901234567890.22"), None],
        "ratio": [1.5, float("inf"), None],
        "data": [b"x", b"y", None],
        "nested": [{"a": 1, "b": "q"}, {"a": 2, "b": None}, None],
        "list": [[1], [2], None],
        "none": pa.array([None, None, None], pa.int64()),
    }
    for batch in range(2):
        _append(tmp_path / "out", columns, "day", "name", "flag", batch=batch)
    output = DeltaOutput(str(tmp_path / "out"))
    staged = _staged(output)
    _append(staged, columns, "day", "name", "flag", batch=0)
    written = _actions(staged)
    if checkpointed:
        DeltaTable(staged).create_checkpoint()
    _swap(output, tmp_path)

    found = _actions(tmp_path / "out")
    assert found.keys() == written.keys()
    for path, known in written.items():
        made = found[path]
        left_out = {name for name in known if made.get(name) != known[name]}
        assert left_out <= {"min/price", "max/price"}, "only what JSON does not have exactly"
        assert all(made.get(name) is None for name in left_out)
    assert _rows(tmp_path / "out") == _rows(staged)
    for predicate, count in ((("number", "=", -1), 1), (("at", "<=", NOON_UTC), 1)):
        assert DeltaTable(tmp_path / "out").to_pyarrow_table(filters=[predicate]).num_rows == count


def test_a_timestamp_of_a_partition_is_another_time_in_each_zone(tmp_path: Path) -> None:
    output = DeltaOutput(str(tmp_path / "out"))
    for table in (tmp_path / "out", None):
        folder = table or _staged(output)
        _append(folder, {"at": [NOON_UTC], "n": [1]}, "at", batch=0)
    with raises_code(Refused, "swap-unsupported", found="at: timestamp"):
        _swap(output, tmp_path)
    assert DeltaTable(tmp_path / "out").version() == 0
    cut = output.cut_after(-1, {})
    assert cut.files, "a cut writes none of them again"


@pytest.mark.parametrize("others", [False, True])
def test_other_columns_with_files_that_stay(tmp_path: Path, *, others: bool) -> None:
    """No commit removes a file and adds it again: what stays gets a second name, and is of the batch that wrote it."""
    table, output = tmp_path / "out", DeltaOutput(str(tmp_path / "out"))
    for batch in range(4):
        _append(table, {"n": [batch]}, batch=batch)
    if others:
        _append(table, {"n": [99]})
    kept: list[dict[str, Any]] = [{"n": n, "more": None} for n in (0, 1, *([99] if others else []))]
    staged = _staged(output, after=1)
    for batch in (2, 3):
        _append(staged, {"n": [100 + batch], "more": ["new"]}, batch=batch)
    old, columns = _rows(table), DeltaTable(table).schema()
    swap, backup = output.swap_of(OPERATION, OWNER.stream_id, 1), LocalStore(tmp_path / "backup")
    output.swap(swap, backup)

    added: list[dict[str, Any]] = [{"n": 100 + batch, "more": "new"} for batch in (2, 3)]
    assert _rows(table) == sorted([*kept, *added], key=repr)
    assert (output.last_written(), output.damage("all")) == (3, ())
    moved = {path for path in DeltaVersion(str(table)).sizes() if path.startswith(f"slackwater-{OPERATION}/")}
    assert len(moved) == len(kept)
    for after, left in ((2, [*kept, added[0]]), (1, kept), (0, [kept[0], *kept[2:]]), (-1, kept[2:])):
        cut, cuts = output.cut_after(after, {}), LocalStore(tmp_path / f"cut{after}")
        assert (len(moved & set(cut.files)), cut.rows) == (max(1 - after, 0), 3 - after)
        output.cut(cut, {}, cuts)
        assert sorted(row["n"] for row in _rows(table)) == sorted(row["n"] for row in left)
        output.restore(cut, cuts)
    again = output.swap_of("again", OWNER.stream_id, 0)
    output.stage("again", 0, {})
    output.staged("again").claim(OWNER)
    _append(output.staged("again").location, {"n": [7], "third": [1.5]}, batch=1)
    output.swap(again, LocalStore(tmp_path / "again"))
    assert sorted(row["n"] for row in _rows(table)) == [0, 7, *([99] if others else [])]
    cut = output.cut_after(-1, {})
    assert (cut.rows, len(cut.files)) == (2, 2), "a file that was moved twice"
    output.swap_back(again, LocalStore(tmp_path / "again"))
    output.swap_back(swap, backup)
    assert (_rows(table), DeltaTable(table).schema(), output.last_written()) == (old, columns, 3)


def test_a_staged_table_has_the_constraints_of_the_table(tmp_path: Path) -> None:
    table, output = tmp_path / "out", DeltaOutput(str(tmp_path / "out"))
    for batch in range(3):
        _append(table, {"n": [batch]}, batch=batch)
    DeltaTable(table).alter.add_constraint({"positive": "n >= 0"})
    DeltaTable(table).alter.add_constraint({"small": "n < 1000"})
    staged = _staged(output, after=1)
    assert DeltaVersion(str(staged)).constraints == DeltaVersion(str(table)).constraints
    assert DeltaTable(staged).protocol().min_writer_version >= 3
    with pytest.raises(Exception, match="failed validation check"):
        _append(staged, {"n": [-1]}, batch=2)
    _append(staged, {"n": [7]}, batch=2)
    _swap(output, tmp_path)
    assert [row["n"] for row in _rows(table)] == [0, 1, 7]


def test_a_constraint_that_the_library_cannot_plan_is_refused(tmp_path: Path) -> None:
    """A function of Spark's in it: the staged table could not have the constraint."""
    table = tmp_path / "out"
    metadata: dict[str, Any] = json.loads(json.dumps(delta_logs.TABLE[2]))
    metadata["metaData"]["configuration"] = {"delta.constraints.digits": "cast(b as string) rlike '^[0-9]+$'"}
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 3}}
    delta_logs.commit(table, [delta_logs.TABLE[0], protocol, metadata])
    for batch in range(2):
        delta_logs.write_batch(table, APP, batch)
    output = DeltaOutput(str(table))
    with pytest.raises(Refused) as refused:
        _staged(output, after=0)
    assert (refused.value.code, "RLike" in str(refused.value.found)) == ("swap-unsupported", True)
    assert refused.value.where == str(table)
    output.discard(OPERATION, "staged")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_tables_with_features(tmp_path: Path) -> None:
    """Above writer version 6: here a column without a time zone, and the change data feed."""
    table, output = tmp_path / "out", DeltaOutput(str(tmp_path / "out"))
    for batch in range(3):
        _append(table, {"at": [NOON], "n": [batch]}, batch=batch)
    DeltaTable(table).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    assert DeltaTable(table).protocol().min_writer_version == 7
    staged = _staged(output, after=0)
    _append(staged, {"at": [NOON], "n": [7]}, batch=1)
    old = _rows(table)
    swap, backup = output.swap_of(OPERATION, OWNER.stream_id, 0), LocalStore(tmp_path / "backup")
    output.swap(swap, backup)
    assert [row["n"] for row in _rows(table)] == [0, 7]
    cut, cuts = output.cut_after(0, {}), LocalStore(tmp_path / "cut")
    output.cut(cut, {}, cuts)
    assert ([row["n"] for row in _rows(table)], output.last_written()) == ([0], 0)
    output.restore(cut, cuts)
    output.swap_back(swap, backup)
    assert _rows(table) == old
    assert DeltaTable(table).protocol().min_writer_version == 7


def test_rows_that_are_deleted_by_vectors(tmp_path: Path) -> None:
    """The library's actions have no vector: to remove or to add such a file by them would change its rows."""
    table, output = tmp_path / "out", DeltaOutput(str(tmp_path / "out"))
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    for batch in range(3):
        _append(table, {"n": list(range(30))}, batch=batch)
    delta_logs.commit(table, [{"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}])
    assert not DeltaVersion(str(table)).has_deleted_rows
    # The actions that added files, by path, of all entries of the log.
    entries = sorted((table / delta_logs.LOG).glob("*.json"))
    actions = [json.loads(line) for entry in entries for line in entry.read_text().splitlines()]
    path, add = next(iter({action["add"]["path"]: action["add"] for action in actions if "add" in action}.items()))
    bitmap = _bitmap(3, 4, 7, 11, 18, 29)
    vector = {"storageType": "i", "pathOrInlineDv": _z85(bitmap), "sizeInBytes": len(bitmap), "cardinality": 6}
    removed = {"path": path, "deletionTimestamp": 0, "dataChange": True, "size": add["size"]}
    delta_logs.commit(table, [{"remove": removed}, {"add": {**add, "deletionVector": vector}}])
    assert DeltaVersion(str(table)).has_deleted_rows
    staged = _staged(output)
    _append(staged, {"n": [7]}, batch=0)
    with pytest.raises(Refused) as refused:
        _swap(output, tmp_path)
    assert (refused.value.code, "deletion vectors" in str(refused.value.expected)) == ("swap-unsupported", True)
    with raises_code(Refused, "sink-uncuttable"):
        output.cut_after(-1, {})
    output.cut(output.cut_after(0, {}), {}, LocalStore(tmp_path / "cut"))
    assert (output.last_written(), DeltaVersion(str(table)).has_deleted_rows) == (0, True)


def test_a_file_with_deletion_vectors_that_vacuum_has_deleted(tmp_path: Path) -> None:
    """The library restores a version without looking for it, and Spark cannot read the table then."""
    table, output = tmp_path / "out", DeltaOutput(str(tmp_path / "out"))
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    delta_logs.commit(table, delta_logs.TABLE)
    delta_logs.commit(table, [{"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}])
    output.claim(OWNER)
    (first,) = delta_logs.write_batch(table, APP, 0)
    add, removed = delta_logs.add(table, first, b"rows of batch 0\n", 30), delta_logs.remove(table, first)
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40}
    add["add"]["deletionVector"] = {**vector, "cardinality": 6}
    delta_logs.commit(table, [{"txn": {"appId": APP, "version": 1, "lastUpdated": 1}}, removed, add])
    cut, backup = output.cut_after(0, {}), LocalStore(tmp_path / "cut")
    output.cut(cut, {}, backup)
    version = delta_logs.newest(table)
    for act in (output.check_restore, output.restore):
        with pytest.raises(Refused) as refused:
            act(cut, backup)
        assert (refused.value.code, "File not found" in str(refused.value)) == ("delta-restore", True)
    (table / delta_logs.LOG / f"{version:020}.json").unlink()
    delta_logs.write_batch(table, APP, 2, replaces=[first])
    with pytest.raises(Refused) as refused:
        output.cut(output.cut_after(1, {}), {}, LocalStore(tmp_path / "second"))
    assert (refused.value.code, output.last_written()) == ("delta-restore", 2)


def test_a_staged_table_computes_the_columns_that_the_table_computes(tmp_path: Path) -> None:
    table, output = tmp_path / "out", DeltaOutput(str(tmp_path / "out"))
    protocol, metadata = ({"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}, delta_logs.TABLE[2])
    generated = json.loads(delta_logs.SCHEMA)
    generated["fields"].append(
        {"name": "twice", "type": "long", "nullable": True, "metadata": {"delta.generationExpression": "b * 2"}}
    )
    schema = {"metaData": {**metadata["metaData"], "schemaString": json.dumps(generated)}}
    delta_logs.commit(table, [delta_logs.TABLE[0], protocol, schema])
    for batch in range(2):
        delta_logs.write_batch(table, APP, batch)
    staged = _staged(output, after=0)
    assert json.loads(DeltaVersion(str(staged)).schema_json) == generated
    assert DeltaTable(staged).protocol().min_writer_version >= 4


def test_the_backup_of_an_older_version_is_restored(tmp_path: Path) -> None:
    """Its record has the same fields; what it committed is known by its note."""
    table, output = tmp_path / "out", DeltaOutput(str(tmp_path / "out"))
    delta_logs.commit(table, delta_logs.TABLE)
    output.claim(OWNER)
    for batch in range(4):
        delta_logs.write_batch(table, APP, batch)
    whole, cut = delta_logs.live_files(table), output.cut_after(1, {})
    record = {"output": str(table), "writer": APP, "after": 1, "last": 3, "version": 4, "target": None}
    backup = LocalStore(tmp_path / "backup")
    backup.write("delta.json", json.dumps({"schema": "slackwater.delta-backup/1", **record}).encode())
    note = {"commitInfo": {"operation": "DELETE", "slackwater": json.dumps({"cut": 4, "after": 1})}}
    removes = [delta_logs.remove(table, name) for name in cut.files]
    delta_logs.commit(table, [note, {"txn": {"appId": APP, "version": 1}}, *removes])
    output.cut(cut, {}, backup)
    assert (delta_logs.newest(table), output.last_written()) == (5, 1)
    output.restore(cut, backup)
    assert (delta_logs.live_files(table), output.last_written()) == (whole, 3)
