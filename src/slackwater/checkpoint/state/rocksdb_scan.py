"""Scans a RocksDB database, in this process or as a script.

A scan holds Python's lock throughout, so only another process runs beside it. The script imports only the standard
library and ``rocksdict``, and starts in 20 ms.
"""

import struct
import sys
from array import array
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import IO, cast

from rocksdict import AccessType, Options, Rdict

_PIECES_AT_A_TIME = 4096
_HEAD = struct.Struct("<qq")
Frame = tuple[bytes, bytes]
"""Lengths of key and value in turn, as native 32-bit numbers; and the joined bytes."""


def scan(directory: str) -> Iterator[Frame]:
    """All pairs in key order. Raises RocksDB's plain ``Exception``."""
    options = Options(raw_mode=True)
    options.create_if_missing(False)
    database = Rdict(directory, options, access_type=AccessType.read_only())
    try:
        pieces = cast("Iterator[bytes]", chain.from_iterable(database.items()))
        last = None
        # No Python code runs for a pair, only for many, and few enough that their memory is used again from the cache.
        while some := list(islice(pieces, _PIECES_AT_A_TIME)):
            yield array("i", map(len, some)).tobytes(), b"".join(some)
            last = some[-2]
        # `items` stops at a damaged block silently: the cursor has the error that ended the scan.
        cursor = database.iter()
        if last is None:
            cursor.seek_to_first()
        else:
            cursor.seek(last)
            cursor.next()
        cursor.status()
        if cursor.valid():
            raise ValueError("the scan ended early")
    finally:
        database.close()


def write_frames(frames: Iterable[Frame], stream: IO[bytes]) -> None:
    """An empty frame at the end marks success."""
    for lengths, data in frames:
        stream.write(_HEAD.pack(len(lengths), len(data)))
        stream.write(lengths)
        stream.write(data)
    stream.write(_HEAD.pack(0, 0))
    stream.flush()


def read_frames(stream: IO[bytes]) -> Iterator[Frame]:
    """Raises ``EOFError`` for frames without an end."""
    while True:
        of_lengths, of_data = _HEAD.unpack(_read(stream, _HEAD.size))
        if not of_lengths:
            return
        yield _read(stream, of_lengths), _read(stream, of_data)


def _read(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise EOFError("the other process ended early")
    return data


if __name__ == "__main__":
    write_frames(scan(sys.argv[1]), sys.stdout.buffer)
