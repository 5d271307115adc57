"""Killed before the pending no-data batch: whether the source has unread data is for the source itself to say."""

import os
from pathlib import Path

import pytest

from tests.restart.small import HEADER, PIPELINE, SOURCE, SmallWorkspace
from tests.restart.test_no_data_batch import FIRST, SECOND, WAITING

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

CHOOSY = '.option("maxFileAge", "1h").option("fileNameOnly", "true").json("landing*")'
TABLE = f"""
@pipeline.stream(sink=sw.sinks.delta("table"))
def loaded(spark):
    return {SOURCE}

"""
FROM_TABLE = 'spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(context.output("loaded"))'


@pytest.mark.thorough
def test_files_that_the_source_does_not_take_hold_nothing_back(tmp_path: Path) -> None:
    """One is too old, the name of the other was read already."""
    unbroken, killed = (
        SmallWorkspace(tmp_path / name, text.replace('.json("landing")', CHOOSY))
        for name, text in (("unbroken", PIPELINE), ("killed", WAITING))
    )
    for workspace in (unbroken, killed):
        workspace.add("first", FIRST[:100])
        workspace.caught_up()
        workspace.add("more", FIRST[100:])
        workspace.add("first", SECOND, folder="landing-again")
        workspace.add("too-old", SECOND)
        os.utime(workspace.folder / "landing" / "too-old.json", (1_600_000_000, 1_600_000_000))
    killed.kill_idle(2)

    messages = killed.caught_up().stderr
    unbroken.caught_up()

    assert unbroken.rows()
    assert killed.rows() == unbroken.rows()
    assert "batch 3, without data, is planned first" in messages


@pytest.mark.thorough
def test_unread_versions_of_a_delta_table_are_read_first(tmp_path: Path) -> None:
    unbroken, killed = (
        SmallWorkspace(tmp_path / name, HEADER + TABLE + _from_table(text))
        for name, text in (("unbroken", PIPELINE), ("killed", WAITING))
    )
    for workspace in (unbroken, killed):
        workspace.add("first", FIRST)
        workspace.add("second", SECOND)
        workspace.caught_up("--stream", "loaded")
    unbroken.caught_up("--stream", "per_page")
    killed.kill_idle(0, "--stream", "per_page")
    assert (killed.ids("offsets"), killed.ids("commits")) == ([0], [0])

    killed.caught_up("--stream", "per_page")

    assert unbroken.rows()
    assert killed.rows() == unbroken.rows()


def _from_table(pipeline: str) -> str:
    text = pipeline.removeprefix(HEADER).replace(SOURCE, FROM_TABLE)
    return text.replace("def per_page(spark)", "def per_page(spark, context)")
