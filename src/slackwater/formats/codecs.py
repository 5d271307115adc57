"""Decompression of state files. pyarrow does it; ``frames`` takes the framing of Java's libraries apart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa
import xxhash

from slackwater.errors import FormatError
from slackwater.formats.byte_view import ByteView
from slackwater.formats.frames import (
    LZ4_PACKED,
    Block,
    Budget,
    lz4_blocks,
    require_codec,
    snappy_blocks,
    torn,
)
from slackwater.formats.lzf import decompress_lzf

_LZ4_SEED = 0x9747B28C
_LZ4_SUM_MASK = 0x0FFFFFFF
_ZSTD_USUAL_RATIO, _ZSTD_LARGE_RATIO = 16, 64
_PIECE = 4 << 20


def decompress(data: bytes, *, check: bool = True, budget: Budget | None = None) -> ByteView:
    """The bytes inside one compressed stream. Raises ``FormatError``; ``too-large`` where they pass the budget.

    ``check`` verifies the checksums in lz4 streams; leave it out only where the file was verified as a whole.
    """
    budget = budget or Budget()
    match require_codec(data):
        case "lz4":
            return _decompress_lz4(data, budget, check=check)
        case "zstd":
            return _decompress_zstd(data, budget)
        case "snappy":
            return _decompress_snappy(data, budget)
        case _:
            return ByteView.of(decompress_lzf(data, budget))


def _decompress_lz4(data: bytes, budget: Budget, *, check: bool) -> ByteView:
    blocks = lz4_blocks(data)
    total = sum(block.size for block in blocks)
    budget.take(total)
    return ByteView.joined((_lz4_block(data, block, index, check=check) for index, block in enumerate(blocks)), total)


def _lz4_block(data: bytes, block: Block, index: int, *, check: bool) -> bytes:
    packed = data[block.start : block.end]
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


def _decompress_snappy(data: bytes, budget: Budget) -> ByteView:
    blocks = snappy_blocks(data)
    total = sum(block.size for block in blocks)
    budget.take(total)
    pieces = (_arrow_decompress(data[block.start : block.end], "snappy", block.size) for block in blocks)
    return ByteView.joined(pieces, total)


def _decompress_zstd(data: bytes, budget: Budget) -> ByteView:
    """Frames without a content size, so they are read as a stream. A frame that is cut is an error to pyarrow too."""
    usual, large = _ZSTD_USUAL_RATIO * len(data), _ZSTD_LARGE_RATIO * len(data)
    try:
        if large < budget.left:
            # What expands more than state does is measured before memory is taken for it.
            with suppress(_ExpandsFurther):
                view = ByteView.joined(_zstd_pieces(data, large), usual)
                budget.take(view.length)
                return view
        total = sum(map(len, _zstd_pieces(data, budget.left)))
        budget.take(total)
        return ByteView.joined(_zstd_pieces(data, total), total)
    except _ExpandsFurther as error:
        raise budget.exceeded("more") from error
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
