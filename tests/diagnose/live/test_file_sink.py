"""Failures of the output of Spark's file sink, which compacts its manifest every third batch."""

import shutil
from collections import Counter

import pyarrow.parquet
import pytest

from tests.diagnose.live.damage import remove
from tests.diagnose.live.frame import (
    COMPACTING,
    COPIED,
    Failure,
    Scene,
    Silent,
    Stops,
    Stream,
    in_gate,
    make_stream,
    prove,
)
from tests.support.outputs import Rows

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def compacted(tmp_path_factory: pytest.TempPathFactory) -> Stream:
    """A stream whose manifest has been compacted once when the failure happens."""
    return make_stream(tmp_path_factory.mktemp("compacted"), COPIED, COMPACTING)


def manifest_removed(scene: Scene) -> None:
    """Somebody cleans up what looks like a temporary folder."""
    remove(scene.output / "_spark_metadata")


def compacted_entry_removed(scene: Scene) -> None:
    """The entry that repeats those before it is deleted, as by a rule for old files."""
    remove(scene.output / "_spark_metadata" / "2.compact")


def output_moved(scene: Scene) -> None:
    scene.output.rename(scene.folder / "archived")


def output_moved_back(scene: Scene) -> None:
    (scene.folder / "archived").rename(scene.output)


def attempt_left(scene: Scene) -> None:
    """A task was run twice, and the file of its first attempt is still there."""
    first = min(scene.output.glob("part-*.parquet"))
    shutil.copy(first, first.with_name(f"part-attempt-{first.name}"))


def attempt_removed(scene: Scene) -> None:
    """The file that doctor names is deleted."""
    [file] = scene.output.glob("part-attempt-*")
    remove(file)


def by_listing(scene: Scene) -> Rows:
    """The rows of a reader that lists the directory, as pandas and Athena do."""
    files = scene.output.glob("*.parquet")
    return Counter(_text(row) for file in files for row in pyarrow.parquet.read_table(file).to_pylist())


def _text(row: dict[str, object]) -> str:
    return repr(sorted((name, str(value)) for name, value in row.items()))


AGAIN = ("plan rebuild", "apply", "run")
FAILURES = [
    Failure(
        "FSINK-01", "the manifest was deleted", manifest_removed,
        spark=Stops("[BATCH_METADATA_NOT_FOUND]"),
        found="sink-behind", risk="loss", goal="rebuild", typed=AGAIN,
    ),
    Failure(
        "FSINK-02", "a compacted entry was deleted", compacted_entry_removed,
        spark=Stops("[BATCH_METADATA_NOT_FOUND]"),
        found="output-damaged", risk="loss", goal="rebuild", typed=AGAIN,
    ),
    Failure(
        "SINK-02", "the output was moved away", output_moved,
        spark=Stops("[BATCH_METADATA_NOT_FOUND]"),
        found="sink-behind", risk="loss", goal="rebuild", by_hand=output_moved_back, typed=("run",),
    ),
    Failure(
        "FSINK-07", "a reader lists the directory, with a file of a failed attempt", attempt_left,
        spark=Silent(wrong=4),
        found="orphan-files", risk="none", goal=None, by_hand=attempt_removed, typed=("run",),
        doctor="slackwater doctor --verify", rows=by_listing,
    ),
]  # fmt: skip


@pytest.mark.parametrize("failure", in_gate(FAILURES, "FSINK-02"))
def test_damaged_outputs(compacted: Stream, failure: Failure) -> None:
    prove(compacted, failure)
