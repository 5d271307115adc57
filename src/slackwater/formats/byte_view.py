"""Reads many numbers at any byte of a buffer: state rows have no alignment."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from slackwater.core.errors import FormatError

Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_WORD = 8
_MANY = 1000
PADDING = 16
"""Bytes at the end, so that the last field can be read as a wider number."""


class ByteView:
    """Bounded bytes. ``require`` checks positions once, not at each read."""

    def __init__(self, padded: Bytes) -> None:
        """Does not copy; the last ``PADDING`` bytes do not count."""
        self.bytes = padded
        self.length = len(padded) - PADDING
        self._aligned: dict[int, npt.NDArray[np.int64]] = {}

    @classmethod
    def of(cls, data: bytes) -> ByteView:
        return cls.joined([data], len(data))

    @classmethod
    def joined(cls, pieces: Iterable[bytes | Bytes], expected: int) -> ByteView:
        """Joins the pieces, copied as they come; ``expected`` is their size at most."""
        # One large piece of memory: numpy asks the system for large pages, and small ones cost more than the copy.
        padded = np.empty(expected + PADDING, np.uint8)
        end = 0
        for piece in pieces:
            start, end = end, end + len(piece)
            if end + PADDING > len(padded):
                larger = np.empty(2 * end + PADDING, np.uint8)
                larger[:start] = padded[:start]
                padded = larger
            padded[start:end] = np.frombuffer(piece, np.uint8)
        # A wide read of the last field reaches into the padding, which must not hold what the memory held before.
        padded[end : end + PADDING] = 0
        return cls(padded[: end + PADDING])

    @property
    def content(self) -> Bytes:
        return self.bytes[: self.length]

    def require(self, starts: Positions, ends: Positions, limit: Positions | int, what: str) -> None:
        """Raise ``FormatError`` (``torn``) unless all pieces are within bytes and limits."""
        bad = (starts < 0) | (ends < starts) | (ends > limit) | (ends > self.length)
        if bad.any():
            first = int(np.argmax(bad))
            found = f"bytes {starts[first]} to {ends[first]} of {self.length}"
            raise FormatError("torn", f"{what} leads out of its row", expected="a place inside the row", found=found)

    def read(self, positions: Positions, kind: str) -> npt.NDArray[np.generic]:
        width = np.dtype(kind).itemsize
        if len(positions) > _MANY and (runs := _runs(positions)) is not None:
            return self._read_runs(positions, runs, kind)
        if width == _WORD and len(positions) > _MANY:
            residue = int(positions[0]) % _WORD
            if not ((positions - residue) & (_WORD - 1)).any():
                words: npt.NDArray[np.generic] = self._words(residue)[(positions - residue) >> 3].view(kind)
                return words
        overlapping: npt.NDArray[np.generic] = np.ndarray(
            (len(self.bytes) - width + 1,), kind, self.bytes.data, strides=(1,)
        )
        return overlapping[positions]

    def _read_runs(self, positions: Positions, bounds: list[int], kind: str) -> npt.NDArray[np.generic]:
        """Evenly spaced positions: a stride is read faster than a list."""
        numbers: npt.NDArray[np.generic] = np.empty(len(positions), kind)
        for first, end in pairwise(bounds):
            start, last = int(positions[first]), int(positions[end - 1])
            if min(start, last) < 0 or max(start, last) + numbers.itemsize > len(self.bytes):
                raise IndexError(f"bytes {start} to {last} of {self.length}")
            stride = (last - start) // max(1, end - first - 1)
            numbers[first:end] = np.ndarray((end - first,), kind, self.bytes.data, start, (stride,))
        return numbers

    def _words(self, residue: int) -> npt.NDArray[np.int64]:
        """Aligned words from ``residue`` on: numpy gathers unaligned words several times slower."""
        words = self._aligned.get(residue)
        if words is None:
            count = (len(self.bytes) - residue) // _WORD
            held = self.bytes[residue : residue + count * _WORD]
            words = (held if residue == 0 else held.copy()).view(np.int64)
            self._aligned[residue] = words
        return words

    def integers(self, positions: Positions, kind: str = "<i8") -> Positions:
        return self.read(positions, kind).astype(np.int64, copy=False)

    def slice(self, start: int, end: int) -> bytes:
        return self.bytes[start:end].tobytes()


def _runs(positions: Positions) -> list[int] | None:
    steps = np.diff(positions)
    turns = np.flatnonzero(steps[1:] != steps[:-1])
    if len(turns) * _MANY > len(positions):
        return None
    # The position between two steps that differ ends a run; where runs meet, one of two positions is a run of its own.
    return [0, *(turns + 1).tolist(), len(positions)]
