"""CRC-32C (Castagnoli): of a large file by a library, of many short state rows by numpy.

Spark 4.2 and later put a checksum before each value or deleted key (``stateStore.rowChecksum.enabled``). The standard
library's CRC-32 has a different polynomial.
"""

from __future__ import annotations

import google_crc32c
import numpy as np
import numpy.typing as npt

from slackwater.core.errors import FormatError
from slackwater.formats.byte_view import ByteView, Positions
from slackwater.formats.state_records import DELETED, Records

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
    checksum: int = google_crc32c.value(data)
    return checksum


def crc32c_rows(
    data: Bytes, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], before: Words | None = None
) -> Words:
    """Checksums of ``data[start : start + length]``, advanced together byte by byte.

    ``before`` are checksums of bytes that precede the pieces elsewhere.
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
    """Deleted keys without their checksum. Raises ``FormatError`` if it is wrong."""
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
    """A sum covers the stored key and then the value. Raises ``FormatError`` (``checksum``)."""
    of_keys = crc32c_rows(view.bytes, *keys)
    require_equal(crc32c_rows(view.bytes, *values, of_keys).astype(np.int64), expected, "rows")


def require_equal(found: Positions, expected: Positions, what: str) -> None:
    wrong = int((found != expected).sum())
    if wrong:
        raise FormatError(
            "checksum",
            f"{what} differ from their checksums",
            expected="equal sums",
            found=f"{wrong} of {len(found)} {what}",
        )
