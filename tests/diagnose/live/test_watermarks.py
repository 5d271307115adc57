"""Failures of watermarks: a source that delivers nothing, and rows that arrive late."""

from pathlib import Path

import pytest

from tests.diagnose.live.frame import (
    FILES,
    READ,
    RUN,
    SETTINGS,
    TOTALS,
    Failure,
    Scene,
    Silent,
    Stream,
    findings_of,
    make_stream,
    prove,
    type_all,
    uninterrupted,
)
from tests.restart.scenario import SCHEMA
from tests.support.outputs import Rows

pytestmark = pytest.mark.spark

BATCHES = 10
"""As many as doctor compares."""


UNION = f"""
@pipeline.stream(sink=sw.sinks.files("parquet", "out"))
def per_page(spark):
    def read(files):
        rows = spark.readStream.schema("{SCHEMA}").option("maxFilesPerTrigger", 1).json(files)
        return rows.withWatermark("ts", "10 minutes")
    rows = read("landing/*.json").union(read("other/*.json"))
    return rows.groupBy(F.window("ts", "30 minutes"), "page").agg(F.sum("n").alias("n"))
"""


class TwoClocks(Scene):
    """Two folders with a file for each batch, each with a watermark."""

    def arrive(self, first: int, last: int) -> None:
        super().arrive(first, last)
        self.arrive_at_the_other(first, last)

    def arrive_at_the_other(self, first: int, last: int) -> None:
        """Files of the second folder alone."""
        for number in range(first, last):
            self.add(f"g{number}", [number * 15], page="b", n=number + 1, folder="other")


def second_folder_idle(scene: Scene) -> None:
    """The second folder gets no file while the first gets ten."""
    Scene.arrive(scene, READ, READ + BATCHES)
    scene.slackwater(*RUN)


def second_folder_delivers(scene: Scene) -> None:
    """Its files come, as doctor's advice asks for."""
    assert isinstance(scene, TwoClocks)
    scene.arrive_at_the_other(READ, READ + BATCHES)


def with_all_files(stream: Stream) -> Rows:
    """Of a query whose two folders got their files at the same time."""
    return uninterrupted(stream.folder / "both", UNION, SETTINGS, TwoClocks, READ + BATCHES)


IDLE = Failure(
    "WM-03",
    "one of two sources delivers nothing",
    second_folder_idle,
    spark=Silent(lacks=10),
    found="SW-WM-003",
    risk="stuck",
    goal=None,
    by_hand=second_folder_delivers,
    typed=("run",),
    expected=with_all_files,
    all_arrived=True,
)


@pytest.mark.thorough
@pytest.mark.parametrize("failure", [IDLE], ids=str)
def test_idle_source(tmp_path: Path, failure: Failure) -> None:
    prove(make_stream(tmp_path, UNION, SETTINGS, TwoClocks), failure)


LONGER = ("10 minutes", "70 minutes")


def test_rows_that_were_dropped_as_late_are_in_the_output_after_the_printed_commands(tmp_path: Path) -> None:
    """WM-10: the watermark has passed the window of a row that arrives."""
    scene = make_stream(tmp_path, TOTALS, SETTINGS).scene
    _late_row(scene)
    scene.slackwater(*RUN)
    found = findings_of(scene)[0]
    assert (found["code"], found["next"]) == ("SW-WM-010", "slackwater plan reset web/per_page --from earliest")
    scene.change_code(*LONGER)

    assert type_all(scene) == ["plan reset", "apply", "run"]
    scene.arrive(READ, FILES)
    scene.slackwater(*RUN)

    whole = Scene(tmp_path / "longer delay", TOTALS.replace(*LONGER), SETTINGS)
    whole.arrive(0, READ)
    _late_row(whole)
    whole.arrive(READ, FILES)
    ended = whole.by_spark_alone(tmp_path / "its checkpoint")
    assert ended.returncode == 0, ended.stderr
    assert scene.rows() == whole.rows()
    assert any("late" in row for row in scene.rows())
    assert findings_of(scene)[0]["code"] == "clean"


def _late_row(scene: Scene) -> None:
    scene.add("late", [1], page="late", n=100)
