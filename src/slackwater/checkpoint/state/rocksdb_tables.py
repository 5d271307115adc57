"""Reads a whole RocksDB version by RocksDB itself, through ``rocksdict``.

A temporary directory has the zip's small files and the SSTs under RocksDB's names; local SSTs are linked, not copied.
Nothing of the checkpoint is opened for writing.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE

import numpy as np

from slackwater.checkpoint.state import rocksdb_scan
from slackwater.checkpoint.state.rocksdb_scan import Frame, read_frames, scan
from slackwater.core.errors import FormatError
from slackwater.formats.byte_view import ByteView
from slackwater.formats.frames import Budget
from slackwater.formats.rocksdb_zip import RocksDbVersion, TableFile
from slackwater.formats.state_records import Records, records_of_alternating, records_of_pairs

_WORTH_A_PROCESS = 1 << 20
"""Bytes of tables: fewer are scanned in about the time that a process takes to start."""
_PIPE_BYTES = 1 << 20
_USUAL_RATIO = 8
"""Pairs are mostly at most so much larger than tables; unwritten memory costs nothing."""
FetchTable = Callable[[TableFile], "Path | bytes"]
"""An SST's absolute path if it is local, else its bytes."""


def read_tables(version: RocksDbVersion, fetch: FetchTable, budget: Budget | None = None) -> Records:
    """All pairs in key order. Merge operands come joined with a comma.

    Raises ``FormatError``; ``too-large`` above the budget.
    """
    if not version.tables:
        return records_of_pairs([], [])
    with tempfile.TemporaryDirectory(prefix="slackwater-") as folder:
        directory = Path(folder)
        _lay_out(directory, version, fetch)
        return _scan(folder, sum(table.size for table in version.tables), budget or Budget())


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


def _scan(directory: str, size: int, budget: Budget) -> Records:
    if size >= _WORTH_A_PROCESS:
        # Whatever went wrong there is met again here, and here it has a name.
        with suppress(OSError, EOFError):
            return _collect(_scan_elsewhere(directory), size, budget)
    # rocksdict raises plain `Exception` for whatever RocksDB reports: corruption, a missing table, unknown options.
    try:
        return _collect(scan(directory), size, budget)
    except FormatError:
        raise
    except Exception as error:
        raise FormatError(
            "torn", "RocksDB cannot read the version", expected="sound tables", found=str(error)
        ) from error


def _scan_elsewhere(directory: str) -> Iterator[Frame]:
    # Without -P the folder of the script would be first in `sys.path`, and its modules would hide others of their
    # names.
    command = [sys.executable, "-P", rocksdb_scan.__file__, directory]
    with subprocess.Popen(command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, pipesize=_PIPE_BYTES) as process:
        try:
            if process.stdout is not None:
                yield from read_frames(process.stdout)
        finally:
            # All output is written, or the reader has exited: an orderly shutdown would take 10 ms.
            process.kill()


def _collect(frames: Iterable[Frame], size: int, budget: Budget) -> Records:
    lengths = [np.empty(0, np.int32)]
    most = budget.most(size)

    def pieces() -> Iterator[bytes]:
        total = 0
        for of_some, data in frames:
            total += len(data)
            if total > most:
                raise budget.exceeded("more", size)
            lengths.append(np.frombuffer(of_some, np.int32))
            yield data

    view = ByteView.joined(pieces(), min(_USUAL_RATIO * size, most))
    budget.take(view.length, size)
    return records_of_alternating(view, np.concatenate(lengths).astype(np.int64))
