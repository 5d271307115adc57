"""Decodes loaded pairs to Arrow columns ``key`` and ``value``, by family.

Undecodable rows stay bytes with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from slackwater.core.errors import FormatError
from slackwater.core.state import ColumnFamily, OperatorStore, StructType
from slackwater.formats.avro_state import AvroRows
from slackwater.formats.byte_view import Positions
from slackwater.formats.crc32c import CHECKSUM_BYTES, require_row_checksums
from slackwater.formats.state_records import AT_A_TIME, Records
from slackwater.formats.state_rows import BareRows, RowFormat, Spans, VersionedRows, read_keys, split_values
from slackwater.formats.unsafe_row import read_bytes, whole_rows

_FAMILY_BYTES = 2
_ROW_ALIGNMENT = 8
_UNKNOWN_ENCODING = "no entry of offsets/ can be read, and they have the settings that rows are written with"


@dataclass(frozen=True, slots=True)
class Encoding:
    """The encoding of state, from pinned settings and files. Without settings (not ``known``) rows stay bytes: decoded
    wrongly, they can still look like rows.
    """

    rocksdb: bool
    avro: bool = False
    row_checksums: bool = False
    known: bool = True


@dataclass(frozen=True, slots=True)
class FamilyRows:
    """``undecoded`` has bytes and the ``reason`` in columns."""

    key: pa.Array
    value: pa.Array
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class StoreDecoder:
    """Decodes pairs of a store. ``multi_valued`` families have several values under a key."""

    store: OperatorStore
    encoding: Encoding
    multi_valued: frozenset[str] = field(default_factory=frozenset)

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
        """A family's rows in pieces of equal types; all bytes without a fitting schema.

        Failed checksums raise.
        """
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
                _require(keys, elements, expected)
            return keys, elements
        if not checked:
            # Spark before 2.3 wrote lengths that were too large by up to 7 bytes.
            return keys, Spans(values.view, values.starts, values.lengths // _ROW_ALIGNMENT * _ROW_ALIGNMENT)
        plain = values.cut(CHECKSUM_BYTES)
        _require(keys, plain, values.view.integers(values.starts, "<u4"))
        return keys, plain

    def _keys(self, family: ColumnFamily, keys: Spans) -> pa.StructArray:
        if not self.encoding.rocksdb:
            return BareRows().read(keys, family.key)
        if self.encoding.avro:
            return _read_avro_keys(keys, family)
        return read_keys(keys, family.key, family.encoding, VersionedRows())

    def _values(self, family: ColumnFamily, values: Spans) -> pa.StructArray:
        rows: RowFormat = BareRows()
        if self.encoding.rocksdb and self.encoding.avro:
            # A value keeps the schema that it was written with until its key is written again.
            older = self.store.value_schemas.get(family.name, {})
            rows = AvroRows({number: schema.value for number, schema in older.items()})
        elif self.encoding.rocksdb:
            rows = VersionedRows()
        return rows.read(values, family.value)


def _read_avro_keys(keys: Spans, family: ColumnFamily) -> pa.StructArray:
    """A key's prefix has no schema id; the layout of sorted Avro keys in 4.x is not known here."""
    match family.encoding.kind:
        case "NoPrefix":
            return AvroRows().read(keys, family.key)
        case "PrefixKeyScan":
            return read_keys(keys, family.key, family.encoding, _AvroKeyParts())
        case kind:
            raise FormatError("too-new", "keys of this kind in Avro", expected="NoPrefix, PrefixKeyScan", found=kind)


class _AvroKeyParts:
    def __init__(self) -> None:
        self._parts_read = 0

    def read(self, spans: Spans, schema: StructType) -> pa.StructArray:
        self._parts_read += 1
        return AvroRows(has_id=self._parts_read > 1).read(spans, schema)


def _spans(records: Records) -> tuple[Spans, Spans]:
    keys = Spans(records.view, records.key_starts, records.key_lengths)
    return keys, Spans(records.view, records.value_starts, records.value_lengths)


def _require(keys: Spans, values: Spans, expected: Positions) -> None:
    require_row_checksums(keys.view, (keys.starts, keys.lengths), (values.starts, values.lengths), expected)


def _as_bytes(keys: Spans, values: Spans, reason: str) -> FamilyRows:
    return FamilyRows(_raw(keys), _raw(values), reason)


def _raw(spans: Spans) -> pa.Array:
    return read_bytes(whole_rows(spans.view, spans.starts, spans.lengths))
