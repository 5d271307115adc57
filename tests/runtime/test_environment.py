"""Without Java or PySpark, or with settings that Spark does not take, a run ends at once with a hint."""

import os
import sysconfig
from pathlib import Path

import pytest

import slackwater
from tests.runtime.project import Project
from tests.support.processes import Command

PIPELINE = """
import slackwater as sw

pipeline = sw.Pipeline("work")

@pipeline.stream(sink=sw.sinks.files("json", "out"))
def rows(spark):
    return spark.readStream.schema("id LONG").json("in")
"""


def test_no_java(project: Project) -> None:
    project.write(PIPELINE)
    command = project.start("run", "pipeline.py", environment={"JAVA_HOME": str(project.folder / "none")})
    assert command.end(30) == 9, command.log
    assert "error java-missing: " in command.log
    assert "hint: set JAVA_HOME to the folder of a Java 17 runtime, or unset it to use java on PATH" in command.log
    assert not Path(project.home.location).exists()


def test_no_pyspark(project: Project) -> None:
    project.write(PIPELINE)
    command = project.start("run", "pipeline.py", environment=_without_pyspark(project.folder / "packages"))
    assert command.end(30) == 9, command.log
    assert "error pyspark-missing: " in command.log
    assert "hint: pip install 'pyspark<4.2' pandas 'protobuf<7'" in command.log


@pytest.mark.parametrize("master", ["nosuch", "local[some]", "spark://", "local [2]"])
def test_a_master_that_is_none(project: Project, master: str) -> None:
    project.write(PIPELINE)
    command = project.start("run", "pipeline.py", "--master", master)
    assert command.end(30) == 2, command.log
    assert "error master: " in command.log
    assert f"; found {master}\n" in command.log


@pytest.mark.parametrize(
    "setting",
    [
        "spark.driver.memory=abc",
        "spark.driver.memory=512mb",
        "spark.executor.memory=0",
        "spark.executor.cores=1.5",
        "spark.cores.max=-1",
    ],
)
def test_a_setting_with_which_no_jvm_starts(project: Project, setting: str) -> None:
    project.write(PIPELINE)
    key, _, value = setting.partition("=")
    command = project.start("run", "pipeline.py", "--conf", setting)
    assert command.end(30) == 2, command.log
    assert f" at {key}; expected " in command.log
    assert f"; found {value}\n" in command.log
    assert "\tat " not in command.log


@pytest.mark.spark
@pytest.mark.parametrize(
    "setting", [pytest.param("spark.driver.memory=768m", marks=pytest.mark.thorough), "spark.executor.memory= 1GB"]
)
def test_a_setting_with_which_a_jvm_starts(project: Project, setting: str) -> None:
    project.write(PIPELINE)
    assert project.start("run", "pipeline.py", "--until-caught-up", "--conf", setting).end(90) == 0


@pytest.mark.spark
@pytest.mark.parametrize(
    ("setting", "exit_code", "message"),
    [
        ("spark.sql.shuffle.partitions=some", 2, "error spark-setting: "),
        ("spark.driver.port=some", 7, "error spark-start: "),
    ],
)
def test_a_setting_that_spark_does_not_take(project: Project, setting: str, exit_code: int, message: str) -> None:
    project.write(PIPELINE)
    command = project.start("run", "pipeline.py", "--conf", setting)
    assert command.end(60) == exit_code, command.log
    assert message in command.log
    assert "Traceback" not in command.log
    assert "hint: " in command.log


PIPELINE_WITH_MODULE = """
import os
from pathlib import Path

import slackwater as sw
from pyspark.sql import functions as F

import beside

pipeline = sw.Pipeline("work")

@pipeline.stream(sink=sw.sinks.files("json", "out"))
def rows(spark):
    Path("environment.txt").write_text(os.environ.get("PYTHONPATH", ""))
    rows = spark.readStream.schema("id LONG").json("in")
    return rows.withColumn("id", F.udf(lambda number: __import__("beside").add_ten(number), "long")("id"))
"""


@pytest.mark.spark
def test_workers_import_modules_beside_the_pipeline_and_the_environment_is_unchanged(project: Project) -> None:
    project.write(PIPELINE_WITH_MODULE)
    project.write("def add_ten(number):\n    return number + 10\n", "beside.py")
    project.add_files(2)
    # From another folder: nothing but the path of the workers leads to the module.
    elsewhere = project.folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "in").symlink_to(project.input)
    path = str(Path(slackwater.__file__).parents[1])
    command = Command(["run", "../pipeline.py", "--until-caught-up"], elsewhere, environment={"PYTHONPATH": path})
    project.commands.append(command)
    assert command.end(90) == 0, command.log
    assert project.ids("elsewhere/out") == [10, 11]
    assert (elsewhere / "environment.txt").read_text() == path


def _without_pyspark(folder: Path) -> dict[str, str]:
    """An environment with all installed packages but PySpark: links to them, on a path that comes alone."""
    folder.mkdir()
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if not package.name.lower().startswith(("pyspark", "__pycache__")) and package.suffix != ".pth":
            (folder / package.name).symlink_to(package)
    (folder / "sitecustomize.py").write_text(
        "import sys, sysconfig\nsys.path[:] = [path for path in sys.path if path != sysconfig.get_path('purelib')]\n"
    )
    source = Path(slackwater.__file__).parents[1]
    return {"PYTHONPATH": os.pathsep.join([str(folder), str(source)])}
