"""The session of an application has the settings of the command line and slackwater.toml, and ends with its driver."""

import json
import signal
import zipfile
from pathlib import Path

import pytest

from slackwater.checkpoint.logs import read_logs
from slackwater.storage.local import LocalStore
from tests.support.processes import Command
from tests.unchanged.scene import listed_rows

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


def _application(folder: Path, files: int) -> None:
    (folder / "in").mkdir()
    for number in range(files):
        (folder / "in" / f"{number}.json").write_text(f'{{"id": {number}}}\n')
    (folder / "app.py").write_text(PROGRAM)


def test_every_command_gives_a_program_its_settings_and_a_signal_to_its_group_ends_it(tmp_path: Path) -> None:
    _application(tmp_path, 3)
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
    status = Command(["status", "--format", "json"], tmp_path)
    assert status.end() == 0, status.log
    (shown,) = json.loads(status.log[status.log.index("{") :])["streams"]
    for printed in (shown["check"], shown["next"]):
        assert printed.endswith(" --master 'local[1]' --conf spark.app.input=in --conf spark.ui.enabled=false")

    assert "same" in _ended(["check", *SETTINGS, "app.py"], tmp_path)
    (tmp_path / "slackwater.toml").write_text('master = "local[1]"\n[spark]\n"spark.app.input" = "in"\n')
    assert "same" in _ended(["check", "app.py"], tmp_path)


def test_a_driver_that_is_killed_alone_takes_its_jvm_with_it(tmp_path: Path) -> None:
    _application(tmp_path, 20)
    command = Command(["run", *SETTINGS, "app.py"], tmp_path)
    checkpoint = LocalStore(tmp_path / "checkpoints" / "local[1]")
    try:
        command.wait_for(lambda: read_logs(checkpoint).committed >= 1, "batches are committed")
        command.refresh()
        command.process.kill()
        assert command.gone_within(60), command.log
    finally:
        command.kill()
    assert read_logs(checkpoint).committed < 19, "killed while it ran"

    command = Command(["run", *SETTINGS, "app.py"], tmp_path)
    try:
        command.wait_for(lambda: read_logs(checkpoint).committed == 19, "all files are read")
        command.signal_group(signal.SIGTERM)
        assert command.end(60) == 0, command.log
    finally:
        command.kill()
    assert sorted(listed_rows(tmp_path / "out")) == sorted(f'{{"id":{number}}}' for number in range(20))


WITH_JARS = """
import json
from pathlib import Path
from pyspark.sql import SparkSession

spark = SparkSession.builder.config("spark.jars", "mine.jar").getOrCreate()
jars = spark.sparkContext._jsc.sc().listJars().toList()
Path("jars.json").write_text(json.dumps([jars.apply(at).rpartition("/")[2] for at in range(jars.size())]))
rows = spark.readStream.schema("id LONG").json(spark.conf.get("spark.app.input"))
writer = rows.groupBy("id").count().writeStream.format("noop").outputMode("update")
writer.option("checkpointLocation", "checkpoint").trigger(availableNow=True).start().awaitTermination()
"""


def test_a_program_has_the_jars_of_connectors_and_the_next_command_its_options(tmp_path: Path) -> None:
    _application(tmp_path, 1)
    with zipfile.ZipFile(tmp_path / "mine.jar", "w") as jar:
        jar.writestr("mine.txt", "mine")
    (tmp_path / "app.py").write_text(WITH_JARS)
    (tmp_path / "slackwater.toml").write_text('connectors = ["postgresql"]\n')
    _ended(["run", *SETTINGS, "app.py"], tmp_path)
    mine, postgresql = sorted(json.loads((tmp_path / "jars.json").read_text()))
    assert (mine, postgresql.startswith("postgresql-")) == ("mine.jar", True)

    (tmp_path / "app.py").write_text(WITH_JARS.replace('groupBy("id")', 'groupBy((rows.id % 2).alias("id"))'))
    given = "--master 'local[1]' --conf spark.app.input=in --conf spark.ui.enabled=false"
    for verb, code in (("check", 1), ("run", 5)):
        command = Command([verb, *SETTINGS, "app.py"], tmp_path)
        assert command.end() == code, command.log
        # Of a run, as a line of its own in the hint.
        planned = [line for line in command.log.splitlines() if "slackwater plan" in line]
        assert planned, command.log
        assert all(given in line for line in planned), command.log
