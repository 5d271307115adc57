"""Failures of checkpoints and outputs on S3: another spelling of an address, and files that are made by renames."""

import json
from pathlib import Path

import pytest

from slackwater.storage.open import open_write_store
from tests.diagnose.live.frame import (
    COPIED,
    FILES,
    OWN,
    READ,
    RUN,
    SETTINGS,
    Scene,
    findings_of,
    type_all,
    uninterrupted,
)
from tests.restart.stored import STREAM_FOLDER

pytestmark = [pytest.mark.spark, pytest.mark.thorough]


def settings_of(endpoint: str) -> tuple[str, ...]:
    """Spark's for this S3, which the address ``s3:`` reaches as well as ``s3a:``, as on Amazon's EMR."""
    hadoop = {
        "s3a.endpoint": endpoint,
        "s3a.endpoint.region": "us-east-1",
        "s3a.path.style.access": "true",
        "s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    }
    return (*SETTINGS, *(f"spark.hadoop.fs.{name}={value}" for name, value in hadoop.items()))


READER = """
import sys
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
for setting in sys.argv[2:]:
    builder = builder.config(*setting.split("="))
print(builder.getOrCreate().read.parquet(sys.argv[1]).count())
"""


def rows_that_readers_see(scene: Scene, output: str) -> int:
    """The rows of a query of Spark's at this address."""
    (scene.folder / "read.py").write_text(READER)
    return int(scene.program("read.py", output, *scene.settings).stdout)


def test_move_05_an_address_with_another_scheme(tmp_path: Path, s3_endpoint: str, s3_location: str) -> None:
    scene = Scene(tmp_path / "scene", COPIED, settings_of(s3_endpoint))
    old, new = f"{s3_location}/out", f"{s3_location.replace('s3a:', 's3:')}/out"
    checkpoint, program = scene.folder / "checkpoint", scene.folder / OWN.name
    scene.arrive(0, READ)
    program.write_text(program.read_text().replace('"out"', f'"{old}"'))
    assert scene.by_spark_alone(checkpoint).returncode == 0
    program.write_text(program.read_text().replace(old, new))
    scene.arrive(READ, FILES)

    assert scene.by_spark_alone(checkpoint).returncode == 0, "Spark reports nothing"
    assert rows_that_readers_see(scene, new) == 4 * (FILES - READ)

    shown = scene.type(f"slackwater doctor {checkpoint} --sink {new} --format json")
    first = json.loads(shown.stdout)["streams"][0]["findings"][0]
    assert (first["code"], first["risk"], first["at_stake"]) == ("SW-MOVE-003", "loss", f"the rows of {READ} files")
    assert f"replace {old} by the address of {new}" in first["advice"]
    store = open_write_store(new)
    for entry in store.list("_spark_metadata"):
        path = f"_spark_metadata/{entry.name}"
        store.write(path, store.read(path).replace(f"{old}/".encode(), f"{new}/".encode()))

    assert rows_that_readers_see(scene, new) == 4 * FILES
    assert scene.by_spark_alone(checkpoint).returncode == 0
    assert "SW-MOVE-003" not in scene.type(f"slackwater doctor {checkpoint} --sink {new}").stdout


def test_store_01_a_part_of_a_file_under_its_name(tmp_path: Path, s3_endpoint: str, s3_location: str) -> None:
    """The driver died while the store copied the entry of a batch to its name."""
    expected = uninterrupted(tmp_path / "whole", COPIED)
    scene = Scene(tmp_path / "scene", COPIED, settings_of(s3_endpoint))
    settings = scene.folder / "slackwater.toml"
    settings.write_text(f'home = "{s3_location}/home"\nledger = "{scene.folder}/ledger.db"\n{settings.read_text()}')
    checkpoint = f"{s3_location}/home/{STREAM_FOLDER.partition('/')[2]}/checkpoints/0001"
    scene.arrive(0, READ)
    scene.slackwater(*RUN)
    open_write_store(checkpoint).write(f"offsets/{READ}", b'v1\n{"batchWatermarkMs":0,"batchTi')
    scene.arrive(READ, FILES)

    failed = scene.program(OWN.name, checkpoint, "availableNow", *scene.settings)
    assert failed.returncode == 1
    assert "Unexpected end-of-input" in failed.stderr

    found = {one["code"]: one for one in findings_of(scene)}
    assert {"SW-LOG-001", "SW-STORE-001"} <= found.keys()
    assert found["SW-STORE-001"]["found"] == "the default, which renames"

    assert type_all(scene) == ["plan resume", "apply", "run"]
    assert scene.rows() == expected
    left = [one["code"] for one in findings_of(scene) if one["severity"] != "info"]
    assert left == ["SW-STORE-001"], "the next crash can do it again"
