"""Failures by two queries that share a checkpoint or an output, or by two sources that change places."""

from pathlib import Path

import pytest

from tests.diagnose.live.frame import (
    FILES,
    OWN,
    READ,
    SETTINGS,
    Failure,
    Scene,
    Silent,
    Stream,
    in_gate,
    make_stream,
    prove,
)
from tests.restart.scenario import SCHEMA

pytestmark = pytest.mark.spark

REBUILT = ("plan rebuild", "apply", "run")
LANDING, OTHER = 'read("landing/*.json")', 'read("other/*.json")'
UNION = f"""
@pipeline.stream(sink=sw.sinks.files("parquet", "out"))
def per_page(spark):
    def read(files):
        return spark.readStream.schema("{SCHEMA}").option("maxFilesPerTrigger", 1).json(files)
    return {LANDING}.union({OTHER})
"""


class TwoInputs(Scene):
    def arrive(self, first: int, last: int) -> None:
        super().arrive(first, last)
        for number in range(first, last):
            self.add(f"g{number}", [number * 15], page="b", n=number + 1, folder="other")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Stream:
    return make_stream(tmp_path_factory.mktemp("both"), UNION, SETTINGS, TwoInputs)


def another_program(scene: Scene, output: str, checkpoint: Path, files: str) -> None:
    """A copy of the query with another output, or another input, runs once and is gone."""
    code, program = scene.folder / "clicks.py", scene.folder / OWN.name
    before = code.read_text(), program.read_text()
    code.write_text(before[0].replace("landing", files))
    program.write_text(before[1].replace('"out"', f'"{output}"'))
    ended = scene.by_spark_alone(checkpoint)
    assert ended.returncode == 0, ended.stderr
    code.write_text(before[0])
    program.write_text(before[1])


def checkpoint_of_another(scene: Scene) -> None:
    """A copy of the query, for a test, has its own output and the same checkpoint: it takes the next files."""
    scene.arrive(READ, FILES)
    another_program(scene, "of-a-test", scene.checkpoint, "landing")


def output_of_another(scene: Scene) -> None:
    """Another query, with seven batches of its own, writes to the same output."""
    for number in range(7):
        scene.add(f"other{number}", [number], page="other", folder="elsewhere")
    another_program(scene, "out", scene.folder / "of-another", "elsewhere")


def sources_swapped(scene: Scene) -> None:
    """A release reads the same folders in another order."""
    scene.change_code(f"{LANDING}.union({OTHER})", f"{OTHER}.union({LANDING})")


SHARED = [
    Failure(
        "SHARE-03", "a second query used the checkpoint", checkpoint_of_another,
        spark=Silent(lacks=12),
        found="sink-behind", risk="loss", goal="rebuild", typed=REBUILT, all_arrived=True,
    ),
    Failure(
        "SHARE-04", "a second query wrote to the output", output_of_another,
        spark=Silent(lacks=8, wrong=2),
        found="sink-ahead", risk="skip", goal="rebuild", typed=REBUILT,
    ),
]  # fmt: skip
SWAPPED = Failure(
    "CHG-02",
    "two sources changed places",
    sources_swapped,
    spark=Silent(wrong=25),
    found="sources-reordered",
    risk="stuck",
    goal="reset",
    typed=("plan reset", "apply", "run"),
    doctor="slackwater doctor --pipeline clicks.py",
)


@pytest.mark.parametrize("failure", in_gate(SHARED, "SHARE-04"))
def test_shared_folders(copied: Stream, failure: Failure) -> None:
    prove(copied, failure)


@pytest.mark.parametrize("failure", [SWAPPED], ids=str)
def test_swapped_sources(both: Stream, failure: Failure) -> None:
    prove(both, failure)
