"""Changes after which nothing has to be done: Spark continues, and so does a run, to the rows of an unchanged query."""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.diagnose.live.frame import (
    COMPACTING,
    COPIED,
    FILES,
    OWN,
    READ,
    SETTINGS,
    TOTALS,
    Scene,
    findings_of,
    uninterrupted,
)
from tests.restart.small import Saved
from tests.support.outputs import Rows, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.thorough]

STORE = "spark.sql.streaming.stateStore"
ROCKSDB = f"{STORE}.providerClass=org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHANGELOG = f"{STORE}.rocksdb.changelogCheckpointing.enabled"
ADAPTIVE = "spark.sql.adaptive.enabled"
RUN = "slackwater run clicks.py --until-caught-up"
WRITES = """
def write(batch, number):
    batch.selectExpr("*", "'before' AS code").write.mode("append").json("copies")
"""


@dataclass(frozen=True)
class Setting:
    """A setting of the session that is another one from the second start on."""

    what: str
    query: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    def __str__(self) -> str:
        return self.what


ALLOWED = [
    Setting("changelogs on", TOTALS, (ROCKSDB, f"{CHANGELOG}=false"), (ROCKSDB, f"{CHANGELOG}=true")),
    Setting("changelogs off", TOTALS, (ROCKSDB, f"{CHANGELOG}=true"), (ROCKSDB, f"{CHANGELOG}=false")),
    Setting("adaptive execution on", COPIED, (f"{ADAPTIVE}=false",), (f"{ADAPTIVE}=true",)),
    Setting("adaptive execution off", COPIED, (f"{ADAPTIVE}=true",), (f"{ADAPTIVE}=false",)),
]


@pytest.mark.parametrize("setting", ALLOWED, ids=str)
def test_a_setting_may_change(tmp_path: Path, setting: Setting) -> None:
    expected = uninterrupted(tmp_path / "whole", setting.query, (*SETTINGS, *setting.before))
    scene = Scene(tmp_path / "scene", setting.query, (*SETTINGS, *setting.before))
    scene.arrive(0, READ)
    assert scene.type(RUN).returncode == 0
    scene.arrive(READ, FILES)
    scene.configure((*SETTINGS, *setting.after))
    stopped = Saved(scene, tmp_path / "stopped")

    assert scene.by_spark_alone(scene.checkpoint).returncode == 0
    assert scene.rows() == expected
    stopped.restore()

    assert [one for one in findings_of(scene) if one["severity"] == "stop"] == []
    ended = scene.type(RUN)
    assert (ended.returncode, scene.rows()) == (0, expected), ended.stderr


@pytest.mark.parametrize("query", [COPIED, TOTALS], ids=["stateless", "stateful"])
def test_a_checkpoint_may_be_moved(tmp_path: Path, query: str) -> None:
    expected = uninterrupted(tmp_path / "whole", query)
    scene = Scene(tmp_path / "scene", query, SETTINGS)
    checkpoint, moved = scene.folder / "checkpoint", scene.folder / "moved"
    scene.arrive(0, READ)
    assert scene.by_spark_alone(checkpoint).returncode == 0
    checkpoint.rename(moved)
    scene.arrive(READ, FILES)

    found = scene.type(f"slackwater doctor {moved} --sink {scene.output} --format json")
    assert [one for one in json.loads(found.stdout)["streams"][0]["findings"] if one["severity"] == "stop"] == []
    assert scene.by_spark_alone(moved).returncode == 0
    assert scene.rows() == expected


def of_copies(scene: Scene) -> Rows:
    files = (scene.folder / "copies").glob("*.json")
    return Counter(json.loads(line)["code"] for file in files for line in file.read_text().splitlines())


def test_the_code_of_a_batch_function_may_change(tmp_path: Path) -> None:
    scene = Scene(
        tmp_path / "scene",
        COPIED.replace('sw.sinks.files("parquet", "out")', "sw.sinks.foreach_batch(write)"),
        SETTINGS,
    )
    scene.write((scene.folder / "clicks.py").read_text().replace("@pipeline", f"{WRITES}\n\n@pipeline"))
    scene.arrive(0, READ)
    assert scene.type(RUN).returncode == 0
    scene.arrive(READ, FILES)
    scene.change_code("'before'", "'after'")
    stopped = Saved(scene, tmp_path / "stopped")
    expected = {"before": 4 * READ, "after": 4 * (FILES - READ)}

    assert scene.by_spark_alone(scene.checkpoint).returncode == 0
    assert of_copies(scene) == expected
    stopped.restore()

    ended = scene.type(RUN)
    assert (ended.returncode, of_copies(scene)) == (0, expected), ended.stderr


def test_spark_continues_from_the_file_sink_to_a_batch_function(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "scene", COPIED, COMPACTING)
    scene.arrive(0, READ)
    assert scene.type(RUN).returncode == 0
    written = scene.rows()
    scene.arrive(READ, FILES)
    scene.change_code("@pipeline", f"{WRITES}\n\n@pipeline")
    changed = Saved(scene, tmp_path / "changed")

    assert scene.by_spark_alone(scene.checkpoint).returncode == 0
    assert (scene.rows(), of_copies(scene)) == (written, {"before": 4 * (FILES - READ)})
    changed.restore()

    scene.change_code('sw.sinks.files("parquet", "out")', "sw.sinks.foreach_batch(write)")
    _refused_until_the_old_sink_is_back(scene, tmp_path, "sw.sinks.foreach_batch(write)")


@pytest.mark.parametrize("sink", ["a batch function", "another folder"])
def test_a_file_sink_that_does_not_have_the_first_batches_fails_at_its_compaction(tmp_path: Path, sink: str) -> None:
    scene = Scene(tmp_path / "scene", COPIED, COMPACTING)
    if sink == "a batch function":
        scene.change_code("@pipeline", f"{WRITES}\n\n@pipeline")
    scene.arrive(0, READ)
    assert scene.by_spark_alone(scene.folder / "checkpoint").returncode == 0
    scene.write((scene.folder / "clicks.py").read_text().replace(WRITES, ""))
    # The program writes to a file sink in a folder from now on.
    folder = "other"
    program = scene.folder / OWN.name
    program.write_text(program.read_text().replace('"out"', f'"{folder}"'))
    scene.arrive(READ, FILES)

    ended = scene.by_spark_alone(scene.folder / "checkpoint")

    assert ended.returncode == 1
    assert "BATCH_METADATA_NOT_FOUND" in ended.stderr


def test_another_folder_is_refused_and_the_old_one_leads_to_all_rows(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "scene", COPIED, COMPACTING)
    scene.arrive(0, READ)
    assert scene.type(RUN).returncode == 0
    scene.arrive(READ, FILES)
    scene.change_code('"out"', '"other"')

    _refused_until_the_old_sink_is_back(scene, tmp_path, 'sw.sinks.files("parquet", "other")')


def _refused_until_the_old_sink_is_back(scene: Scene, folder: Path, new: str) -> None:
    expected = uninterrupted(folder / "whole", COPIED, COMPACTING)
    refused = scene.type(RUN)
    assert (refused.returncode, "sink-changed" in refused.stderr) == (5, True), refused.stderr
    scene.change_code(new, 'sw.sinks.files("parquet", "out")')
    ended = scene.type(RUN)
    assert (ended.returncode, rows_of(scene.output)) == (0, expected), ended.stderr
