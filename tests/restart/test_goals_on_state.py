"""Resume, replay and reset of queries with and without state, on both state stores: rows as of an uninterrupted run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.restart.scenario import CONF, Workspace
from tests.restart.test_other_state import FILES, PIPELINE, ROCKSDB, STREAMS, workspace_of
from tests.support.outputs import Rows, manifest_ids, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
PLAIN = """

@pipeline.stream(sink=sw.sinks.files("parquet", "out/plain"))
def plain(spark):
    return clicks(spark).where("n > 1")
"""
ALL = (*STREAMS, "plain")
NO_BATCH_WITHOUT_DATA = ("--conf", "spark.sql.streaming.noDataMicroBatches.enabled=false")
"""A batch without data at the end of each run would close windows and sessions that the next file still extends."""
STORES = {"hdfs": (*CONF, *NO_BATCH_WITHOUT_DATA), "rocksdb": (*ROCKSDB, *NO_BATCH_WITHOUT_DATA)}


class Goals(Workspace):
    """A workspace whose files arrive one after another."""

    def __init__(self, folder: Path, settings: tuple[str, ...], first: int) -> None:
        folder.mkdir()
        made = workspace_of(folder, PIPELINE + PLAIN)
        self.folder, self.output, self._settings = made.folder, made.output, settings
        self._later = folder / "later"
        self._later.mkdir()
        for file in sorted((folder / "landing").iterdir())[first:]:
            file.rename(self._later / file.name)

    def arrive(self) -> None:
        """The next file lands."""
        file = min(self._later.iterdir())
        file.rename(self.folder / "landing" / file.name)

    def caught_up(self) -> None:
        """Run all streams."""
        self.slackwater("run", "clicks.py", "--until-caught-up", *self._settings)

    def apply(self, goal: str, stream: str, *arguments: str, spark: bool = False) -> None:
        """Plan and apply. Without ``spark`` there is no Java: nothing may need it."""
        settings = self._settings if goal == "reset" else ()
        self.slackwater("plan", goal, stream, "--out", "plan.json", "--force", *arguments, *settings)
        if spark:
            self.slackwater("apply", "plan.json", "--confirm", stream, *self._settings)
        else:
            self.slackwater("apply", "plan.json", "--yes", java=False)

    def checkpoint_of(self, stream: str) -> Path:
        """The newest checkpoint of a stream."""
        folder = self.folder / ".slackwater" / "streams" / "web" / stream / "checkpoints"
        return max(path for path in folder.iterdir() if path.name.isdigit())

    def rows_by_stream(self) -> dict[str, Rows]:
        """The rows that each output has."""
        return {name: rows_of(self.output / name) for name in ALL}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    whole = Goals(tmp_path_factory.mktemp("whole") / "whole", STORES["hdfs"], FILES)
    whole.caught_up()
    return whole.rows_by_stream()


@pytest.mark.parametrize("store", STORES)
def test_each_goal_ends_with_the_rows_of_an_uninterrupted_run(
    store: str, tmp_path: Path, expected: dict[str, Rows]
) -> None:
    goals = Goals(tmp_path / "goals", STORES[store], FILES - 3)
    goals.caught_up()

    for name in ALL:
        newest = max(goals.checkpoint_of(name).joinpath("commits").iterdir(), key=_number)
        newest.write_bytes(newest.read_bytes()[:4])
        newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)
        goals.apply("resume", name)
    goals.arrive()
    goals.caught_up()

    for name in ALL:
        goals.apply("replay", name, "--from", "batch:3")
        assert manifest_ids(goals.output / name) == [0, 1, 2]
    goals.arrive()
    goals.caught_up()

    goals.apply("reset", "windows", "--output", "swap", spark=True)
    goals.apply("reset", "joined", "--output", "clear", spark=True)
    goals.arrive()
    goals.caught_up()

    assert goals.rows_by_stream() == expected


def _number(path: Path) -> int:
    return int(path.name) if path.name.isdigit() else -1
