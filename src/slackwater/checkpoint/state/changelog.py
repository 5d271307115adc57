"""``V.changelog`` of a RocksDB store, decompressed (``StateStoreChangelogReaderV1`` to ``V4``).

Versions 1 and 3 frame records like a delta; 2 and 4 put a byte in front (put, merge, delete, end), for column families.
Versions 3 and 4 (checkpoint format 2) start with a lineage. Version 1 has no header.
"""

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate, takewhile
from typing import TypeVar

import numpy as np
import pyarrow as pa
import xxhash

from slackwater.checkpoint.inventory import Lineage
from slackwater.checkpoint.state.records import DELETED, ByteView, RecordPositions, Records, torn_records, walk_records
from slackwater.core.checkpoint import StateFile, StateFileKind
from slackwater.core.errors import FormatError
from slackwater.formats.frames import LZ4_PACKED, Block, Budget, lz4_blocks, require_codec, snappy_blocks, torn
from slackwater.formats.state_schema import JavaReader
from slackwater.formats.text_log import integer_field, parse_json, shown, text_field

_MAGIC = b"ZV"
_RAW_HEADER = 5
_PACKED_HEADER = 7
_LITERAL_LIMIT = 32
_LONG_COPY = 7


def decompress_lzf(data: bytes, budget: Budget, needed: int | None = None) -> bytes:
    """All chunks, or the first few. Raises ``FormatError``; ``too-large`` before anything is expanded."""
    chunks = _first(list(_chunks(data)), needed, lambda chunk: chunk[2])
    budget.take(sum(size for _, _, size in chunks), len(data))
    out = bytearray()
    for packed, chunk, size in chunks:
        if packed:
            _expand(chunk, size, out)
        else:
            out += chunk
    return bytes(out)


def _chunks(data: bytes) -> Iterator[tuple[bool, memoryview, int]]:
    view = memoryview(data)
    position = 0
    while position < len(data):
        if data[position : position + 2] != _MAGIC or position + _RAW_HEADER > len(data):
            raise _torn(f"no chunk at byte {position}")
        packed = data[position + 2]
        header = _PACKED_HEADER if packed else _RAW_HEADER
        length = int.from_bytes(data[position + 3 : position + 5], "big")
        start, end = position + header, position + header + length
        if end > len(data) or packed > 1:
            raise _torn(f"the chunk at byte {position} is cut")
        size = int.from_bytes(data[position + 5 : position + 7], "big") if packed else length
        yield bool(packed), view[start:end], size
        position = end


def _expand(chunk: memoryview, size: int, out: bytearray) -> None:
    """A control byte below 32 starts a literal, any other a copy of earlier output."""
    base, position = len(out), 0
    try:
        while position < len(chunk):
            control = chunk[position]
            position += 1
            if control < _LITERAL_LIMIT:
                out += chunk[position : position + control + 1]
                position += control + 1
                continue
            length = control >> 5
            if length == _LONG_COPY:
                length += chunk[position]
                position += 1
            distance = ((control & 0x1F) << 8) + chunk[position] + 1
            position += 1
            # The shortest copy has three bytes, so that LZF writes lengths less two.
            _copy_back(out, base, distance, length + 2)
    except IndexError as error:
        raise _torn("a chunk ends inside a copy") from error
    if len(out) - base != size:
        raise _torn(f"{len(out) - base} bytes, but the chunk header has {size}")


def _copy_back(out: bytearray, base: int, distance: int, length: int) -> None:
    start = len(out) - distance
    if start < base:
        raise _torn("a copy from before the chunk")
    # A copy may overlap what it writes: then the bytes between its start and the end repeat.
    repeated = out[start : start + length]
    whole, rest = divmod(length, len(repeated))
    out += repeated * whole + repeated[:rest]


def _torn(found: str) -> FormatError:
    return FormatError("torn", "the LZF stream is damaged", expected="LZF chunks", found=found)


# `LZ4BlockOutputStream.DEFAULT_SEED`, and the 28 bits that `StreamingXXHash32.asChecksum` keeps of the hash.
_LZ4_SEED = 0x9747B28C
_LZ4_SUM_MASK = 0x0FFFFFFF
_ZSTD_USUAL_RATIO, _ZSTD_LARGE_RATIO = 16, 64
_PIECE = 4 << 20


def decompress(data: bytes, *, check: bool = True, budget: Budget | None = None, needed: int | None = None) -> ByteView:
    """At least the ``needed`` first bytes, if there are as many, or all. Raises ``FormatError``; ``too-large`` above
    the budget. Leave ``check``, for checksums in lz4 streams, out only if the whole file was verified.
    """
    budget = budget or Budget()
    match require_codec(data):
        case "lz4":
            return _decompress_blocks(data, lz4_blocks(data), budget, needed, partial(_lz4_block, check=check))
        case "zstd":
            return _decompress_zstd(data, budget, whole=needed is None)
        case "snappy":
            return _decompress_blocks(data, snappy_blocks(data), budget, needed, _snappy_block)
        case _:
            return ByteView.of(decompress_lzf(data, budget, needed))


_Part = TypeVar("_Part")


def _first(parts: Sequence[_Part], needed: int | None, size_of: Callable[[_Part], int]) -> Sequence[_Part]:
    if needed is None:
        return parts
    before = accumulate(map(size_of, parts), initial=0)
    return parts[: sum(1 for _ in takewhile(lambda size: size < needed, before))]


def _decompress_blocks(
    data: bytes,
    found: Sequence[Block],
    budget: Budget,
    needed: int | None,
    unpack: Callable[[bytes, Block, int], bytes],
) -> ByteView:
    blocks = _first(found, needed, lambda block: block.size)
    total = sum(block.size for block in blocks)
    budget.take(total, len(data))
    pieces = (unpack(data[block.start : block.end], block, index) for index, block in enumerate(blocks))
    return ByteView.joined(pieces, total)


def _snappy_block(packed: bytes, block: Block, _index: int) -> bytes:
    return _arrow_decompress(packed, "snappy", block.size)


def _lz4_block(packed: bytes, block: Block, index: int, *, check: bool) -> bytes:
    if block.method == LZ4_PACKED:
        packed = _arrow_decompress(packed, "lz4_raw", block.size)
    elif len(packed) != block.size:
        raise torn("lz4", f"{len(packed)} bytes in a block of {block.size}")
    if check and xxhash.xxh32_intdigest(packed, _LZ4_SEED) & _LZ4_SUM_MASK != block.checksum:
        raise FormatError(
            "checksum",
            "an lz4 block differs from its checksum",
            expected=f"{block.checksum:#x}",
            found=f"block {index}",
        )
    return packed


def _decompress_zstd(data: bytes, budget: Budget, *, whole: bool) -> ByteView:
    """Frames lack a content size, so they are read as a stream. pyarrow fails on a cut frame too."""
    usual, large = _ZSTD_USUAL_RATIO * len(data), _ZSTD_LARGE_RATIO * len(data)
    try:
        if not whole:
            # More than any start that is needed.
            return ByteView.of(next(_zstd_pieces(data, _PIECE), b""))
        most = budget.most(len(data))
        if large < most:
            # What expands more than state does is measured before memory is taken for it.
            with suppress(_ExpandsFurther):
                view = ByteView.joined(_zstd_pieces(data, large), usual)
                budget.take(view.length, len(data))
                return view
        total = sum(map(len, _zstd_pieces(data, most)))
        budget.take(total, len(data))
        return ByteView.joined(_zstd_pieces(data, total), total)
    except _ExpandsFurther as error:
        raise budget.exceeded("more", len(data)) from error
    except (OSError, ValueError) as error:
        raise torn("zstd", str(error)) from error


class _ExpandsFurther(Exception):
    """A stream has more bytes than were asked for."""


def _zstd_pieces(data: bytes, limit: int) -> Iterator[bytes]:
    total = 0
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        while piece := stream.read(_PIECE):
            total += len(piece)
            if total > limit:
                raise _ExpandsFurther
            yield piece


def _arrow_decompress(block: bytes, codec: str, size: int) -> bytes:
    try:
        unpacked: bytes = pa.decompress(block, decompressed_size=size, codec=codec, asbytes=True)
    except (OSError, ValueError) as error:
        raise torn(codec, str(error)) from error
    if len(unpacked) != size:
        raise torn(codec, f"{len(unpacked)} bytes in a block of {size}")
    return unpacked


_VERSION = re.compile(r"v(\d{1,9})")
_NEWEST_VERSION = 4
LONGEST_HEADER = 2 * (2 + 0xFFFF)
"""Two strings of ``writeUTF``."""
_WITH_LINEAGE = frozenset({3, 4})
_WITH_KINDS = frozenset({2, 4})
_END, _PUT, _DELETE, _MERGE = 0x00, 0x01, 0x10, 0x11


def parse_changes(view: ByteView, kind: StateFileKind) -> tuple[Records, int | None, Lineage]:
    """Records of a decompressed state file; of a changelog its version and lineage, too. Raises ``FormatError``."""
    if kind is not StateFileKind.CHANGELOG:
        return walk_records(view), None, ()
    version, lineage, position = parse_changelog_header(view)
    return _walk_kinds(view, position) if version in _WITH_KINDS else walk_records(view, position), version, lineage


def check_changes(data: bytes, file: StateFile, budget: Budget, *, whole: bool) -> Lineage:
    """The lineage of a file of changes; with ``whole`` its records are looked for, otherwise it is not decompressed.
    Raises ``FormatError``, also for another version's lineage.
    """
    if whole:
        lineage = parse_changes(decompress(data, budget=budget), file.kind)[2]
    else:
        lineage = parse_changelog_header(decompress(data, budget=budget, needed=LONGEST_HEADER))[1]
    before = max((version for version, _ in lineage), default=None)
    if before is not None and before != file.version - 1:
        # RocksDB.scala: the lineage ends with the version before the one that is written.
        raise FormatError(
            "foreign",
            "the changes belong to a different version",
            expected=f"a lineage up to version {file.version - 1}",
            found=f"version {before}",
        )
    return lineage


def parse_changelog_header(view: ByteView) -> tuple[int, Lineage, int]:
    """``(version, lineage, start of the records)``. Raises ``FormatError``."""
    data = view.slice(0, min(view.length, LONGEST_HEADER))
    version, position = _version(data)
    if version not in _WITH_LINEAGE:
        return version, (), position
    reader = JavaReader(data, position)
    text = reader.utf()
    value = parse_json(text, "a lineage")
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise FormatError("foreign", "not a lineage", expected='[{"version":...}]', found=shown(text))
    lineage = tuple(
        (integer_field(item, "version", "a lineage"), text_field(item, "checkpointUniqueId", "a lineage"))
        for item in value
    )
    return version, lineage, reader.position


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
