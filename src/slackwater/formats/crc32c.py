"""CRC-32C (Castagnoli): of one large file by a library, and of many short rows at once with numpy.

The standard library has only CRC-32 with another polynomial. A call of the library for each of a million rows would
take as long as all the rest.
"""

from __future__ import annotations

import google_crc32c
import numpy as np
import numpy.typing as npt

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

    ``before`` are the checkchecksums of what precedes each piece without being next to it.
    """
    order = np.argsort(-lengths, kind="stable")
    sorted_starts, sorted_lengths = starts[order], lengths[order]
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
