"""Compacted logs: names, intervals, and laying out a log that Spark reads as exactly these entries."""

import base64
import random
import struct
import zlib

import google_crc32c
import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from slackwater.checkpoint.state.changelog import decompress
from slackwater.checkpoint.state.decoder import crc32c_rows
from slackwater.checkpoint.state.records import ByteView, last_writes, records_of_pairs, walk_records
from slackwater.checkpoint.state.unsafe_row import read_rows, whole_rows
from slackwater.core.errors import FormatError
from slackwater.core.state import AtomicType, Field, StructType
from slackwater.formats.checksums import hadoop_mismatch
from slackwater.formats.compactible import derive_interval, lay_out, parse_entry_name
from tests.support.spark_logs import entry_name


@pytest.mark.parametrize(
    ("names", "default", "interval"),
    [
        ([], 10, 10),
        (["0", "1"], 3, 3),
        (["2.compact", "5.compact", "6"], 10, 3),
        (["9.compact", "19.compact", "2.compact"], 3, 10),
        (["4.compact"], 10, 5),
        (["9.compact"], 10, 10),
        (["19.compact"], 10, 20),
        (["29.compact"], 10, 10),
        (["11.compact"], 5, 6),
        (["22.compact"], 10, 23),
        (["24.compact", ".24.compact.crc", "x.compact"], 4, 5),
    ],
)
def test_intervals_are_derived_as_spark_does(names: list[str], default: int, interval: int) -> None:
    assert derive_interval(names, default) == interval


def test_names() -> None:
    assert [entry_name(entry, 3) for entry in range(4)] == ["0", "1", "2.compact", "3"]
    assert parse_entry_name("12.compact") == (12, True)
    assert parse_entry_name("12") == (12, False)
    assert [parse_entry_name(name) for name in ("x", ".1.crc", "", "1.compact.crc", "-1", "²")] == [None] * 6


def read_as_spark(files: dict[str, str], last: int, interval: int) -> list[str]:
    """All entries, the way ``CompactibleFileStreamLog.allFiles`` finds them: only by the names it computes."""
    newest = (last + 1) // interval * interval - 1
    needed = range(max(newest, 0), last + 1)
    return [line for entry in needed for line in files[entry_name(entry, interval)].split("\n")[1:]]


@given(st.integers(0, 60), st.integers(1, 12), st.data())
def test_a_log_laid_out_is_read_back(last: int, interval: int, data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(0, 2), min_size=last + 1, max_size=last + 1))
    entries = {entry: [f"{entry}-{index}" for index in range(count)] for entry, count in enumerate(counts)}
    files = lay_out(entries, last, interval)
    everything = [line for entry in range(last + 1) for line in entries[entry]]
    assert read_as_spark(files, last, interval) == everything
    compacted = [name for name in files if name.endswith(".compact")]
    if last + 1 >= 2 * interval:
        assert len(compacted) == 2
        assert derive_interval(files, 10) == interval
    elif compacted:
        # With one compaction Spark may take a divisor; it must still find every entry.
        derived = derive_interval(files, 10)
        assert read_as_spark(files, last, derived) == everything


def test_entries_after_the_last_one_are_left_out() -> None:
    assert lay_out({0: ["a"], 1: ["b"], 2: ["c"]}, 1, 10) == {"0": "v1\na", "1": "v1\nb"}


def test_an_entry_without_lines_is_there() -> None:
    assert lay_out({}, 0, 10) == {"0": "v1"}


def test_nothing() -> None:
    assert lay_out({}, -1, 10) == {}


# What a coverage-guided fuzzer found in the decoders: each must be read or refused, never raise anything else.


ROW_WITH_LONG_INTERVAL = base64.b64decode(
    "G/4BSwAAAAAAAAAAAAAACEACAAAAAAAAADAAAAAwAAAAGAAAAABgAADw8PDwAAAgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABgA"
    "AAAYAAAAANTlFNcNBgBrMQAAAAAAAP8AAAAAAP////////8="
)


def test_an_interval_longer_than_arrow_counts() -> None:
    micros = (2**62).to_bytes(8, "little")
    row = bytes(8) + (16 << 0 | 16 << 32).to_bytes(8, "little") + bytes(8) + micros
    view = ByteView.of(row)
    rows = whole_rows(view, np.array([0], np.int64), np.array([len(row)], np.int64))
    with pytest.raises(FormatError, match="interval too long"):
        read_rows(rows, StructType((Field("i", AtomicType("interval")),)))


def test_the_row_that_was_found() -> None:
    view = ByteView.of(ROW_WITH_LONG_INTERVAL)
    rows = whole_rows(view, np.array([0], np.int64), np.array([view.length], np.int64))
    fields = [Field(str(index), AtomicType("interval")) for index in range(8)]
    with pytest.raises(FormatError):
        read_rows(rows, StructType(tuple(fields)))


# Checksums and codecs against published values and against each other.


LZ4_SUM_OF_ABC = 0xD4CB222
MANY_BYTES = random.Random(2).randbytes(6 << 20)


def test_crc32c_in_lanes_equals_crc32c_in_one_go() -> None:
    data = random.Random(1).randbytes(10_000)
    starts, lengths = np.array([0, 17, 5000, 3]), np.array([10_000, 4096, 0, 2048])
    rows = crc32c_rows(np.frombuffer(data, np.uint8), starts, lengths)
    assert [int(row) for row in rows] == [
        google_crc32c.value(data[a : a + n]) for a, n in zip(starts, lengths, strict=True)
    ]


def test_crc32c_continues_from_the_bytes_before() -> None:
    data = np.frombuffer(b"keyvalue", np.uint8)
    first = crc32c_rows(data, np.array([0]), np.array([3]))
    assert int(crc32c_rows(data, np.array([3]), np.array([5]), first)[0]) == google_crc32c.value(b"keyvalue")


def lz4_stream(checksum: int) -> bytes:
    """One block that is not packed, and the end."""
    data = b"abc"
    end = struct.pack("<8sBIII", b"LZ4Block", 0x10, 0, 0, 0)
    return struct.pack("<8sBIII", b"LZ4Block", 0x10, len(data), len(data), checksum) + data + end


def test_lz4_blocks_are_verified() -> None:
    assert decompress(lz4_stream(LZ4_SUM_OF_ABC)).content.tobytes() == b"abc"
    with pytest.raises(FormatError, match="differs from its checksum"):
        decompress(lz4_stream(LZ4_SUM_OF_ABC ^ 1))


def _compressed(codec: str) -> bytes:
    """``MANY_BYTES`` in pieces of 32 KiB, as Spark's codecs write them; with lz4 the last piece is damaged."""
    pieces = [MANY_BYTES[at : at + 0x8000] for at in range(0, len(MANY_BYTES), 0x8000)]
    if codec == "lz4":
        header = struct.Struct("<8sBIII")
        sums = [*(xxhash.xxh32_intdigest(piece, 0x9747B28C) & 0x0FFFFFFF for piece in pieces[:-1]), 0]
        blocks = [
            header.pack(b"LZ4Block", 0x15, len(piece), len(piece), checksum) + piece
            for piece, checksum in zip(pieces, sums, strict=True)
        ]
        return b"".join(blocks) + header.pack(b"LZ4Block", 0x15, 0, 0, 0)
    if codec == "snappy":
        packed = [pa.compress(piece, codec="snappy", asbytes=True) for piece in pieces]
        return b"\x82SNAPPY\0" + bytes(8) + b"".join(len(piece).to_bytes(4, "big") + piece for piece in packed)
    if codec == "lzf":
        return b"".join(b"ZV\0" + len(piece).to_bytes(2, "big") + piece for piece in pieces)
    return bytes(pa.compress(MANY_BYTES, codec=codec, asbytes=True))


@pytest.mark.parametrize("codec", ["lz4", "snappy", "zstd", "lzf"])
def test_the_start_of_a_stream_is_decompressed_without_the_rest(codec: str) -> None:
    start = decompress(_compressed(codec), needed=0x8001).content.tobytes()

    assert MANY_BYTES.startswith(start)
    assert 0x8001 <= len(start) <= 4 << 20


def test_hadoop_sums() -> None:
    data = bytes(range(256)) * 5
    pieces = [data[at : at + 512] for at in range(0, len(data), 512)]
    beside = b"crc\0" + (512).to_bytes(4, "big") + b"".join(zlib.crc32(piece).to_bytes(4, "big") for piece in pieces)
    assert hadoop_mismatch(data, beside) is None
    assert hadoop_mismatch(data[:-1] + b"x", beside) == "the bytes from 1024 differ"
    assert hadoop_mismatch(data + bytes(512), beside) is not None
    with pytest.raises(FormatError):
        hadoop_mismatch(data, b"zip")


@pytest.mark.parametrize("data", [b"", b"LZ4Block", b"ZV\x01\x00", b"\x28\xb5\x2f\xfd", b"\x82SNAPPY\x00", b"nothing"])
def test_streams_that_are_cut(data: bytes) -> None:
    with pytest.raises(FormatError):
        decompress(data)


def delta(records: list[tuple[bytes, bytes | None]]) -> bytes:
    """A decompressed delta."""
    parts = []
    for key, value in records:
        parts.append(len(key).to_bytes(4, "big") + key)
        parts.append((-1).to_bytes(4, "big", signed=True) if value is None else len(value).to_bytes(4, "big") + value)
    return b"".join(parts) + (-1).to_bytes(4, "big", signed=True)


@pytest.mark.parametrize("seed", range(20))
def test_the_last_write_of_each_key_wins(seed: int) -> None:
    chance = random.Random(seed)
    width = chance.choice([8, 16, 24, 7])
    writes: list[tuple[bytes, bytes | None]] = []
    for _ in range(chance.choice([0, 1, 50, 3000])):
        key = chance.randrange(500).to_bytes(width, "little")
        writes.append((key, None if chance.random() < 0.2 else chance.randbytes(chance.choice([8, 8, 8, 16]))))
    wanted: dict[bytes, bytes] = {}
    for key, value in writes:
        wanted.pop(key, None)
        if value is not None:
            wanted[key] = value
    left = last_writes(walk_records(ByteView.of(delta(writes))))
    assert {left.key(index): left.value(index) for index in range(len(left))} == wanted, f"seed {seed}"


def test_runs_of_equal_records_are_walked_like_any_other() -> None:
    records: list[tuple[bytes, bytes | None]] = [(bytes([index % 251]) * 8, bytes(16)) for index in range(1000)]
    records[500] = (b"x" * 16, b"y" * 8)
    walked = walk_records(ByteView.of(delta(records)))
    assert [(walked.key(index), walked.value(index)) for index in range(len(walked))] == records


def test_pairs() -> None:
    pairs = records_of_pairs([b"a", b"bc"], [b"", b"1"])
    assert [(pairs.key(index), pairs.value(index)) for index in range(2)] == [(b"a", b""), (b"bc", b"1")]


@pytest.mark.parametrize("step", [8, 9, -8, 0])
@pytest.mark.parametrize("turn", [0, 1, 2999])
def test_positions_in_runs_are_read_like_any_others(step: int, turn: int) -> None:
    data = random.Random(2).randbytes(60_000)
    positions = np.arange(3000, dtype=np.int64) * step + (30_000 if step < 0 else 0)
    positions[turn:] += 5
    expected = [int.from_bytes(data[at : at + 4], "little") for at in positions.tolist()]
    assert ByteView.of(data).integers(positions, "<u4").tolist() == expected
