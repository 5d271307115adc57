"""The key-value pairs of one whole RocksDB version, read by RocksDB itself through ``rocksdict``.

The small files of the zip and the SSTs are put together in a temporary directory under the names RocksDB gave them;
SSTs on this machine are linked, not copied. Nothing of the checkpoint is opened for writing.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, cast

import numpy as np
from rocksdict import AccessType, Options, Rdict

from slackwater.errors import FormatError
from slackwater.formats.rocksdb_zip import RocksDbVersion, TableFile
from slackwater.formats.state_records import Records, records_of_alternating, records_of_pairs

_PIECES_AT_A_TIME = 4096
FetchTable = Callable[[TableFile], "Path | bytes"]
"""Gives an SST: its absolute path where it lies on this machine, else its bytes."""


def read_tables(version: RocksDbVersion, fetch: FetchTable) -> Records:
    """Every pair, in the order of the keys. Merge operands come joined with a comma. Raises ``FormatError``."""
    if not version.tables:
        return records_of_pairs([], [])
    with tempfile.TemporaryDirectory(prefix="slackwater-") as folder:
        directory = Path(folder)
        _lay_out(directory, version, fetch)
        return _scan(directory)


def _lay_out(directory: Path, version: RocksDbVersion, fetch: FetchTable) -> None:
    for name, data in version.files.items():
        if "/" in name or name in {"", ".", ".."}:
            raise FormatError("foreign", "a path inside the zip", expected="file names", found=name)
        # The write-ahead log is off in Spark; its empty file would only be replayed.
        if not name.endswith(".log"):
            (directory / name).write_bytes(data)
    for table in version.tables:
        fetched = fetch(table)
        target = directory / table.local_name
        if isinstance(fetched, Path):
            target.symlink_to(fetched)
        else:
            target.write_bytes(fetched)


def _scan(directory: Path) -> Records:
    options = Options(raw_mode=True)
    options.create_if_missing(False)
    # rocksdict raises plain `Exception` for whatever RocksDB reports: corruption, a missing table, unknown options.
    try:
        database = Rdict(str(directory), options, access_type=AccessType.read_only())
        try:
            return _copy_pairs(database)
        finally:
            database.close()
    except Exception as error:
        raise FormatError(
            "torn", "RocksDB cannot read the version", expected="sound tables", found=str(error)
        ) from error


def _copy_pairs(database: Rdict) -> Records:
    """Every key and value, one after the other in one buffer. No Python code runs for a pair, only for many of them."""
    pieces = cast("Iterator[bytes]", chain.from_iterable(database.items()))
    copied = io.BytesIO()
    lengths = [np.empty(0, np.int64)]
    last = None
    # Few enough at a time that their memory is used again from the processor's cache.
    while some := list(islice(pieces, _PIECES_AT_A_TIME)):
        copied.writelines(some)
        lengths.append(np.fromiter(map(len, some), np.int64, len(some)))
        last = some[-2]
    _require_end(database, last)
    return records_of_alternating(copied.getvalue(), np.concatenate(lengths))


def _require_end(database: Rdict, last: Any) -> None:
    """Raise what made the scan end, unless it was the end: ``items`` stops at a damaged block without a word."""
    cursor = database.iter()
    if last is None:
        cursor.seek_to_first()
    else:
        cursor.seek(last)
        cursor.next()
    cursor.status()
    if cursor.valid():
        raise FormatError("torn", "the scan ended early", expected="the last key", found="a later one")
