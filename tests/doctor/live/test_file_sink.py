"""Failures of the output of Spark's file sink, which compacts its manifest every third batch."""

from __future__ import annotations

import pytest

from tests.doctor.live.damage import remove
from tests.doctor.live.frame import COMPACTING, COPIED, Failure, Scene, Stops, Stream, make_stream, prove

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
    """The directory is renamed."""
    scene.output.rename(scene.folder / "archived")


def output_moved_back(scene: Scene) -> None:
    """The directory has its name again."""
    (scene.folder / "archived").rename(scene.output)


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
]  # fmt: skip


@pytest.mark.parametrize("failure", FAILURES, ids=str)
def test_damaged_outputs(compacted: Stream, failure: Failure) -> None:
    prove(compacted, failure)
