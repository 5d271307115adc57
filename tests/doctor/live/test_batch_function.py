"""Failures of a batch function, which writes without Spark's knowledge."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.doctor.live.frame import FILES, READ, RUN, SETTINGS, Failure, Scene, Silent, Stream, make_stream, prove
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

    def __init__(self, folder: Path, query: str, settings: Sequence[str]) -> None:
        super().__init__(folder, query, settings)
        self.output = folder / "copies"

    def rows(self, first: int = 0, last: int | None = None) -> Rows:
        """All rows; the function does not record which batch wrote them."""
        assert (first, last) == (0, None)
        lines = [line for file in self.output.glob("*.json") for line in file.read_text().splitlines()]
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
    """A batch function that catches errors."""
    return make_stream(tmp_path_factory.mktemp("copies"), SWALLOWS, SETTINGS, Copies)


def test_swallowed_error(copies: Stream) -> None:
    prove(copies, SWALLOWED)
