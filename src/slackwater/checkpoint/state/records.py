"""Key-value records of state files: ``V.delta`` and ``V.snapshot``, and the changelogs without column families.

    i32 key length, key, i32 value length, value    put       (all big-endian)
    i32 key length, key, i32 -1                     delete
    i32 -1                                          end of the file

Records are kept as positions in the bytes, never as objects of their own: a state may have millions.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from slackwater.core.errors import FormatError

Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_WIDE = 8
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
        if width == _WIDE and len(positions) > _MANY:
            residue = int(positions[0]) % _WIDE
            if not ((positions - residue) & (_WIDE - 1)).any():
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
            count = (len(self.bytes) - residue) // _WIDE
            held = self.bytes[residue : residue + count * _WIDE]
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


DELETED = -1
_END = -1
_WORD = 4
_SHORTEST_RUN = 16
_RECORDS_BETWEEN_TRIES = 256
_FIRST_TRY = 64
_MANY_RECORDS, _SMALLEST_RECORD = 1 << 20, 16
AT_A_TIME = 1 << 16
"""Records processed together: they and intermediate values stay in the processor's cache."""


@dataclass(frozen=True, slots=True)
class Records:
    """Puts and deletes in order; ``value_lengths`` is -1 for a delete, ``merges`` marks appends."""

    view: ByteView
    key_starts: Positions
    key_lengths: Positions
    value_starts: Positions
    value_lengths: Positions
    merges: Flags | None = None

    def __len__(self) -> int:
        return len(self.key_starts)

    def take(self, chosen: Positions | Flags | slice) -> Records:
        return Records(
            self.view,
            self.key_starts[chosen],
            self.key_lengths[chosen],
            self.value_starts[chosen],
            self.value_lengths[chosen],
            None if self.merges is None else self.merges[chosen],
        )

    def key(self, index: int) -> bytes:
        start = int(self.key_starts[index])
        return self.view.slice(start, start + int(self.key_lengths[index]))

    def operation(self, index: int) -> Literal["put", "merge", "delete"]:
        if int(self.value_lengths[index]) == DELETED:
            return "delete"
        return "merge" if self.merges is not None and bool(self.merges[index]) else "put"

    def value(self, index: int) -> bytes:
        start = int(self.value_starts[index])
        return self.view.slice(start, start + max(0, int(self.value_lengths[index])))


def records_of_pairs(keys: Sequence[bytes], values: Sequence[bytes]) -> Records:
    """Puts of keys and values, which are copied together."""
    key_lengths = np.fromiter(map(len, keys), np.int64, len(keys))
    value_lengths = np.fromiter(map(len, values), np.int64, len(values))
    value_starts = key_lengths.sum() + np.cumsum(value_lengths) - value_lengths
    key_starts = np.cumsum(key_lengths) - key_lengths
    return Records(ByteView.of(b"".join([*keys, *values])), key_starts, key_lengths, value_starts, value_lengths)


def records_of_alternating(view: ByteView, lengths: Positions) -> Records:
    starts = np.cumsum(lengths) - lengths
    return Records(view, starts[0::2], lengths[0::2], starts[1::2], lengths[1::2])


def walk_records(view: ByteView, start: int = 0) -> Records:
    """Raises ``FormatError`` (``torn``) for a wrong end."""
    # Rows of HDFS-backed stores are multiples of 8 bytes long; those of RocksDB have a version byte in front and are
    # not.
    if start % _WORD == 0 and view.length % _WORD == 0:
        aligned = _Walk(view, start).run()
        if aligned is not None:
            return aligned
    read = struct.Struct(">i").unpack_from
    data = view.content.data
    found = RecordPositions()
    position = start
    try:
        while (key := read(data, position)[0]) != _END:
            key_start = position + _WORD
            value = read(data, key_start + key)[0] if key >= 0 else _END
            if key < 0 or value < DELETED:
                raise torn_records(position)
            value_start = key_start + key + _WORD
            position = value_start + max(0, value)
            found.add((key_start, key, value_start, value))
    except struct.error as error:
        raise torn_records(position) from error
    if position + _WORD != len(data):
        raise torn_records(position)
    return found.records(view)


class RecordPositions:
    """Positions as columns of numbers: Python tuples would take six times the memory. Raises ``FormatError`` (``torn``)
    for many records smaller than Spark writes.
    """

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, int, int]] = []
        self._pieces: list[tuple[Positions, ...]] = []
        self._count = 0

    def add(self, row: tuple[int, int, int, int]) -> None:
        """Add a record: key start, key length, value start, value length."""
        self._rows.append(row)
        if len(self._rows) == AT_A_TIME:
            self._flush()

    def add_all(self, columns: tuple[Positions, ...]) -> None:
        self._flush()
        self._keep(columns)

    def records(self, view: ByteView, merges: Flags | None = None) -> Records:
        self._flush()
        if not self._pieces:
            empty = np.empty(0, np.int64)
            return Records(view, empty, empty, empty, empty, merges)
        key_starts, key_lengths, value_starts, value_lengths = map(np.concatenate, zip(*self._pieces, strict=True))
        return Records(view, key_starts, key_lengths, value_starts, value_lengths, merges)

    def _flush(self) -> None:
        if self._rows:
            self._keep(tuple(np.array(self._rows, dtype=np.int64).T))
            self._rows = []

    def _keep(self, columns: tuple[Positions, ...]) -> None:
        self._pieces.append(columns)
        self._count += len(columns[0])
        end = int(columns[0][-1])
        if self._count > _MANY_RECORDS and end < _SMALLEST_RECORD * self._count:
            raise torn_records(end)


def torn_records(position: int) -> FormatError:
    return FormatError(
        "torn", "the records do not end as they must", expected="records, then -1 at the end", found=f"byte {position}"
    )


class _BigEndian:
    def __init__(self, view: ByteView) -> None:
        self._data = view.content.data

    def __getitem__(self, position: int) -> int:
        return int(struct.unpack_from(">i", self._data, position * _WORD)[0])


class _Walk:
    """Walks lengths that are multiples of 4, as with plain UnsafeRows: runs of equal records at once."""

    def __init__(self, view: ByteView, start: int) -> None:
        self._view = view
        self._words = view.content.view(">i4")
        self._numbers: memoryview | _BigEndian = _BigEndian(view)
        self._position = start // _WORD
        self._found = RecordPositions()
        self._until_next_try = 0

    def run(self) -> Records | None:
        """``None`` if a length is no multiple of 4."""
        last = len(self._words) - 1
        while True:
            position = self._position
            if position > last:
                raise torn_records(position * _WORD)
            numbers = self._numbers
            key = numbers[position]
            if key == _END:
                break
            value_at = position + 1 + (key >> 2)
            if key < 0 or value_at > last:
                raise torn_records(position * _WORD)
            value = numbers[value_at]
            if value < DELETED:
                raise torn_records(position * _WORD)
            if key % _WORD or (value > 0 and value % _WORD):
                return None
            self._take(position, key, value)
        if self._position != last:
            raise torn_records(self._position * _WORD)
        return self._found.records(self._view)

    def _take(self, position: int, key: int, value: int) -> None:
        stride = 2 + (key >> 2) + (max(value, 0) >> 2)
        if self._until_next_try:
            self._until_next_try -= 1
        else:
            count = self._run_length(position, key, value, stride)
            if count >= _SHORTEST_RUN:
                end = position + stride * count
                starts = np.arange(position * _WORD, end * _WORD, stride * _WORD, dtype=np.int64)
                keys, values = np.full(count, key, np.int64), np.full(count, value, np.int64)
                self._found.add_all((starts + _WORD, keys, starts + (2 * _WORD + key), values))
                self._position = end
                return
            self._until_next_try = _RECORDS_BETWEEN_TRIES
            if isinstance(self._numbers, _BigEndian):
                # Worth its time and memory only if many records are read one by one.
                self._numbers = self._words.astype(np.int32).data
        start = position * _WORD
        self._found.add((start + _WORD, key, start + 2 * _WORD + key, value))
        self._position = position + stride

    def _run_length(self, position: int, key: int, value: int, stride: int) -> int:
        most = (len(self._words) - position) // stride
        # Compared in steps that grow: a short run costs little, a long one few calls of numpy.
        heads = self._words[position::stride]
        tails = self._words[position + 1 + (key >> 2) :: stride]
        counted, width = 0, _FIRST_TRY
        while counted < most:
            end = min(counted + width, most)
            same = (heads[counted:end] == key) & (tails[counted:end] == value)
            if not same.all():
                return counted + int(np.argmin(same))
            counted, width = end, width * 8
        return most


def join_records(parts: Sequence[Records]) -> Records:
    """Joins the records of several files, oldest first."""
    if len(parts) == 1:
        return parts[0]
    bases = np.cumsum([0, *(part.view.length for part in parts)])
    moved = list(zip(parts, bases.tolist(), strict=False))
    empty = np.empty(0, np.int64)
    return Records(
        ByteView.joined((part.view.content for part in parts), int(bases[-1])),
        np.concatenate([empty, *(part.key_starts + base for part, base in moved)]),
        np.concatenate([empty, *(part.key_lengths for part in parts)]),
        np.concatenate([empty, *(part.value_starts + base for part, base in moved)]),
        np.concatenate([empty, *(part.value_lengths for part in parts)]),
        np.concatenate([np.zeros(len(part), np.bool_) if part.merges is None else part.merges for part in parts])
        if any(part.merges is not None for part in parts)
        else None,
    )


def last_writes(records: Records) -> Records:
    """The last put of each key that was not deleted."""
    if records.merges is not None and records.merges.any():
        return apply_merges(records)
    hashes = np.empty(len(records), np.uint64)
    for start in range(0, len(records), AT_A_TIME):
        some = slice(start, start + AT_A_TIME)
        _hash_keys(records.view, records.key_starts[some], records.key_lengths[some], hashes[some])
    # A sort: numpy's own `unique` builds a hash table, which takes ten times as long for a million rows.
    ordered = np.sort(hashes)
    if (ordered[1:] == ordered[:-1]).any():
        order = np.argsort(hashes, kind="stable")
        same_as_next = hashes[order][1:] == hashes[order][:-1]
        shared = np.zeros(len(records), np.bool_)
        shared[order[1:]] |= same_as_next
        shared[order[:-1]] |= same_as_next
        # Equal hashes are equal keys only nearly always, so the keys themselves decide.
        newest = {records.key(index): index for index in np.flatnonzero(shared).tolist()}
        kept = np.concatenate([np.flatnonzero(~shared), np.array(list(newest.values()), np.int64)])
        records = records.take(np.sort(kept))
    live = records.value_lengths != DELETED
    return records if live.all() else records.take(live)


def apply_merges(records: Records) -> Records:
    """Works as ``last_writes``, with records that append to a value (RocksDB's merge, without a delimiter)."""
    state: dict[bytes, bytes] = {}
    merges = records.merges.tolist() if records.merges is not None else [False] * len(records)
    for index, (length, appends) in enumerate(zip(records.value_lengths.tolist(), merges, strict=True)):
        key = records.key(index)
        if length == DELETED:
            state.pop(key, None)
        elif appends:
            # Joined without Spark's delimiter: `split_values` finds the elements by their lengths.
            state[key] = state.get(key, b"") + records.value(index)
        else:
            state[key] = records.value(index)
    return records_of_pairs(list(state), list(state.values()))


def _hash_keys(view: ByteView, starts: Positions, lengths: Positions, hashes: npt.NDArray[np.uint64]) -> None:
    # A sort: numpy's own `unique` builds a hash table, which takes longer.
    ordered = np.sort(lengths)
    for length in ordered[np.flatnonzero(np.diff(ordered, prepend=-1))].tolist():
        members = np.flatnonzero(lengths == length)
        at = starts[members]
        mixed = np.full(len(members), length, np.uint64)
        # The last word overlaps the one before where the length is no multiple of 8.
        places = [*range(0, length - 7, 8), length - 8] if length >= 8 else list(range(length))  # noqa: PLR2004
        for place in dict.fromkeys(places):
            kind = "<u8" if length >= 8 else "<u1"  # noqa: PLR2004
            mixed = mixed ^ view.read(at + place, kind).astype(np.uint64, copy=False)
            # 2**64 divided by the golden ratio: the product spreads keys that differ in few bits.
            mixed *= np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
        hashes[members] = mixed
