"""Hadoop's ``.N.crc`` (local disks) and Spark's ``N.crc`` (state files, 4.1+)."""

import struct
import zlib

from slackwater.core.errors import FormatError
from slackwater.formats.text_log import decode_text, integer_field, parse_object, text_field

_HADOOP_MAGIC = b"crc\0"
_HEADER_BYTES = 8
_SUM_BYTES = 4
_WORD = 1 << 32


def parse_spark_checksum(data: bytes) -> tuple[str, int, int]:
    """Algorithm, unsigned value and size of ``{"algorithm":"CRC32C","value":...,"mainFileSize":...}``."""
    if not data:
        raise FormatError("empty", "the file has no bytes", expected='{"algorithm":...}', found="0 bytes")
    what = "the checksum"
    record = parse_object(decode_text(data), what)
    return (
        text_field(record, "algorithm", what),
        integer_field(record, "value", what) % _WORD,
        integer_field(record, "mainFileSize", what),
    )


def hadoop_mismatch(data: bytes, checksums: bytes) -> str | None:
    """The difference between a file and its ``.crc``, if any (``ChecksumFileSystem``). The side file has a CRC-32 for
    each piece, by default 512 bytes. Raises ``FormatError``.
    """
    if len(checksums) < _HEADER_BYTES or not checksums.startswith(_HADOOP_MAGIC):
        raise FormatError("foreign", "not a checksum file of Hadoop", expected="crc", found=repr(checksums[:8]))
    piece = struct.unpack_from(">i", checksums, len(_HADOOP_MAGIC))[0]
    if piece <= 0:
        raise FormatError("foreign", "not a checksum file of Hadoop", expected="a piece size", found=str(piece))
    pieces = -(-len(data) // piece)
    recorded = (len(checksums) - _HEADER_BYTES) // _SUM_BYTES
    if recorded != pieces or (len(checksums) - _HEADER_BYTES) % _SUM_BYTES:
        return f"{len(data)} bytes, the side file covers {recorded} pieces of {piece}"
    sums = struct.unpack_from(f">{pieces}I", checksums, _HEADER_BYTES)
    view = memoryview(data)
    for index, expected in enumerate(sums):
        if zlib.crc32(view[index * piece : (index + 1) * piece]) != expected:
            return f"the bytes from {index * piece} differ"
    return None
