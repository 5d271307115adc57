"""Two drivers of one query: a scheduler starts a second one while the first is still at work."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.diagnose.live.frame import FILES, OWN, READ, SETTINGS, findings_of, make_stream, type_all
from tests.diagnose.live.test_batch_function import Copies
from tests.restart.small import SOURCE

pytestmark = pytest.mark.spark

WAIT_S = 120
BATCH = READ
SLOW = f"""
import time
from pathlib import Path


def write(batch, number):
    batch.write.mode("append").json(f"copies/{{number}}")
    if Path("slow").exists():
        Path("slow").rename("written")
        while not Path("go").exists():
            time.sleep(0.05)


@pipeline.stream(sink=sw.sinks.foreach_batch(write))
def per_page(spark):
    return {SOURCE}
"""


class Folders(Copies):
    pattern = "*/*.json"


def start_first(scene: Folders) -> subprocess.Popen[bytes]:
    """A driver of its own, which has written a batch and not yet committed it."""
    (scene.folder / "slow").touch()
    with (scene.folder / "first.log").open("wb") as log:
        command = [sys.executable, OWN.name, str(scene.checkpoint), "availableNow", *SETTINGS]
        process = subprocess.Popen(command, cwd=scene.folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    deadline = time.monotonic() + WAIT_S
    while not (scene.folder / "written").exists():
        assert process.poll() is None, (scene.folder / "first.log").read_text()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return process


def test_share_01_two_drivers_use_one_checkpoint(tmp_path: Path) -> None:
    stream = make_stream(tmp_path, SLOW, SETTINGS, Folders)
    scene = stream.scene
    assert isinstance(scene, Folders)
    scene.arrive(READ, FILES)
    first = start_first(scene)
    try:
        assert scene.by_spark_alone(scene.checkpoint).returncode == 0, "Spark reports nothing to the faster one"
        (scene.folder / "go").touch()
        assert first.wait(WAIT_S) == 1
    finally:
        first.kill()
    log = (scene.folder / "first.log").read_text()
    assert f"Multiple streaming jobs detected for {BATCH}" in log
    doubled = scene.rows() - stream.rows
    assert (doubled.total(), stream.rows - scene.rows()) == (4, {})

    shown = scene.type("slackwater doctor web/per_page --error first.log --format json")
    [symptom] = json.loads(shown.stdout)["streams"][0]["errors"]
    causes = [(one["code"], one["state"]) for one in symptom["causes"]]
    assert causes == [("SHARE-01", "not-visible"), ("LOG-07", "excluded")]
    second_copy_removed(scene)

    assert type_all(scene) == ["run"]
    assert scene.rows() == stream.rows
    assert [one["code"] for one in findings_of(scene) if one["severity"] != "info"] == ["at-least-once"]


def second_copy_removed(scene: Folders) -> None:
    """Of the files of the batch that the error names, those of one driver are deleted."""
    one, *others = [file for file in (scene.output / str(BATCH)).glob("*.json") if file.stat().st_size]
    assert [file.read_text() for file in others] == [one.read_text()]
    one.unlink()
