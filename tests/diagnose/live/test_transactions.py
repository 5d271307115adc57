"""A batch function writes to a Delta table with an application id, and a new checkpoint counts from 0 again."""

import json
import shlex
import shutil
from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.diagnose.live.delta_scene import DELTA, MINUTES, TO_TABLE
from tests.diagnose.live.frame import FILES, READ, Scene
from tests.support.outputs import Rows, row_text

pytestmark = pytest.mark.spark


def rows_of(table: Path) -> Rows:
    return Counter(row_text(row) for row in _read(table))


def _read(table: Path) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = DeltaTable(table).to_pyarrow_table().to_pylist()
    return rows


def test_delta_01_the_batches_of_a_new_checkpoint_are_written_again(tmp_path: Path) -> None:
    whole = Scene(tmp_path / "whole", TO_TABLE, DELTA)
    whole.arrive(0, FILES)
    assert whole.by_spark_alone(whole.folder / "checkpoint").returncode == 0
    expected = rows_of(whole.folder / "copies")
    scene = Scene(tmp_path / "scene", TO_TABLE, DELTA)
    checkpoint, table = scene.folder / "checkpoint", scene.folder / "copies"
    scene.arrive(0, READ)
    assert scene.by_spark_alone(checkpoint).returncode == 0
    shutil.rmtree(checkpoint)
    shutil.move(scene.folder / "landing", scene.folder / "archive")
    scene.arrive(READ, FILES)

    assert scene.by_spark_alone(checkpoint).returncode == 0, "Spark reports nothing"
    lost = sum((expected - rows_of(table)).values())
    assert lost == (FILES - READ) * len(MINUTES)

    shown = scene.type(f"slackwater doctor {shlex.quote(str(checkpoint))} --sink {table} --format json")
    first = json.loads(shown.stdout)["streams"][0]["findings"][0]
    assert (first["code"], first["risk"]) == ("SW-DELTA-001", "skip")
    assert "new txnAppId" in first["advice"]
    scene.change_code('"job"', '"job since the archive"')
    assert scene.type("mv " + first["advice"].partition(" after mv ")[2]).returncode == 0

    assert scene.by_spark_alone(checkpoint).returncode == 0
    assert rows_of(table) == expected
    assert "SW-DELTA-001" not in scene.type(f"slackwater doctor {checkpoint} --sink {table}").stdout
