"""``status`` after a real run: the files that came since are the lag."""

import json

import pytest

from tests.runtime.project import Project

PIPELINE = """
import slackwater as sw

pipeline = sw.Pipeline("work")

@pipeline.stream(sink=sw.sinks.files("json", "out"))
def copied(spark):
    # One file a batch, whatever the number of cores.
    return spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 2).json("in").coalesce(1)

@pipeline.stream(sink=sw.sinks.files("json", "out2"))
def again(spark, context):
    return spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1).json(context.output("copied"))
"""


@pytest.mark.spark
def test_files_that_came_after_the_run_are_the_lag(project: Project) -> None:
    project.write(PIPELINE)
    project.add_files(3)
    project.run("--until-caught-up")
    assert lags(project) == {"copied": 0, "again": 0}

    project.add_files(2)
    assert lags(project) == {"copied": 2, "again": 0}
    project.run("--until-caught-up", "--stream", "copied")
    assert lags(project) == {"copied": 0, "again": 1}


def lags(project: Project) -> dict[str, int | None]:
    command = project.start("status", "--format", "json")
    assert command.end() == 0, command.log
    document = json.loads(command.log)
    return {stream["name"]: stream["lag_files"] for stream in document["streams"]}
