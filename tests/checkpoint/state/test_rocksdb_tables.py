"""Large tables are scanned in a process of their own: the same pairs, and damage found all the same."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from rocksdict import Options, Rdict

from slackwater.checkpoint.state import rocksdb_scan
from slackwater.checkpoint.state.loader import read_tables
from slackwater.core.errors import FormatError
from slackwater.formats.rocksdb_zip import RocksDbVersion, TableFile
from tests.support.errors import raises_code

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
