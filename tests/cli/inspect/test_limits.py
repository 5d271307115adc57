"""Files that are too large, or decompress to too much, are damage; the memory it takes to find out is small."""

import json
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import xxhash

from slackwater.checkpoint.damage import find_damage
from slackwater.checkpoint.opened import open_checkpoint
from slackwater.storage.local import LocalStore
from tests.support.corpus import corpus_case

GIB, MIB = 1 << 30, 1 << 20
MOST_MEMORY = 300 * MIB
"""Python, numpy and pyarrow take 150 MiB of it."""
PROGRAM = """
import pathlib, sys
from slackwater.cli.main import main
code = main(sys.argv[1:])
sys.stderr.write(pathlib.Path("/proc/self/status").read_text())
sys.exit(code)
"""
STATE_FILE = "state/0/1/left-keyToNumValues/6.delta"


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return corpus_case("4.3.0", "join_inner_hdfs", tmp_path / "corpus") / "checkpoint"


def inspect(*arguments: object) -> tuple[int, dict[str, Any], int]:
    """Exit code, document, and the most memory the process had, in bytes."""
    command = [sys.executable, "-c", PROGRAM, "inspect", *map(str, arguments), "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    [line] = [line for line in done.stderr.splitlines() if line.startswith("VmHWM:")]
    return done.returncode, json.loads(done.stdout or "{}"), int(line.split()[1]) * 1024


def lz4_bomb(path: Path, size: int) -> None:
    """Blocks of Java's ``LZ4BlockOutputStream``, 32 MiB each."""
    plain = bytes(32 * MIB)
    packed = pa.compress(plain, codec="lz4_raw", asbytes=True)
    block = struct.pack("<8sBIII", b"LZ4Block", 0x2F, len(packed), len(plain), checksum_of(plain)) + packed
    end = struct.pack("<8sBIII", b"LZ4Block", 0x1F, 0, 0, 0)
    path.write_bytes(block * (size // len(plain)) + end)


def checksum_of(data: bytes) -> int:
    return int(xxhash.xxh32_intdigest(data, 0x9747B28C)) & 0x0FFFFFFF


def snappy_bomb(path: Path, size: int) -> None:
    plain = bytes(4 * MIB)
    packed = pa.compress(plain, codec="snappy", asbytes=True)
    block = struct.pack(">i", len(packed)) + packed
    path.write_bytes(b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + block * (size // len(plain)))


def zstd_bomb(path: Path, size: int) -> None:
    plain = bytes(32 * MIB)
    frame = pa.compress(plain, codec="zstd", asbytes=True)
    path.write_bytes(frame * (size // len(plain)))


def lzf_bomb(path: Path, size: int) -> None:
    """Chunks of 64,000 zeros: one literal, then copies of 264 bytes."""
    copies = 64_000 // 264
    body = b"\0\0" + b"\xe0\xff\0" * copies
    chunk = b"ZV\1" + struct.pack(">HH", len(body), 1 + 264 * copies) + body
    path.write_bytes(chunk * (size // 64_000 + 1))


BOMBS: dict[str, Callable[[Path, int], None]] = {
    "lz4": lz4_bomb, "snappy": snappy_bomb, "zstd": zstd_bomb, "lzf": lzf_bomb,
}  # fmt: skip


def put_bomb(checkpoint: Path, codec: str, size: int) -> None:
    path = checkpoint / STATE_FILE
    for checksum in path.parent.glob("*6.delta.crc"):
        checksum.unlink()
    BOMBS[codec](path, size)


@pytest.mark.parametrize(
    ("codec", "size"),
    # Snappy packs 21 bytes into one at best: files within the limit are large themselves.
    [("lz4", 2 * GIB), ("zstd", 2 * GIB), ("lzf", GIB), ("lz4", 5 * GIB), ("snappy", 5 * GIB)],
)
def test_state_that_decompresses_to_far_more_than_state_does_is_damage(codec: str, size: int, checkpoint: Path) -> None:
    put_bomb(checkpoint, codec, size)
    code, found, memory = inspect(checkpoint, "--operators")
    assert code == 3
    [damage] = [item for item in found["damage"] if item["path"] == STATE_FILE]
    assert damage["kind"] == "too-large"
    assert damage["expected"].startswith("at most ")
    assert memory < MOST_MEMORY + (checkpoint / STATE_FILE).stat().st_size


def test_a_file_that_differs_from_its_checksum_is_not_decompressed(checkpoint: Path) -> None:
    lz4_bomb(checkpoint / STATE_FILE, 224 * MIB)
    _, found, memory = inspect(checkpoint, "--operators")
    [damage] = [item for item in found["damage"] if item["path"] == STATE_FILE]
    assert damage["kind"] == "checksum"
    assert memory < MOST_MEMORY


def test_many_files_that_decompress_to_much_share_one_surplus(checkpoint: Path) -> None:
    """A GiB in 16 files; each alone would be read."""
    folder = (checkpoint / STATE_FILE).parent
    for path in {*folder.glob("*.crc"), *folder.glob("*.snapshot")}:
        path.unlink()
    for version in range(1, 17):
        zstd_bomb(folder / f"{version}.delta", 64 * MIB)
    found = [
        item
        for item in find_damage(open_checkpoint(LocalStore(checkpoint)), "all").damage
        if item.path.endswith(".delta")
    ]
    assert len([item for item in found if item.kind == "too-large"]) >= 12, found
    assert len([item for item in found if item.kind == "torn"]) <= 4, found


@pytest.mark.parametrize("width", [4, 5], ids=["aligned", "unaligned"])
def test_records_without_keys_do_not_take_many_times_their_size(width: int, checkpoint: Path) -> None:
    """Lengths that alternate, so that no run of equal records can be taken at once."""
    put_bomb(checkpoint, "zstd", 32 * MIB)
    pair = struct.pack(">ii", 0, -1) + struct.pack(">ii", 0, width) + bytes(width)
    plain = pair * (128 * MIB // len(pair)) + struct.pack(">i", -1)
    (checkpoint / STATE_FILE).write_bytes(pa.compress(plain, codec="zstd", asbytes=True))
    _, found, memory = inspect(checkpoint, "--operators")
    [damage] = [item for item in found["damage"] if item["path"] == STATE_FILE]
    assert (damage["kind"], damage["expected"]) == ("torn", "records, then -1 at the end")
    assert memory < MOST_MEMORY + 500 * MIB


@pytest.mark.parametrize("codec", BOMBS)
def test_the_limit_can_be_set(codec: str, checkpoint: Path) -> None:
    # LZF is expanded by our own code, at some MiB a second.
    size = 4 * MIB if codec == "lzf" else 64 * MIB
    put_bomb(checkpoint, codec, size)
    _, refused, _ = inspect(checkpoint, "--operators", "--max-bytes", size // 2)
    assert {item["kind"] for item in refused["damage"]} == {"too-large"}
    # With room for it the bytes are read, and found to be no records.
    _, read, _ = inspect(checkpoint, "--operators", "--max-bytes", f"{2 * size // MIB} MiB")
    assert {item["kind"] for item in read["damage"]} == {"torn"}


def test_the_limit_holds_for_all_files_of_a_version_together(checkpoint: Path) -> None:
    """Six deltas, each below the limit."""
    folder = (checkpoint / STATE_FILE).parent
    for path in folder.glob("*.delta"):
        largest = path.stat().st_size
        assert largest < 1000
    assert inspect(checkpoint, "--operators", "--max-bytes", "16KiB")[0] == 0
    records = b"".join(struct.pack(">ii", 4, number) + struct.pack(">i", -1) for number in range(500))
    plain = records + struct.pack(">i", -1)
    for path in (*folder.glob(".*.crc"), *folder.glob("*.snapshot")):
        path.unlink()
    for path in folder.glob("*.delta"):
        packed = pa.compress(plain, codec="snappy", asbytes=True)
        path.write_bytes(b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + struct.pack(">i", len(packed)) + packed)
    assert len(plain) < 16 << 10
    _, found, _ = inspect(checkpoint, "--operators", "--max-bytes", "16KiB")
    assert {item["kind"] for item in found["damage"]} == {"too-large"}


@pytest.mark.parametrize("promise", ["honest", "lying"])
def test_a_zip_that_expands_to_more_than_256_mib_is_damage(promise: str, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    metadata = {"batchWatermarkMs": 0, "batchTimestampMs": 1, "conf": {"spark.sql.shuffle.partitions": "1"}}
    files = {
        "metadata": b'{"id":"x"}',
        "offsets/0": f'v1\n{json.dumps(metadata)}\n{{"logOffset":0}}'.encode(),
        "commits/0": b'v1\n{"nextBatchWatermarkMs":0}',
    }
    for name, data in files.items():
        (checkpoint / name).parent.mkdir(parents=True, exist_ok=True)
        (checkpoint / name).write_bytes(data)
    target = checkpoint / "state/0/0/1.zip"
    target.parent.mkdir(parents=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("metadata", 'v1\n{"sstFiles":[],"logFiles":[],"numKeys":0}')
        for number in range(3):
            with archive.open(f"{number}.log", "w", force_zip64=True) as member:
                member.write(bytes(128 * MIB))
    if promise == "lying":
        shrink_promises(target)
    assert target.stat().st_size < 3 * MIB

    code, found, memory = inspect(checkpoint, "--operators")

    assert code == 3
    [damage] = [item for item in found["damage"] if item["path"] == "state/0/0/1.zip"]
    assert damage["kind"] == ("too-large" if promise == "honest" else "torn")
    assert memory < MOST_MEMORY


def shrink_promises(path: Path) -> None:
    """Make the central directory record 1,000 bytes for each large member."""
    data = bytearray(path.read_bytes())
    position = data.index(b"PK\1\2")
    while (position := data.find(b"PK\1\2", position)) != -1:
        (size,) = struct.unpack_from("<I", data, position + 24)
        if size > MIB:
            struct.pack_into("<I", data, position + 24, 1000)
        position += 4
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("path", "size", "expected"),
    [
        ("offsets/7", 20 * GIB, "at most 64 MiB"),
        ("commits/5", 65 * MIB, "at most 64 MiB"),
        ("metadata", 20 * GIB, "at most 64 MiB"),
        ("sources/0/9.compact", 20 * GIB, "at most 1 GiB"),
        ("state/0/0/_metadata/metadata", 20 * GIB, "at most 64 MiB"),
        (STATE_FILE, 20 * GIB, "at most 4 GiB"),
        ("offsets/.5.crc", 20 * GIB, "at most 64 MiB"),
    ],
)
def test_a_sparse_file_is_damage(path: str, size: int, expected: str, checkpoint: Path) -> None:
    target = checkpoint / path
    target.parent.mkdir(exist_ok=True)
    (target.parent / f".{target.name}.crc").unlink(missing_ok=True)
    with target.open("wb") as file:
        file.truncate(size)
    code, found, memory = inspect(checkpoint, "--operators")
    assert code == 3
    damage = {item["path"]: item for item in found["damage"]}[path]
    assert (damage["kind"], damage["expected"]) == ("too-large", expected)
    assert memory < MOST_MEMORY


def test_one_file_that_is_too_large_to_show(checkpoint: Path) -> None:
    with (checkpoint / "offsets/7").open("wb") as file:
        file.truncate(20 * GIB)
    command = [sys.executable, "-m", "slackwater", "inspect", str(checkpoint), "--raw", "offsets/7"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "--max-bytes" in done.stderr


@pytest.mark.parametrize("size", ["", "x", "-1", "0", "5 parsecs", "٣", "1.5"])
def test_a_limit_that_is_no_size(size: str, checkpoint: Path) -> None:
    code, _, _ = inspect(checkpoint, f"--max-bytes={size}")
    assert code == 2
