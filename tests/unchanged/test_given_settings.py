"""The settings of the command line and of slackwater.toml reach the session that an application makes itself."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from slackwater.checkpoint.logs import read_logs
from slackwater.storage.local import LocalStore
from tests.support.processes import Command

pytestmark = pytest.mark.spark
SETTINGS = ("--master", "local[1]", "--conf", "spark.app.input=in", "--conf", "spark.ui.enabled=false")
PROGRAM = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1).json(spark.conf.get("spark.app.input"))
writer = rows.writeStream.format("json").option("checkpointLocation", f"checkpoints/{spark.sparkContext.master}")
writer.start("out").awaitTermination()
"""


def _ended(words: list[str], folder: Path) -> str:
    command = Command(words, folder)
    try:
        assert command.end() == 0, command.log
        assert command.gone_within(20), command.log
    finally:
        command.kill()
    return command.log


def test_every_command_gives_a_program_its_settings_and_a_signal_to_its_group_ends_it(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(3):
        (tmp_path / "in" / f"{number}.json").write_text(f'{{"id": {number}}}\n')
    (tmp_path / "app.py").write_text(PROGRAM)
    command = Command(["run", *SETTINGS, "app.py"], tmp_path)
    checkpoint = tmp_path / "checkpoints" / "local[1]"
    try:
        command.wait_for(lambda: read_logs(LocalStore(checkpoint)).committed >= 1, "batches are committed")
        command.signal_group(signal.SIGTERM)
        assert command.end(60) == 0, command.log
        assert "Traceback" not in command.log
        assert "no longer answers" not in command.log
        assert command.gone_within(20), command.log
    finally:
        command.kill()
    logs = read_logs(LocalStore(checkpoint))
    assert logs.planned == logs.committed

    assert "same" in _ended(["check", *SETTINGS, "app.py"], tmp_path)
    (tmp_path / "slackwater.toml").write_text('master = "local[1]"\n[spark]\n"spark.app.input" = "in"\n')
    assert "same" in _ended(["check", "app.py"], tmp_path)
