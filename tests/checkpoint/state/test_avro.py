"""Rows in Avro against bytes made by the rules of ``SchemaConverters.toAvroTypeWithDefaults``."""

import ast
import base64
import json
import random
import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rocksdict import Options, Rdict

from slackwater.checkpoint.inventory import read_inventory
from slackwater.checkpoint.listing import read_listing
from slackwater.checkpoint.operators import OperatorReader
from slackwater.checkpoint.state import rocksdb_scan
from slackwater.checkpoint.state.loader import read_tables
from slackwater.checkpoint.state.reader import StateChoice, StateReader, StateRows
from slackwater.checkpoint.state.records import ByteView
from slackwater.checkpoint.state.rows import Spans, avro_rows
from slackwater.cli.verbs.inspect import StateRequest
from slackwater.cli.verbs.inspect.rows import choices, choose
from slackwater.core.errors import FormatError
from slackwater.core.state import ArrayType, AtomicType, DataType, Field, MapType, Operator, StructType
from slackwater.formats.rocksdb_zip import RocksDbVersion, TableFile
from slackwater.storage.local import LocalStore
from tests.checkpoint.cases import CASES, description, opened
from tests.support.errors import raises_code


def as_multiset(rows: Iterable[Mapping[str, Any]], *, ignore: tuple[str, ...] = ()) -> Counter[str]:
    """Rows without regard to order, in the dump's own way of writing: no nulls, times as text, bytes as base64."""
    return Counter(json.dumps(_comparable(row, ignore), sort_keys=True) for row in rows)


def _comparable(value: Any, ignore: tuple[str, ...]) -> Any:
    if isinstance(value, Mapping):
        return _fields(value, ignore)
    if isinstance(value, (list, tuple)):
        return [_comparable(item, ignore) for item in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03d}Z"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return float(value)
    return value


def _fields(value: Mapping[str, Any], ignore: tuple[str, ...]) -> dict[str, Any]:
    """A struct. Where a name occurs twice (``count``, ``count_2`` here) the dump has only the last of them."""
    fields: dict[str, Any] = {}
    for name, item in value.items():
        comparable = _comparable(item, ignore)
        if name in ignore or comparable is None:
            continue
        stem = name.removesuffix("_2")
        fields[stem if stem in value else name] = comparable
    return fields


LONG, STRING, VOID = AtomicType("long"), AtomicType("string"), AtomicType("void")
PAIR = StructType((Field("x", LONG), Field("y", STRING, nullable=False)))


def number(value: int) -> bytes:
    value, out = (value << 1) ^ (value >> 63), b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def union(kind: DataType, value: Any) -> bytes:
    return number(0) if value is None else number(1) + plain(kind, value)


def plain(kind: DataType, value: Any) -> bytes:
    match kind:
        case StructType(fields):
            return b"".join(union(one.type, value[one.name]) for one in fields if one.type != VOID)
        case ArrayType(element):
            return block([item(element, one) for one in value])
        case MapType(_, element):
            return block([plain(STRING, name) + item(element, one) for name, one in value])
        case AtomicType("string"):
            text: str = value
            return number(len(text)) + text.encode()
    return number(value)


def item(kind: DataType, value: Any) -> bytes:
    return plain(kind, value) if isinstance(kind, AtomicType) else union(kind, value)


def block(items: list[bytes]) -> bytes:
    return (number(len(items)) + b"".join(items) if items else b"") + number(0)


def read(body: bytes, schema: StructType) -> list[dict[str, Any]]:
    data = b"\0\0\0" + body
    rows: list[dict[str, Any]] = avro_rows(
        Spans(ByteView.of(data), np.array([0]), np.array([len(data)])), schema
    ).to_pylist()
    return rows


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (LONG, 42),
        (LONG, 0),
        (LONG, None),
        (ArrayType(LONG), [0, 0, 0]),
        (ArrayType(LONG), [1, 0, -5]),
        (ArrayType(LONG), []),
        (ArrayType(LONG), None),
        (ArrayType(PAIR), [{"x": 0, "y": "a"}, None, {"x": None, "y": ""}]),
        (ArrayType(ArrayType(LONG)), [[0], None, []]),
        (MapType(STRING, LONG), [("k", 0), ("l", 7)]),
        (MapType(STRING, ArrayType(STRING)), [("k", ["a", ""]), ("l", None)]),
        (PAIR, {"x": 3, "y": "b"}),
        (PAIR, None),
        (VOID, None),
    ],
    ids=str,
)
@pytest.mark.parametrize("nullable", [True, False])
def test_rows(kind: DataType, value: Any, nullable: bool) -> None:
    schema = StructType((Field("first", kind, nullable=nullable), Field("rest", LONG, nullable=False)))
    row = {"first": value, "rest": 9}

    assert read(plain(schema, row), schema) == [row]


def test_another_branch_of_the_union_is_foreign() -> None:
    with raises_code(FormatError, "foreign"):
        read(number(2) + number(7), StructType((Field("a", LONG),)))


WRONG_IN_DUMP = {"join_v4_rocksdb": ("__event_time",)}
"""Spark 4.3.0 itself returns this column wrong: 12395 in place of 1704067269000000."""

DUMPS = [
    (version, case, key)
    for version, case in CASES
    for key, rows in (description(version, case).get("state_dump") or {}).items()
    if isinstance(rows, list)
]


def operators_of(version: str, case: str) -> dict[int, Operator]:
    checkpoint = opened(version, case)
    reader = OperatorReader(checkpoint.store, checkpoint.listing, checkpoint.inventory)
    found = {operator.id: operator for operator in reader.operators()}
    assert reader.damage == []
    return found


def choice_of(operator: Operator, options: str) -> StateChoice:
    """What the dump's key asks for: a store by name, or options of Spark's reader."""
    if not options.startswith("{"):
        return choose(operator, StateRequest(operator.id, store=options or "default"))
    asked: dict[str, Any] = ast.literal_eval(options)
    if "readRegisteredTimers" in asked:
        name = next(name for name in choices(operator) if name.endswith("_keyToTimestamp"))
        return choose(operator, StateRequest(operator.id, store=name))
    return choose(operator, StateRequest(operator.id, store=asked.get("stateVarName"), side=asked.get("joinSide")))


def read_values(version: str, case: str, choice: StateChoice) -> StateRows:
    checkpoint = opened(version, case)
    return StateReader(checkpoint.batch_state(checkpoint.logs.committed)).rows(choice)


@pytest.mark.parametrize(("version", "case", "key"), DUMPS, ids=["-".join(dump) for dump in DUMPS])
def test_rows_equal_the_dump(version: str, case: str, key: str) -> None:
    number, _, options = key.removeprefix("op=").partition(" ")
    operator = operators_of(version, case)[int(number)]
    rows = read_values(version, case, choice_of(operator, options.strip()))
    assert rows.damage == ()
    assert rows.undecoded is None
    ignore = (*WRONG_IN_DUMP.get(case, ()), "matched") if "joinSide" in key else ()
    found = as_multiset(rows.table.to_pylist(), ignore=ignore)
    assert found == as_multiset(description(version, case)["state_dump"][key], ignore=ignore)


def test_there_are_dumps_of_every_kind() -> None:
    assert {key.partition(" ")[2].strip()[:6] for _, _, key in DUMPS} >= {""}
    assert len(DUMPS) > 3


@pytest.mark.parametrize(("version", "case"), CASES, ids=["-".join(case) for case in CASES])
def test_every_kept_batch_of_every_store_is_decoded(version: str, case: str) -> None:
    checkpoint = opened(version, case)
    for operator in operators_of(version, case).values():
        for store in operator.stores:
            held = [
                item for op, _, name, item in checkpoint.inventory.each() if (op, name) == (operator.id, store.name)
            ]
            kept = frozenset.intersection(*(versions.loadable for versions in held))
            batches = [number - 1 for number in sorted(kept) if number - 1 in checkpoint.logs.commit_ids]
            for batch in batches[:1] + batches[-1:]:
                for family in store.families:
                    rows = StateReader(checkpoint.batch_state(batch)).rows(StateChoice(operator, store, family.name))
                    assert rows.damage == (), f"batch {batch}"
                    assert rows.undecoded is None, f"batch {batch}: {rows.undecoded}"


ENCODER = json.dumps({"keyStateEncoderType": "NoPrefixKeyStateEncoderSpec"})


def utf(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def big(text: str) -> bytes:
    return struct.pack(">i", 1) + utf(text)


def columns(names: str) -> str:
    fields = [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in names]
    return json.dumps({"type": "struct", "fields": fields})


def schema_file(families: Mapping[str, tuple[int, str]]) -> bytes:
    """Version 3: of each state variable the id of the schema of its values, and their columns."""
    made = [
        utf(name) + struct.pack(">h", 0) + big(columns("k")) + struct.pack(">h", number) + big(columns(names))
        + big(ENCODER) + big("{    }")
        for name, (number, names) in families.items()
    ]  # fmt: skip
    return utf("v3") + struct.pack(">i", len(made)) + b"".join(made)


def test_each_variable_counts_its_own_schemas(tmp_path: Path) -> None:
    """The second file is of a start that changed ``b``, the third of one that changed ``a``: its second schema."""
    folder = tmp_path / "state/0/_stateSchema/default"
    folder.mkdir(parents=True)
    (tmp_path / "state/0/0").mkdir()
    (tmp_path / "state/0/0/1.changelog").touch()
    for number, families in enumerate(
        [{"a": (0, "x"), "b": (0, "x")}, {"a": (0, "x"), "b": (1, "xy")}, {"a": (1, "xyz"), "b": (1, "xy")}]
    ):
        (folder / f"{number}_file").write_bytes(schema_file(families))
    store = LocalStore(tmp_path)
    listing = read_listing(store)

    [read] = OperatorReader(store, listing, read_inventory(listing)).operator(0).stores

    schemas = {
        name: {number: "".join(one.value.names) for number, one in schemas.items()}
        for name, schemas in read.value_schemas.items()
    }
    assert schemas == {"a": {0: "x", 1: "xyz"}, "b": {0: "x", 1: "xy"}}


PAIRS = {index.to_bytes(4, "big"): random.Random(index).randbytes(100 + index % 100) for index in range(20_000)}


@pytest.fixture(params=[20_000, 100, 0])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[dict[bytes, bytes], Path]:
    """Pairs, of which the most make tables of three megabytes, and a database that holds them."""
    pairs = dict(list(PAIRS.items())[: request.param])
    with Rdict(str(tmp_path / "database"), Options(raw_mode=True)) as opened:
        for key, value in pairs.items():
            opened[key] = value
        opened.flush()
    return pairs, tmp_path / "database"


def version_of(folder: Path) -> RocksDbVersion:
    tables = tuple(TableFile(path.name, path.name, path.stat().st_size) for path in sorted(folder.glob("*.sst")))
    small = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".sst" and path.is_file()}
    return RocksDbVersion(tables, None, files=small)


def test_every_pair_is_read(database: tuple[dict[bytes, bytes], Path]) -> None:
    pairs, folder = database
    records = read_tables(version_of(folder), lambda table: folder / table.stored_name)
    assert {records.key(index): records.value(index) for index in range(len(records))} == pairs
    assert len(records) == len(pairs)


@pytest.mark.parametrize("database", [20_000], indirect=True)
@pytest.mark.parametrize("place", [0.01, 0.5, 0.9])
def test_damage_is_found(database: tuple[dict[bytes, bytes], Path], place: float) -> None:
    _, folder = database
    version = version_of(folder)
    damaged = {table.stored_name: bytearray((folder / table.stored_name).read_bytes()) for table in version.tables}
    data = max(damaged.values(), key=len)
    data[int(len(data) * place)] ^= 1
    with raises_code(FormatError, "torn", match="RocksDB cannot read"):
        read_tables(version, lambda table: bytes(damaged[table.stored_name]))


def test_a_scan_that_does_not_come_to_its_end_is_none(tmp_path: Path) -> None:
    whole = tmp_path / "frames"
    with whole.open("wb") as stream:
        rocksdb_scan.write_frames([(b"1234", b"ab"), (b"5678", b"c")], stream)
    with whole.open("rb") as stream:
        assert list(rocksdb_scan.read_frames(stream)) == [(b"1234", b"ab"), (b"5678", b"c")]
    data = whole.read_bytes()
    for size in range(len(data)):
        whole.write_bytes(data[:size])
        with whole.open("rb") as stream, pytest.raises(EOFError):
            list(rocksdb_scan.read_frames(stream))
