"""The streams Spark compresses state files with, told by their first bytes (``CompressionCodec``).

pyarrow does the decompression; the framing around it is that of the Java libraries and is taken apart here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import xxhash

from slackwater.errors import FormatError
from slackwater.formats.byte_view import ByteView
from slackwater.formats.lzf import decompress_lzf

_LZ4_MAGIC = b"LZ4Block"
_LZ4_HEADER = struct.Struct("<8sBIII")
_LZ4_SEED = 0x9747B28C
_LZ4_SUM_MASK = 0x0FFFFFFF
_LZ4_RAW, _LZ4_PACKED = 0x10, 0x20
_LZ4_BASE_LEVEL = 10
_LZ4_BEST_RATIO = 256
_ZSTD_USUAL_RATIO = 16
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SNAPPY_MAGIC = b"\x82SNAPPY\0"
_SNAPPY_HEADER_BYTES = 16
_SNAPPY_BEST_RATIO = 64
_LZF_MAGIC = b"ZV"
_LARGEST = 4 << 30
_PIECE = 4 << 20


def codec_of(data: bytes) -> str | None:
    """``lz4``, ``zstd``, ``snappy``, ``lzf``, or ``None`` where the bytes are none of them."""
    magics = {"lz4": _LZ4_MAGIC, "zstd": _ZSTD_MAGIC, "snappy": _SNAPPY_MAGIC, "lzf": _LZF_MAGIC}
    return next((name for name, magic in magics.items() if data.startswith(magic)), None)


def decompress(data: bytes, *, check: bool = True) -> ByteView:
    """The bytes inside one compressed stream. Raises ``FormatError``.

    ``check`` verifies the sums that lz4 streams carry; leave it out only where the file was verified as a whole.
    """
    if not data:
        raise FormatError("empty", "the file has no bytes", expected="a compressed stream", found="0 bytes")
    match codec_of(data):
        case "lz4":
            return _decompress_lz4(data, check=check)
        case "zstd":
            return _decompress_zstd(data)
        case "snappy":
            return _decompress_snappy(data)
        case "lzf":
            return ByteView.of(decompress_lzf(data))
        case _:
            magics = (_LZ4_MAGIC, _ZSTD_MAGIC, _SNAPPY_MAGIC)
            code = "torn" if any(magic.startswith(data) for magic in magics) else "foreign"
            raise FormatError(code, "no known compression", expected="lz4, zstd, snappy or lzf", found=repr(data[:8]))


@dataclass(frozen=True, slots=True)
class _Block:
    """One compressed piece: where it lies, and its size before compression."""

    start: int
    end: int
    size: int
    method: int = _LZ4_PACKED
    checksum: int = 0


def _decompress_lz4(data: bytes, *, check: bool) -> ByteView:
    blocks = _lz4_blocks(data)
    pieces = (_lz4_block(data, block, index, check=check) for index, block in enumerate(blocks))
    return ByteView.joined(pieces, sum(block.size for block in blocks))


def _lz4_blocks(data: bytes) -> list[_Block]:
    """``LZ4BlockOutputStream``: blocks with a header of their own, ended by one of length 0."""
    blocks: list[_Block] = []
    position = 0
    while True:
        if position + _LZ4_HEADER.size > len(data):
            raise _torn("lz4", f"the stream stops at byte {position}")
        magic, token, packed, size, checksum = _LZ4_HEADER.unpack_from(data, position)
        position += _LZ4_HEADER.size
        largest = min(1 << (_LZ4_BASE_LEVEL + (token & 0x0F)), _LZ4_BEST_RATIO * packed)
        if magic != _LZ4_MAGIC or token & 0xF0 not in {_LZ4_RAW, _LZ4_PACKED} or size > largest:
            raise _torn("lz4", f"no block at byte {position - _LZ4_HEADER.size}")
        if size == 0:
            break
        if position + packed > len(data):
            raise _torn("lz4", f"the block at byte {position} is cut")
        blocks.append(_Block(position, position + packed, size, token & 0xF0, checksum))
        position += packed
    if position != len(data):
        raise _torn("lz4", f"{len(data) - position} bytes after the end")
    return blocks


def _lz4_block(data: bytes, block: _Block, index: int, *, check: bool) -> bytes:
    packed = data[block.start : block.end]
    if block.method == _LZ4_PACKED:
        packed = _arrow_decompress(packed, "lz4_raw", block.size)
    elif len(packed) != block.size:
        raise _torn("lz4", f"{len(packed)} bytes in a block of {block.size}")
    if check and xxhash.xxh32_intdigest(packed, _LZ4_SEED) & _LZ4_SUM_MASK != block.checksum:
        raise FormatError(
            "checksum", "an lz4 block differs from its sum", expected=f"{block.checksum:#x}", found=f"block {index}"
        )
    return packed


def _decompress_snappy(data: bytes) -> ByteView:
    blocks = _snappy_blocks(data)
    pieces = (_arrow_decompress(data[block.start : block.end], "snappy", block.size) for block in blocks)
    return ByteView.joined(pieces, sum(block.size for block in blocks))


def _snappy_blocks(data: bytes) -> list[_Block]:
    """``SnappyOutputStream``: a header of 16 bytes, then blocks with their packed length."""
    blocks: list[_Block] = []
    position = _SNAPPY_HEADER_BYTES
    if len(data) < position:
        raise _torn("snappy", "no whole header")
    while position < len(data):
        if data.startswith(_SNAPPY_MAGIC, position):
            # Streams may be joined: snappy-java accepts a header wherever a block may begin.
            position += _SNAPPY_HEADER_BYTES
            continue
        if position + 4 > len(data):
            raise _torn("snappy", f"the stream stops at byte {position}")
        packed = struct.unpack_from(">i", data, position)[0]
        position += 4
        if packed < 0 or position + packed > len(data):
            raise _torn("snappy", f"the block at byte {position} is cut")
        size = _snappy_size(data[position : position + min(packed, 5)], packed)
        blocks.append(_Block(position, position + packed, size))
        position += packed
    return blocks


def _snappy_size(head: bytes, packed: int) -> int:
    """The size before compression: a varint of at most 5 bytes in front of the block."""
    size = 0
    for place, byte in enumerate(head):
        size |= (byte & 0x7F) << (7 * place)
        if not byte & 0x80:
            if size > _SNAPPY_BEST_RATIO * packed + _SNAPPY_BEST_RATIO:
                break
            return size
    raise _torn("snappy", "a block without a possible size")


def _decompress_zstd(data: bytes) -> ByteView:
    """Frames without a content size, so they are read as a stream. A frame that is cut is an error to pyarrow too."""
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            return ByteView.joined(_pieces(stream), _ZSTD_USUAL_RATIO * len(data))
    except (OSError, ValueError) as error:
        raise _torn("zstd", str(error)) from error


def _pieces(stream: pa.NativeFile) -> Iterator[bytes]:
    total = 0
    while piece := stream.read(_PIECE):
        yield piece
        total += len(piece)
        if total > _LARGEST:
            raise _torn("zstd", "more than 4 GiB")


def _arrow_decompress(block: bytes, codec: str, size: int) -> bytes:
    try:
        unpacked: bytes = pa.decompress(block, decompressed_size=size, codec=codec, asbytes=True)
    except (OSError, ValueError) as error:
        raise _torn(codec, str(error)) from error
    if len(unpacked) != size:
        raise _torn(codec, f"{len(unpacked)} bytes in a block of {size}")
    return unpacked


def _torn(codec: str, found: str) -> FormatError:
    return FormatError("torn", f"the {codec} stream is damaged", expected=f"a whole {codec} stream", found=found)
