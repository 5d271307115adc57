"""Failures of a Delta table that a stream reads."""

import pytest

from tests.diagnose.live.delta_scene import DELTA, FAILS, FROM_TABLE, GOES_ON, TableScene
from tests.diagnose.live.frame import FILES, READ, Failure, Scene, Stops, Stream, in_gate, make_stream, prove

pytestmark = pytest.mark.spark

CLEANED = 2
"""Versions that were not read before they left the log."""


@pytest.fixture(scope="module")
def from_table(tmp_path_factory: pytest.TempPathFactory) -> Stream:
    return make_stream(tmp_path_factory.mktemp("from table"), FROM_TABLE, DELTA, TableScene)


def of_table(scene: Scene) -> TableScene:
    assert isinstance(scene, TableScene)
    return scene


def recreated(scene: Scene) -> None:
    """The table is dropped, created again with its rows, and gets more."""
    of_table(scene).recreate()


def cleaned(scene: Scene) -> None:
    """While the stream is stopped, versions arrive, and the retention of the log removes the oldest of them."""
    scene.arrive(READ, FILES)
    of_table(scene).clean_before(READ + CLEANED)


def cleaned_and_ignored(scene: Scene) -> None:
    """The query has the option that ignores it; Spark asks Delta for the last batch at each start."""
    scene.change_code(FAILS, GOES_ON)
    cleaned(scene)


FAILURES = [
    Failure(
        "DELTA-05", "the source table was created again", recreated,
        spark=Stops("DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"),
        found="SW-DELTA-005", risk="stuck", goal="reset", typed=("plan reset", "apply", "run"),
    ),
    Failure(
        "DELTA-06", "the log of the source table was cleaned", cleaned,
        spark=Stops("DELTA_MISSING_FILES_UNEXPECTED_VERSION"),
        found="SW-DELTA-006", risk="loss", goal="reset", typed=("plan reset", "apply", "run"),
        all_arrived=True,
    ),
    Failure(
        "DELTA-06", "and the option that ignores it does not help", cleaned_and_ignored,
        spark=Stops("DELTA_STREAMING_TRAILING_COMMIT_MISSING"),
        found="SW-DELTA-006", risk="loss", goal="reset", typed=("plan reset", "apply", "run"),
        all_arrived=True,
    ),
]  # fmt: skip


@pytest.mark.parametrize("failure", in_gate(FAILURES, "DELTA-06"))
def test_damaged_table(from_table: Stream, failure: Failure) -> None:
    prove(from_table, failure)
