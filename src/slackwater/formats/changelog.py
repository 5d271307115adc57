"""``V.changelog`` of a RocksDB store, decompressed (``StateStoreChangelogReaderV1`` to ``V4``).

Versions 1 and 3 frame records like a delta; 2 and 4 put a byte in front (put, merge, delete, end), for column families.
Versions 3 and 4 (checkpoint format 2) start with a lineage. Version 1 has no header.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

import numpy as np

from slackwater.core.errors import FormatError
from slackwater.formats.byte_view import ByteView
from slackwater.formats.codecs import decompress
from slackwater.formats.frames import Budget
from slackwater.formats.java_data import JavaReader
from slackwater.formats.state_records import DELETED, RecordPositions, Records, torn_records, walk_records
from slackwater.formats.text_log import integer_field, parse_json, shown, text_field

_VERSION = re.compile(r"v(\d{1,9})")
_NEWEST_VERSION = 4
LONGEST_HEADER = 2 * (2 + 0xFFFF)
"""Two strings of ``writeUTF``."""
_WITH_LINEAGE = frozenset({3, 4})
_WITH_KINDS = frozenset({2, 4})
_END, _PUT, _DELETE, _MERGE = 0x00, 0x01, 0x10, 0x11


@dataclass(frozen=True, slots=True)
class Changelog:
    """``lineage`` has ``(version, unique id)`` from the last whole file to the version before."""

    version: int
    lineage: tuple[tuple[int, str], ...]
    records: Records


def parse_changelog(view: ByteView) -> Changelog:
    version, lineage, position = parse_changelog_header(view)
    records = _walk_kinds(view, position) if version in _WITH_KINDS else walk_records(view, position)
    return Changelog(version, lineage, records)


def decompressed_records(data: bytes, *, is_changelog: bool, budget: Budget) -> tuple[Records, Changelog | None]:
    """Records of a state file other than a zip, and its changelog if it is one. Raises ``FormatError``."""
    plain = decompress(data, budget=budget)
    changelog = parse_changelog(plain) if is_changelog else None
    return (changelog.records, changelog) if changelog else (walk_records(plain), None)


def parse_changelog_header(view: ByteView) -> tuple[int, tuple[tuple[int, str], ...], int]:
    """``(version, lineage, start of the records)``. Raises ``FormatError``."""
    data = view.slice(0, min(view.length, LONGEST_HEADER))
    version, position = _version(data)
    if version not in _WITH_LINEAGE:
        return version, (), position
    reader = JavaReader(data, position)
    return version, _parse_lineage(reader.utf()), reader.position


def _version(data: bytes) -> tuple[int, int]:
    """A file of version 1 starts with a key length, which reads as an empty string."""
    # `\xff\xff` begins the end mark -1 of a file of version 1 without records, and would be taken for the length of a
    # string.
    if len(data) < 2 or data[:2] in {b"\0\0", b"\xff\xff"}:  # noqa: PLR2004
        return 1, 0
    reader = JavaReader(data)
    try:
        match = _VERSION.fullmatch(reader.utf())
    except FormatError:
        # A long first key of version 1 looks like a broken string; Spark takes version 1 then, too (SPARK-51922).
        return 1, 0
    if match is None:
        return 1, 0
    if not 1 < int(match[1]) <= _NEWEST_VERSION:
        raise FormatError("too-new", "a version unknown to Spark 4.3", expected="v2 to v4", found=match[0])
    return int(match[1]), reader.position


def _parse_lineage(text: str) -> tuple[tuple[int, str], ...]:
    value = parse_json(text, "a lineage")
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise FormatError("foreign", "not a lineage", expected='[{"version":...}]', found=shown(text))
    return tuple(
        (integer_field(item, "version", "a lineage"), text_field(item, "checkpointUniqueId", "a lineage"))
        for item in value
    )


def _walk_kinds(view: ByteView, start: int) -> Records:
    data = view.content.data
    read = struct.Struct(">i").unpack_from
    found = RecordPositions()
    merges = bytearray()
    position = start
    try:
        while (kind := data[position]) != _END:
            key = read(data, position + 1)[0]
            value = read(data, position + 5 + key)[0] if key >= 0 else DELETED - 1
            if value < DELETED or kind not in {_PUT, _MERGE, _DELETE} or (value == DELETED) != (kind == _DELETE):
                raise torn_records(position)
            value_start = position + 9 + key
            found.add((position + 5, key, value_start, value))
            merges.append(kind == _MERGE)
            position = value_start + max(0, value)
    except (struct.error, IndexError) as error:
        raise torn_records(position) from error
    if position + 1 != len(data):
        raise torn_records(position)
    return found.records(view, np.frombuffer(merges, np.bool_))
