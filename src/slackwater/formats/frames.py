"""Frames of compressed state files, by their first bytes (``CompressionCodec``); nothing is decompressed.

lz4 and snappy are framed as in Java's libraries.
"""

import struct
from dataclasses import dataclass, field

from slackwater.core.errors import FormatError
from slackwater.core.units import GIB, MIB, size_text

LZ4_PACKED = 0x20
_LZ4_RAW = 0x10
_LZ4_MAGIC = b"LZ4Block"
_LZ4_HEADER = struct.Struct("<8sBIII")
_LZ4_BASE_LEVEL = 10
_LZ4_BEST_RATIO = 256
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SNAPPY_MAGIC = b"\x82SNAPPY\0"
_SNAPPY_HEADER_BYTES = 16
_SNAPPY_BEST_RATIO = 64
_LZF_MAGIC = b"ZV"
USUAL_RATIO = 32
_MAGICS = {"lz4": _LZ4_MAGIC, "zstd": _ZSTD_MAGIC, "snappy": _SNAPPY_MAGIC, "lzf": _LZF_MAGIC}


@dataclass(frozen=True, slots=True)
class Block:
    """Position of a compressed piece, and its size before compression."""

    start: int
    end: int
    size: int
    method: int = LZ4_PACKED
    checksum: int = 0


def require_codec(data: bytes) -> str:
    """The codec: ``lz4``, ``zstd``, ``snappy`` or ``lzf``."""
    if not data:
        raise FormatError("empty", "the file has no bytes", expected="a compressed stream", found="0 bytes")
    codec = next((name for name, magic in _MAGICS.items() if data.startswith(magic)), None)
    if codec is None:
        code = "torn" if any(magic.startswith(data) for magic in _MAGICS.values()) else "foreign"
        raise FormatError(code, "no known compression", expected="lz4, zstd, snappy or lzf", found=repr(data[:8]))
    return codec


def require_frames(data: bytes) -> None:
    """Check all but the compressed bytes. Raises ``FormatError``."""
    match require_codec(data):
        case "lz4":
            lz4_blocks(data)
        case "snappy":
            snappy_blocks(data)


@dataclass(slots=True)
class Surplus:
    """How much more than ``USUAL_RATIO`` times their size all files of a check may decompress to. Without it a few MB
    that decompress to each file's limit take minutes and all memory.
    """

    left: int = 256 * MIB


@dataclass(slots=True)
class Budget:
    """Bytes to which some files may decompress together."""

    limit: int = 4 * GIB
    used: int = 0
    surplus: Surplus = field(default_factory=Surplus)

    @property
    def left(self) -> int:
        return self.limit - self.used

    def most(self, packed: int) -> int:
        return min(self.left, USUAL_RATIO * packed + self.surplus.left)

    def take(self, size: int, packed: int) -> None:
        if size > self.most(packed):
            raise self.exceeded(size_text(self.used + size), packed)
        self.used += size
        self.surplus.left -= max(0, size - USUAL_RATIO * packed)

    def exceeded(self, found: str, packed: int) -> FormatError:
        expected = f"at most {size_text(min(self.limit, self.used + self.most(packed)))} decompressed"
        return FormatError("too-large", "the file decompresses to too much", expected=expected, found=found)


def lz4_blocks(data: bytes) -> list[Block]:
    """``LZ4BlockOutputStream``: blocks with headers, ended by a block of length 0."""
    blocks: list[Block] = []
    position = 0
    while True:
        if position + _LZ4_HEADER.size > len(data):
            raise torn("lz4", f"the stream stops at byte {position}")
        magic, token, packed, size, checksum = _LZ4_HEADER.unpack_from(data, position)
        position += _LZ4_HEADER.size
        # `LZ4BlockInputStream` refuses blocks above the size in the token, too; LZ4 packs at most 255 bytes into one.
        largest = min(1 << (_LZ4_BASE_LEVEL + (token & 0x0F)), _LZ4_BEST_RATIO * packed)
        if magic != _LZ4_MAGIC or token & 0xF0 not in {_LZ4_RAW, LZ4_PACKED} or size > largest:
            raise torn("lz4", f"no block at byte {position - _LZ4_HEADER.size}")
        if size == 0:
            break
        if position + packed > len(data):
            raise torn("lz4", f"the block at byte {position} is cut")
        blocks.append(Block(position, position + packed, size, token & 0xF0, checksum))
        position += packed
    if position != len(data):
        raise torn("lz4", f"{len(data) - position} bytes after the end")
    return blocks


def snappy_blocks(data: bytes) -> list[Block]:
    """``SnappyOutputStream``: a header of 16 bytes, then blocks with their packed length."""
    blocks: list[Block] = []
    position = _SNAPPY_HEADER_BYTES
    if len(data) < position:
        raise torn("snappy", "no whole header")
    while position < len(data):
        if data.startswith(_SNAPPY_MAGIC, position):
            # Streams may be joined: snappy-java accepts a header wherever a block may start.
            position += _SNAPPY_HEADER_BYTES
            continue
        if position + 4 > len(data):
            raise torn("snappy", f"the stream stops at byte {position}")
        packed = struct.unpack_from(">i", data, position)[0]
        position += 4
        if packed < 0 or position + packed > len(data):
            raise torn("snappy", f"the block at byte {position} is cut")
        size = _snappy_size(data[position : position + min(packed, 5)], packed)
        blocks.append(Block(position, position + packed, size))
        position += packed
    return blocks


def _snappy_size(head: bytes, packed: int) -> int:
    """A varint of at most 5 bytes in front of the block."""
    size = 0
    for place, byte in enumerate(head):
        size |= (byte & 0x7F) << (7 * place)
        if not byte & 0x80:
            # A copy in Snappy gives at most 64 bytes, so a larger size is damage, for which no memory may be taken.
            if size > _SNAPPY_BEST_RATIO * packed + _SNAPPY_BEST_RATIO:
                break
            return size
    raise torn("snappy", "a block without a possible size")


def torn(codec: str, found: str) -> FormatError:
    return FormatError("torn", f"the {codec} stream is damaged", expected=f"a whole {codec} stream", found=found)
