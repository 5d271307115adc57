"""An output of files on S3 and on HDFS, swapped and backfilled by commands that are killed, finished and undone."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from slackwater.sinks.common.staging import MARK
from tests.restart.test_goals_on_state import PLAIN, Goals
from tests.restart.test_goals_on_stores import SETTINGS, StoredGoals
from tests.restart.test_other_state import FILES, PIPELINE
from tests.support.outputs import Rows, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(1200)]
STREAM = "plain"
LOG = f"out/{STREAM}/_spark_metadata"


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    whole = Goals(tmp_path_factory.mktemp("whole") / "whole", SETTINGS, FILES, PIPELINE + PLAIN)
    whole.slackwater("run", "clicks.py", "--until-caught-up", "--stream", STREAM, *SETTINGS)
    return rows_of(whole.output / STREAM)


@pytest.mark.parametrize("store", ["s3", "hdfs"])
def test_rows_are_those_of_an_uninterrupted_run(
    store: str, tmp_path: Path, expected: Rows, request: pytest.FixtureRequest
) -> None:
    goals = StoredGoals(tmp_path, request.getfixturevalue(f"{store}_location"), FILES - 3, (STREAM,))
    goals.run_all()

    # The output is built again: the kill is while the files and the manifest are exchanged.
    rows = _rows(goals)
    operation = goals.plan("reset", STREAM, "--output", "swap")
    goals.apply_killed(STREAM, lambda: _state(goals, operation) == "swapping")
    assert (_rows(goals), _state(goals, operation)) == (rows, "replaced")
    _undone_and_applied(goals, operation, rows, lambda: goals.plan("reset", STREAM, "--output", "swap"))
    goals.caught_up()

    _replay(goals)
    goals.caught_up()
    _backfill(goals)

    assert _rows(goals) == expected
    goals.slackwater("prune", "--keep", "0", "--yes", java=False)
    goals.run_all()
    assert _rows(goals) == expected
    assert {entry.name for entry in goals.store.list("out")} == {STREAM}


def _replay(goals: StoredGoals) -> None:
    """The batches from 3 on are computed again next to the output; the kill is while they are."""
    rows, batches = _rows(goals), goals.numbers(LOG)
    operation = goals.plan("replay", STREAM, "--from", "batch:3", "--output", "swap")
    staged = f"out/.{STREAM}.slackwater-{operation}/_spark_metadata"
    goals.apply_killed(STREAM, lambda: 3 in goals.numbers(staged))
    assert (_rows(goals), goals.numbers(LOG)) == (rows, batches)
    _undone_and_applied(
        goals, operation, rows, lambda: goals.plan("replay", STREAM, "--from", "batch:3", "--output", "swap")
    )


def _backfill(goals: StoredGoals) -> None:
    """A file is passed over, and read by a backfill that is killed when the output has its batch."""
    goals.arrive()
    goals.plan("reset", STREAM, "--from", "latest", "--output", "keep")
    goals.apply(STREAM)
    rows = _rows(goals)
    batch = goals.numbers(LOG)[-1] + 1
    operation = goals.plan("backfill", STREAM)
    goals.apply_killed(STREAM, lambda: batch in goals.numbers(LOG))
    assert goals.numbers(LOG)[-1] == batch
    assert _rows(goals) != rows
    _undone_and_applied(goals, operation, None, lambda: goals.plan("backfill", STREAM), rows)


def _undone_and_applied(
    goals: StoredGoals, operation: str, after: Rows | None, plan: Callable[[], str], before: Rows | None = None
) -> None:
    goals.slackwater("undo", operation, "--yes", java=False)
    assert _rows(goals) == (after if before is None else before)
    plan()
    goals.apply(STREAM)
    assert after is None or _rows(goals) == after


def _rows(goals: StoredGoals) -> Rows:
    return goals.rows_by_stream()[STREAM]


def _state(goals: StoredGoals, operation: str) -> str | None:
    try:
        return str(json.loads(goals.store.read(f"out/.{STREAM}.slackwater-{operation}/{MARK}"))["state"])
    except FileNotFoundError:
        return None
