"""Failures of the tables of a RocksDB state store."""

import json
import shutil
import zipfile
from collections import defaultdict
from pathlib import Path

import pytest

from tests.diagnose.live.frame import SETTINGS, TOTALS, Failure, Scene, Stops, make_stream, prove

pytestmark = [pytest.mark.spark, pytest.mark.thorough]

PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
ROCKSDB = (*SETTINGS, f"spark.sql.streaming.stateStore.providerClass={PROVIDER}")


def tables_of(version: Path) -> list[Path]:
    with zipfile.ZipFile(version) as archive:
        text = archive.read("metadata").decode().partition("\n")[2]
    return [version.parent / "SSTs" / one["dfsSstFileName"] for one in json.loads(text)["sstFiles"]]


def tables_swapped(scene: Scene) -> None:
    """A table has another one's content, of its size, as two attempts of one task leave it under one name."""
    for partition in (0, 1):
        folder = scene.checkpoint / "state" / "0" / str(partition)
        used = set(tables_of(folder / f"{scene.newest + 1}.zip"))
        sizes = defaultdict(list)
        for table in sorted((folder / "SSTs").glob("*.sst")):
            sizes[table.stat().st_size].append(table)
        for same in sizes.values():
            mine = next((one for one in same if one in used), None)
            other = next((one for one in same if one != mine), None)
            if mine is not None and other is not None:
                mine.with_name(f".{mine.name}.crc").unlink(missing_ok=True)
                shutil.copy(other, mine)
                return
    raise AssertionError("no two tables have the same size")


MIXED = Failure(
    "STATE-08",
    "a table is that of another attempt",
    tables_swapped,
    spark=Stops("[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state"),
    found="checkpoint-damaged",
    risk="stuck",
    goal="rebuild",
    typed=("plan rebuild", "apply", "run"),
    doctor="slackwater doctor --verify",
)


@pytest.mark.parametrize("failure", [MIXED], ids=str)
def test_mixed_tables(tmp_path: Path, failure: Failure) -> None:
    prove(make_stream(tmp_path, TOTALS, ROCKSDB), failure)
