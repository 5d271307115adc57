"""Checksums next to a file: Hadoop's ``.N.crc`` (local disks, any file) and Spark's ``N.crc`` (state files, 4.1+)."""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

import google_crc32c
import numpy as np
import numpy.typing as npt

from slackwater.core.errors import FormatError
from slackwater.formats.byte_view import ByteView, Positions
from slackwater.formats.state_records import DELETED, Records
from slackwater.formats.text_log import decode_text, integer_field, parse_object, text_field

_POLYNOMIAL = 0x82F63B78
_ONES = np.uint32(0xFFFFFFFF)
_LOW_BYTE = np.uint32(0xFF)
_EIGHT = np.uint32(8)

Words = npt.NDArray[np.uint32]
Bytes = npt.NDArray[np.uint8]


def _byte_table() -> Words:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> np.uint32(1)) ^ np.uint32(_POLYNOMIAL), table >> np.uint32(1))
    return table


_TABLE = _byte_table()


def crc32c(data: bytes) -> int:
    """The checksum of ``data``, unsigned."""
    checksum: int = google_crc32c.value(data)
    return checksum


def crc32c_rows(
    data: Bytes, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], before: Words | None = None
) -> Words:
    """The checksum of each piece ``data[start : start + length]``, all advanced byte by byte together.

    ``before`` are the checksums of what precedes each piece without being next to it.
    """
    # Longest first, so that the pieces with bytes left are always the first ones.
    order = np.argsort(-lengths, kind="stable")
    sorted_starts, sorted_lengths = starts[order], lengths[order]
    # A finished checksum is inverted; inverting it again continues it.
    crc = np.full(len(starts), _ONES, np.uint32) if before is None else before[order] ^ _ONES
    alive = len(starts)
    for place in range(int(sorted_lengths[0]) if alive else 0):
        while alive and sorted_lengths[alive - 1] <= place:
            alive -= 1
        column = data[sorted_starts[:alive] + place]
        crc[:alive] = (crc[:alive] >> _EIGHT) ^ _TABLE[(crc[:alive] ^ column) & _LOW_BYTE]
    checksums = np.empty_like(crc)
    checksums[order] = crc ^ _ONES
    return checksums


CHECKSUM_BYTES = 4


def without_delete_checksums(records: Records) -> Records:
    """The records with deleted keys as they were put, without their sum. Raises ``FormatError`` where it is wrong."""
    deletes = records.value_lengths == DELETED
    if not deletes.any():
        return records
    if (records.key_lengths[deletes] < CHECKSUM_BYTES).any():
        raise FormatError("torn", "a deleted key without a checksum", expected="4 bytes", found="fewer")
    cut = np.where(deletes, CHECKSUM_BYTES, 0)
    plain = Records(
        records.view,
        records.key_starts + cut,
        records.key_lengths - cut,
        records.value_starts,
        records.value_lengths,
        records.merges,
    )
    deleted = plain.take(deletes)
    found = crc32c_rows(records.view.bytes, deleted.key_starts, deleted.key_lengths)
    expected = records.view.integers(deleted.key_starts - CHECKSUM_BYTES, "<u4")
    require_equal(found.astype(np.int64), expected, "deleted keys")
    return plain


def require_row_checksums(
    view: ByteView,
    keys: tuple[Positions, Positions],
    values: tuple[Positions, Positions],
    expected: Positions,
) -> None:
    """Each sum covers the key as it is stored and then the value. Raises ``FormatError`` (``checksum``)."""
    of_keys = crc32c_rows(view.bytes, *keys)
    require_equal(crc32c_rows(view.bytes, *values, of_keys).astype(np.int64), expected, "rows")


def require_equal(found: Positions, expected: Positions, what: str) -> None:
    """Raise ``FormatError`` (``checksum``) where a sum differs."""
    wrong = int((found != expected).sum())
    if wrong:
        raise FormatError(
            "checksum",
            f"{what} differ from their checksums",
            expected="equal sums",
            found=f"{wrong} of {len(found)} {what}",
        )


_HADOOP_MAGIC = b"crc\0"
_HEADER_BYTES = 8
_SUM_BYTES = 4
_WORD = 1 << 32


class SparkChecksum(NamedTuple):
    """``{"algorithm":"CRC32C","value":...,"mainFileSize":...}``; ``value`` is made unsigned."""

    algorithm: str
    value: int
    size: int


def parse_spark_checksum(data: bytes) -> SparkChecksum:
    """Spark's side file. Raises ``FormatError``."""
    if not data:
        raise FormatError("empty", "the file has no bytes", expected='{"algorithm":...}', found="0 bytes")
    what = "the checksum"
    record = parse_object(decode_text(data), what)
    return SparkChecksum(
        text_field(record, "algorithm", what),
        integer_field(record, "value", what) % _WORD,
        integer_field(record, "mainFileSize", what),
    )


def hadoop_mismatch(data: bytes, checksums: bytes) -> str | None:
    """What differs between a file and its ``.crc``, or ``None`` where all agrees (``ChecksumFileSystem``).

    The side file holds a CRC-32 for each piece of, by default, 512 bytes. Raises ``FormatError`` where it is none.
    """
    if len(checksums) < _HEADER_BYTES or not checksums.startswith(_HADOOP_MAGIC):
        raise FormatError("foreign", "not a checksum file of Hadoop", expected="crc", found=repr(checksums[:8]))
    piece = struct.unpack_from(">i", checksums, len(_HADOOP_MAGIC))[0]
    if piece <= 0:
        raise FormatError("foreign", "not a checksum file of Hadoop", expected="a piece size", found=str(piece))
    pieces = -(-len(data) // piece)
    recorded = (len(checksums) - _HEADER_BYTES) // _SUM_BYTES
    if recorded != pieces or (len(checksums) - _HEADER_BYTES) % _SUM_BYTES:
        return f"{len(data)} bytes, the side file covers {recorded} pieces of {piece}"
    sums = struct.unpack_from(f">{pieces}I", checksums, _HEADER_BYTES)
    view = memoryview(data)
    for index, expected in enumerate(sums):
        if zlib.crc32(view[index * piece : (index + 1) * piece]) != expected:
            return f"the bytes from {index * piece} differ"
    return None
