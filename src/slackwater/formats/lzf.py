"""LZF in the chunks of ning's compress-lzf: the one codec of Spark that no library we use can read."""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.errors import FormatError
from slackwater.formats.frames import Budget

_MAGIC = b"ZV"
_RAW_HEADER = 5
_PACKED_HEADER = 7
_LITERAL_LIMIT = 32
_LONG_COPY = 7


def decompress_lzf(data: bytes, budget: Budget) -> bytes:
    """All chunks, joined. Raises ``FormatError``; ``too-large`` before anything is expanded."""
    chunks = list(_chunks(data))
    budget.take(sum(size for _, _, size in chunks))
    out = bytearray()
    for packed, chunk, size in chunks:
        if packed:
            _expand(chunk, size, out)
        else:
            out += chunk
    return bytes(out)


def _chunks(data: bytes) -> Iterator[tuple[bool, memoryview, int]]:
    """``(whether compressed, bytes, size before compression)``."""
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
    """One chunk onto ``out``: a control byte below 32 starts a literal, any other a copy of what was written."""
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
