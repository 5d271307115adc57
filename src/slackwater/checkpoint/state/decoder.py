"""Decodes loaded pairs to Arrow columns ``key`` and ``value``, by family.

Undecodable rows stay bytes with the reason. Spark 4.2 and later put a CRC-32C before each value or deleted key
(``stateStore.rowChecksum.enabled``), which is computed for many rows at once.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.checkpoint.state.records import AT_A_TIME, DELETED, Positions, Records
from slackwater.checkpoint.state.rows import Spans, avro_rows, bare_rows, read_keys, split_values, versioned_rows
from slackwater.checkpoint.state.unsafe_row import read_bytes, whole_rows
from slackwater.core.errors import FormatError
from slackwater.core.state import ColumnFamily, OperatorStore

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


def crc32c_rows(
    data: Bytes, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], before: Words | None = None
) -> Words:
    """Checksums of ``data[start : start + length]``, advanced together byte by byte. ``before`` are checksums of bytes
    that precede the pieces elsewhere.
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
    plain = replace(records, key_starts=records.key_starts + cut, key_lengths=records.key_lengths - cut)
    deleted = plain.take(deletes)
    found = crc32c_rows(records.view.bytes, deleted.key_starts, deleted.key_lengths)
    expected = records.view.integers(deleted.key_starts - CHECKSUM_BYTES, "<u4")
    require_equal(found.astype(np.int64), expected, "deleted keys")
    return plain


def require_row_checksums(keys: Spans, values: Spans, expected: Positions) -> None:
    """A sum covers the stored key and then the value. Raises ``FormatError`` (``checksum``)."""
    of_keys = crc32c_rows(keys.view.bytes, keys.starts, keys.lengths)
    found = crc32c_rows(keys.view.bytes, values.starts, values.lengths, of_keys)
    require_equal(found.astype(np.int64), expected, "rows")


def require_equal(found: Positions, expected: Positions, what: str) -> None:
    wrong = int((found != expected).sum())
    if wrong:
        raise FormatError(
            "checksum",
            f"{what} differ from their checksums",
            expected="equal sums",
            found=f"{wrong} of {len(found)} {what}",
        )


_FAMILY_BYTES = 2
_ROW_ALIGNMENT = 8
_UNKNOWN_ENCODING = "no entry of offsets/ can be read, and they have the settings that rows are written with"


class Encoding(NamedTuple):
    """The encoding of state, from pinned settings and files. Without settings (not ``known``) rows stay bytes: decoded
    wrongly, they can still look like rows.
    """

    rocksdb: bool
    avro: bool = False
    row_checksums: bool = False
    known: bool = True


class FamilyRows(NamedTuple):
    """``undecoded`` has bytes and the ``reason`` in columns."""

    key: pa.Array
    value: pa.Array
    reason: str | None = None


class StoreDecoder(NamedTuple):
    """Decodes pairs of a store. ``multi_valued`` families have several values under a key."""

    store: OperatorStore
    encoding: Encoding
    multi_valued: frozenset[str] = frozenset()

    def split_families(self, records: Records, numbers: Mapping[str, int]) -> dict[str, Records]:
        if not self.store.with_families:
            return {(self.store.families[0].name if self.store.families else "default"): records}
        if len(records) and (records.key_lengths < _FAMILY_BYTES).any():
            raise FormatError("torn", "a key without a family", expected="2 bytes", found="fewer")
        # Spark writes the number in the byte order of the machine, which is little-endian on x86 and ARM.
        found = records.view.integers(records.key_starts, "<i2")
        names = {number: name for name, number in numbers.items()}
        families = {family.name: records.take(np.empty(0, np.int64)) for family in self.store.families}
        for number in np.unique(found).tolist():
            families[names.get(number, f"#{number}")] = records.take(found == number)
        return families

    def decode(self, family: ColumnFamily | None, records: Records) -> tuple[FamilyRows, ...]:
        """A family's rows in pieces of equal types; all bytes without a fitting schema. Failed checksums raise."""
        pieces = [records.take(slice(start, start + AT_A_TIME)) for start in range(0, max(1, len(records)), AT_A_TIME)]
        decoded = tuple(self._decode_piece(family, piece) for piece in pieces)
        reason = next((rows.reason for rows in decoded if rows.reason is not None), None)
        if reason is None:
            return decoded
        return tuple(
            rows if rows.reason else _as_bytes(*_spans(piece), reason)
            for piece, rows in zip(pieces, decoded, strict=True)
        )

    def _decode_piece(self, family: ColumnFamily | None, records: Records) -> FamilyRows:
        keys, values = _spans(records)
        if family is None:
            return _as_bytes(keys, values, "there is no schema for these rows")
        if not self.encoding.known:
            return _as_bytes(keys, values, _UNKNOWN_ENCODING)
        try:
            keys, values = self._elements(family, keys, values)
            return FamilyRows(
                self._keys(family, keys.cut(_FAMILY_BYTES) if self.store.with_families else keys),
                self._values(family, values),
            )
        except FormatError as error:
            if error.code == "checksum":
                raise
            return _as_bytes(keys, values, str(error))

    def _elements(self, family: ColumnFamily, keys: Spans, values: Spans) -> tuple[Spans, Spans]:
        checked = self.encoding.row_checksums
        if self.encoding.rocksdb:
            if family.name not in self.multi_valued and not checked:
                return keys, values
            elements, rows, expected = split_values(values, checked=checked)
            keys = Spans(keys.view, keys.starts[rows], keys.lengths[rows])
            if checked:
                require_row_checksums(keys, elements, expected)
            return keys, elements
        if not checked:
            # Spark before 2.3 wrote lengths that were too large by up to 7 bytes.
            return keys, Spans(values.view, values.starts, values.lengths // _ROW_ALIGNMENT * _ROW_ALIGNMENT)
        plain = values.cut(CHECKSUM_BYTES)
        require_row_checksums(keys, plain, values.view.integers(values.starts, "<u4"))
        return keys, plain

    def _keys(self, family: ColumnFamily, keys: Spans) -> pa.StructArray:
        if not self.encoding.rocksdb:
            return bare_rows(keys, family.key)
        if not self.encoding.avro:
            return read_keys(keys, family.key, family.encoding, versioned_rows)
        # A key's prefix has no schema id; the layout of sorted Avro keys in 4.x is not known here.
        match family.encoding.kind:
            case "NoPrefix":
                return avro_rows(keys, family.key)
            case "PrefixKeyScan":
                return read_keys(keys, family.key, family.encoding, avro_rows, partial(avro_rows, has_id=False))
            case kind:
                raise FormatError(
                    "too-new", "keys of this kind in Avro", expected="NoPrefix, PrefixKeyScan", found=kind
                )

    def _values(self, family: ColumnFamily, values: Spans) -> pa.StructArray:
        if not self.encoding.rocksdb:
            return bare_rows(values, family.value)
        if not self.encoding.avro:
            return versioned_rows(values, family.value)
        # A value keeps the schema that it was written with until its key is written again.
        older = self.store.value_schemas.get(family.name, {})
        return avro_rows(values, family.value, {number: schema.value for number, schema in older.items()})


def _spans(records: Records) -> tuple[Spans, Spans]:
    keys = Spans(records.view, records.key_starts, records.key_lengths)
    return keys, Spans(records.view, records.value_starts, records.value_lengths)


def _as_bytes(keys: Spans, values: Spans, reason: str) -> FamilyRows:
    key, value = (read_bytes(whole_rows(spans.view, spans.starts, spans.lengths)) for spans in (keys, values))
    return FamilyRows(key, value, reason)
