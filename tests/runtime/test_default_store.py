"""A configuration of Hadoop whose default file system is HDFS, where Spark would look for paths without a scheme."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.project import Project
from tests.support.hdfs import HdfsServer

PIPELINE = """
import slackwater as sw

pipeline = sw.Pipeline("work")


@pipeline.stream(sink=sw.sinks.files("json", {out}), checkpoint={checkpoint})
def rows(spark):
    return spark.readStream.schema("id LONG").json({source})
"""
SETTING = "spark.hadoop.fs.defaultFS"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    project = Project(tmp_path)
    project.add_files(4)
    yield project
    for command in project.commands:
        command.kill()


def _write(project: Project, out: str, checkpoint: str | None, source: str = "in") -> None:
    project.write(PIPELINE.format(out=repr(out), checkpoint=repr(checkpoint), source=repr(source)))


STORED = "hdfs://host:9000"


@pytest.mark.parametrize(
    ("locations", "named"),
    [
        ((".slackwater", f"{STORED}/out", None), "FOLDER/.slackwater"),
        ((f"{STORED}/home", "out", f"{STORED}/checkpoint"), "FOLDER/out"),
        ((f"{STORED}/home", f"{STORED}/out", "checkpoint"), "checkpoint"),
    ],
)
def test_a_path_without_a_scheme_is_refused(
    project: Project, tmp_path: Path, locations: tuple[str, str, str | None], named: str
) -> None:
    home, out, checkpoint = locations
    _write(project, out, checkpoint)
    arguments = ("run", "pipeline.py", "--until-caught-up", "--home", home)
    default = STORED
    (tmp_path / "conf").mkdir()
    setting = f"<property><name>fs.defaultFS</name><value>{default}</value></property>"
    (tmp_path / "conf" / "core-site.xml").write_text(f"<configuration>{setting}</configuration>")
    command = project.start(*arguments, environment={"HADOOP_CONF_DIR": str(tmp_path / "conf")})
    assert command.end() == 2, command.log
    assert "default-file-system" in command.log
    assert f" at {named.replace('FOLDER', str(tmp_path))}; " in command.log
    assert SETTING in command.log


@pytest.mark.spark
def test_paths_of_this_machine_with_the_setting_that_is_named(project: Project, hdfs_server: HdfsServer) -> None:
    _write(project, "out", None)
    environment = hdfs_server.environment()
    refused = project.start("run", "pipeline.py", "--until-caught-up", environment=environment)
    assert refused.end() == 2, refused.log
    before = hdfs_server.filesystem().find("/")
    run = project.start(
        "run", "pipeline.py", "--until-caught-up", "--conf", f"{SETTING}=file:///", environment=environment
    )
    assert run.end() == 0, run.log
    assert project.ids("out") == [0, 1, 2, 3]
    assert hdfs_server.filesystem().find("/") == before
