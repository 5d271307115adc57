"""Each goal on HDFS and on S3, for windows and for a join: killed, continued, undone, finished; rows equal."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.restart.scenario import CONF
from tests.restart.stored import StoreWorkspace, stored_rows
from tests.restart.test_goals_on_state import NO_BATCH_WITHOUT_DATA, PLAIN, Goals
from tests.restart.test_other_state import FILES, PIPELINE
from tests.support.killing import kill_when
from tests.support.outputs import Rows, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(1800)]
STREAMS = ("windows", "joined")
SETTINGS = (*CONF, *NO_BATCH_WITHOUT_DATA)


def only(*streams: str) -> tuple[str, ...]:
    return tuple(argument for name in streams for argument in ("--stream", name))


ONLY = only(*STREAMS)


class StoredGoals(StoreWorkspace):
    """Streams with their checkpoints and outputs on a store; files arrive one after another."""

    def __init__(self, folder: Path, location: str, first: int, streams: tuple[str, ...] = STREAMS) -> None:
        super().__init__(folder, location)
        self.streams = streams
        text = (PIPELINE + PLAIN).replace('"out/', f'"{location}/out/')
        landing = (folder / "landing").as_uri()
        (folder / "clicks.py").write_text(text.replace('"landing"', f'"{landing}"'))
        self._later = folder / "later"
        self._later.mkdir()
        files = sorted((folder / "landing").iterdir())
        for file in files[first:FILES]:
            file.rename(self._later / file.name)
        for file in files[FILES:]:
            file.unlink()

    def arrive(self) -> None:
        file = min(self._later.iterdir())
        file.rename(self.folder / "landing" / file.name)

    def caught_up(self) -> None:
        self.arrive()
        self.run_all()

    def run_all(self) -> None:
        self.slackwater("run", "clicks.py", "--until-caught-up", *only(*self.streams), *SETTINGS)

    def checkpoint_of(self, stream: str, generation: int | None = None) -> str:
        """The path on the store of a stream's checkpoint: the one in use, or that of a generation."""
        folder = f"home/streams/web/{stream}"
        number = generation or json.loads(self.store.read(f"{folder}/stream.json"))["generation"]
        return f"{folder}/checkpoints/{number:04d}"

    def numbers(self, folder: str) -> list[int]:
        names = [entry.name.removesuffix(".compact") for entry in self.store.list(folder)]
        return sorted(int(name) for name in names if name.isdigit())

    def plan(self, goal: str, stream: str, *arguments: str) -> str:
        settings = SETTINGS if goal in {"reset", "backfill"} else ()
        self.slackwater("plan", goal, stream, "--out", "plan.json", "--force", *arguments, *settings)
        return str(json.loads((self.folder / "plan.json").read_text())["id"])

    def apply(self, stream: str) -> None:
        self.slackwater("apply", "plan.json", "--confirm", stream, *SETTINGS)

    def apply_killed(self, stream: str, reached: Callable[[], bool]) -> None:
        """Apply what is planned, killed when ``reached``, and once more to its end."""
        process = self.start("apply", "plan.json", "--confirm", stream, *SETTINGS)
        # The JVM is looked up then, and not before it has started.
        kill_when(process, reached, reached)
        self.apply(stream)

    def rows_by_stream(self) -> dict[str, Rows]:
        return {name: stored_rows(self.store, self.location, f"out/{name}") for name in self.streams}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    whole = Goals(tmp_path_factory.mktemp("whole") / "whole", SETTINGS, FILES, PIPELINE)
    whole.caught_up()
    return {name: rows_of(whole.output / name) for name in STREAMS}


@pytest.mark.parametrize("store", ["hdfs", "s3"])
def test_each_goal_ends_with_the_rows_of_an_uninterrupted_run(
    store: str, tmp_path: Path, expected: dict[str, Rows], request: pytest.FixtureRequest
) -> None:
    goals = StoredGoals(tmp_path, request.getfixturevalue(f"{store}_location"), FILES - 3)
    process = goals.start("run", "clicks.py", "--until-caught-up", *ONLY, *SETTINGS)
    commits = [f"{goals.checkpoint_of(name, 1)}/commits" for name in STREAMS]

    def reached() -> bool:
        return all(max(goals.numbers(log), default=-1) >= 3 for log in commits)

    # The JVM is looked up then: one that has not started when it is looked up is not killed, and commits more batches.
    kill_when(process, reached, reached)

    _resume(goals, "windows")
    _rebuild_deleted(goals, "joined")
    goals.caught_up()
    for name in STREAMS:
        _replay_undone_and_replayed(goals, name)
    goals.caught_up()
    _reset_undone_and_reset(goals, "windows", "clear")
    _reset_undone_and_reset(goals, "joined", "clear")
    goals.caught_up()

    assert goals.rows_by_stream() == expected
    goals.slackwater("prune", "--keep", "0", "--yes", java=False)
    goals.slackwater("run", "clicks.py", "--until-caught-up", *ONLY, *SETTINGS)
    assert goals.rows_by_stream() == expected


def _resume(goals: StoredGoals, stream: str) -> None:
    """The newest commit is torn; the apply is killed when the next checkpoint appears."""
    log = f"{goals.checkpoint_of(stream)}/commits"
    newest = f"{log}/{goals.numbers(log)[-1]}"
    goals.store.write(newest, goals.store.read(newest)[:4])
    goals.plan("resume", stream)
    offsets = f"{goals.checkpoint_of(stream, 2)}/offsets"
    goals.apply_killed(stream, lambda: bool(goals.numbers(offsets)))
    assert goals.checkpoint_of(stream).endswith("0002")


def _rebuild_deleted(goals: StoredGoals, stream: str) -> None:
    """The checkpoint is deleted; the apply is killed when the first batch is replayed."""
    goals.store.delete_tree(goals.checkpoint_of(stream))
    goals.plan("rebuild", stream)
    commits = f"{goals.checkpoint_of(stream, 2)}/commits"
    goals.apply_killed(stream, lambda: bool(goals.numbers(commits)))
    assert goals.checkpoint_of(stream).endswith("0002")


def _replay_undone_and_replayed(goals: StoredGoals, stream: str) -> None:
    before, rows, output = goals.checkpoint_of(stream), goals.rows_by_stream(), f"out/{stream}/_spark_metadata"
    identifier = goals.plan("replay", stream, "--from", "batch:3")
    goals.apply(stream)
    assert goals.numbers(output) == [0, 1, 2]
    goals.slackwater("undo", identifier, "--yes", java=False)
    assert (goals.checkpoint_of(stream), goals.rows_by_stream()) == (before, rows)
    goals.plan("replay", stream, "--from", "batch:3")
    goals.apply_killed(stream, lambda: goals.numbers(output) == [0, 1, 2])
    assert goals.numbers(output) == [0, 1, 2]


def _reset_undone_and_reset(goals: StoredGoals, stream: str, output: str) -> None:
    before, rows = goals.checkpoint_of(stream), goals.rows_by_stream()
    identifier = goals.plan("reset", stream, "--output", output)
    goals.apply(stream)
    goals.slackwater("undo", identifier, "--yes", java=False)
    assert (goals.checkpoint_of(stream), goals.rows_by_stream()) == (before, rows)
    goals.plan("reset", stream, "--output", output)
    goals.apply(stream)
