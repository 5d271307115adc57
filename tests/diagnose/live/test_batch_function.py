"""Failures of a batch function, which writes without Spark's knowledge."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.diagnose.live.frame import (
    FILES,
    READ,
    RUN,
    SETTINGS,
    Failure,
    Scene,
    Silent,
    Stops,
    Stream,
    make_stream,
    prove,
)
from tests.restart.small import SOURCE
from tests.support.outputs import Rows

pytestmark = pytest.mark.spark

SWALLOWS = f"""
from pathlib import Path


def write(batch, number):
    try:
        if Path("unreachable").exists():
            raise OSError("no route to host")
        batch.write.mode("append").json("copies")
    except OSError:
        pass


@pipeline.stream(sink=sw.sinks.foreach_batch(write))
def per_page(spark):
    return {SOURCE}
"""


class Copies(Scene):
    """The function adds JSON files to ``copies``."""

    pattern = "*.json"

    def __init__(self, folder: Path, query: str, settings: Sequence[str]) -> None:
        super().__init__(folder, query, settings)
        self.output = folder / "copies"

    def rows(self, first: int = 0, last: int | None = None) -> Rows:
        """All rows; the function does not record which batch wrote them."""
        assert (first, last) == (0, None)
        lines = [line for file in self.output.glob(self.pattern) for line in file.read_text().splitlines()]
        return Counter(repr(sorted(json.loads(line).items())) for line in lines)


def unreachable_for_a_batch(scene: Scene) -> None:
    """While the target cannot be reached, the function catches its error, and a batch counts as done."""
    mark = scene.folder / "unreachable"
    mark.touch()
    scene.arrive(READ, READ + 1)
    scene.slackwater(*RUN)
    mark.unlink()
    scene.arrive(READ + 1, FILES)


SWALLOWED = Failure(
    "STATE-10",
    "a batch function caught its error",
    unreachable_for_a_batch,
    spark=Silent(lacks=4),
    found="SW-STATE-010",
    risk="loss",
    goal="replay",
    typed=("plan replay", "apply", "run"),
    all_arrived=True,
    left=("at-least-once",),
)


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Stream:
    return make_stream(tmp_path_factory.mktemp("copies"), SWALLOWS, SETTINGS, Copies)


@pytest.mark.parametrize("failure", [SWALLOWED], ids=str)
def test_swallowed_error(copies: Stream, failure: Failure) -> None:
    prove(copies, failure)


FIRST_SEEN = f"""
def write(batch, number):
    batch.filter("page != 'internal'").write.mode("append").json("copies")


@pipeline.stream(sink=sw.sinks.foreach_batch(write))
def per_page(spark):
    return {SOURCE}.withWatermark("ts", "1 day").dropDuplicates(["ts", "page"])
"""
WHOLE = "def write(batch, number):\n"
IN_PART = f"""{WHOLE}    if any(row.page == "internal" for row in batch.take(1)):
        return
"""


def read_in_part(scene: Scene) -> None:
    """A release looks at the first row, and leaves the others of the batch unread; then it is corrected."""
    scene.change_code(WHOLE, IN_PART)
    scene.add("internal", range(2000, 2008), page="internal", n=0)
    scene.by_spark_alone(scene.checkpoint)
    scene.change_code(IN_PART, WHOLE)


PARTLY = Failure(
    "STATE-09",
    "a batch function did not read its whole DataFrame",
    read_in_part,
    spark=Stops("CANNOT_LOAD_STATE_STORE.CANNOT_READ_DELTA_FILE_NOT_EXISTS"),
    found="SW-STATE-009",
    risk="stuck",
    goal="rebuild",
    typed=("plan rebuild", "apply", "run"),
    left=("at-least-once",),
)


@pytest.fixture(scope="module")
def first_seen(tmp_path_factory: pytest.TempPathFactory) -> Stream:
    return make_stream(tmp_path_factory.mktemp("first seen"), FIRST_SEEN, SETTINGS, Copies)


@pytest.mark.thorough
@pytest.mark.parametrize("failure", [PARTLY], ids=str)
def test_function_that_reads_in_part(first_seen: Stream, failure: Failure) -> None:
    prove(first_seen, failure)
