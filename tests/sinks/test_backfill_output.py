"""A backfill directory on each kind of store: who owns it, what is in it, and what of it is removed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slackwater.core.errors import Refused
from slackwater.core.sink import BackfillDirectory
from slackwater.sinks.files.backfill_output import claim, discard, found_in, open_backfill_output
from slackwater.storage.open import open_write_store
from slackwater.storage.protocols import LEFTOVER

OPERATION, OTHER = "20260105T093000-1a2b3c", "20260105T093000-ffffff"
INTERRUPTED = "day=2/part-00000-6f5c1c2e-0f6b-4a43-9d1e-2f4f5b7f0a11.c000.snappy.parquet"


@pytest.fixture(params=["local", "memory", "s3"])
def output(request: pytest.FixtureRequest, tmp_path: Path) -> BackfillDirectory:
    if request.param == "s3":
        return BackfillDirectory("parquet", f"{request.getfixturevalue('s3_location')}/side")
    return BackfillDirectory(
        "parquet", str(tmp_path / "side") if request.param == "local" else f"memory:/{tmp_path}/side"
    )


def _fill(output: BackfillDirectory) -> None:
    """What a batch writes, and one that was interrupted before it."""
    store = open_write_store(output.path)
    root = f"file://{output.path}" if output.path.startswith("/") else output.path
    line = {"path": f"{root}/day=1/rows.parquet", "size": 4, "modificationTime": 1, "action": "add"}
    store.write("day=1/rows.parquet", b"rows")
    store.write(INTERRUPTED, b"row")
    store.write("_spark_metadata/0", f"v1\n{json.dumps(line)}".encode())
    store.write("_spark_metadata/.0.crc", b"crc")


def test_nothing_is_left_of_what_was_written(output: BackfillDirectory) -> None:
    assert found_in(output) == ()
    claim(output, OPERATION, "clicks/per_page", "/home")
    _fill(output)
    store = open_write_store(output.path)
    store.write(f".half{LEFTOVER}", b"half")
    assert open_backfill_output(output).last_written() == 0
    assert found_in(output) == ("_slackwater.json", "_spark_metadata", "day=1", "day=2")

    for _ in range(2):
        discard(output, OPERATION)

        assert found_in(output) == ()
        assert not any(folder.files for folder in store.folders())
        assert store.local_path("") is None or store.list() == ()


def test_what_is_not_its_own_stays(output: BackfillDirectory) -> None:
    claim(output, OPERATION, "clicks/per_page", "/home")
    _fill(output)
    store = open_write_store(output.path)
    store.write("day=1/notes.parquet", b"mine")

    discard(output, OTHER)
    assert found_in(output) == ("_slackwater.json", "_spark_metadata", "day=1", "day=2")
    with pytest.raises(Refused, match="Another stream"):
        claim(output, OTHER, "clicks/later", "/home")

    discard(output, OPERATION)
    left = [(folder.path, folder.files) for folder in store.folders() if folder.files]
    assert left == [("day=1", ("notes.parquet",))]
