"""Failures of the input of a file source."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from tests.diagnose.live.damage import remove
from tests.diagnose.live.frame import Failure, Scene, Silent, Stream, in_gate, prove
from tests.support.outputs import Rows

pytestmark = pytest.mark.spark

DAYS_8_S = 8 * 24 * 3600
ADDED = "[('n', '99'), ('page', 'a'), ('ts', '2024-01-01 00:03:00')]"


def planned_file_moved(scene: Scene) -> None:
    """The file of the planned batch is moved away before the batch runs."""
    # The newest batch is planned, and neither written nor committed.
    newest = scene.newest
    remove(scene.checkpoint / "commits" / str(newest))
    entry = scene.output / "_spark_metadata" / str(newest)
    for line in entry.read_text().splitlines()[1:]:
        remove(scene.output / Path(json.loads(line)["path"]).name)
    remove(entry)
    (scene.folder / "landing" / "f4.json").rename(scene.folder / "f4.json")


def planned_file_moved_back(scene: Scene) -> None:
    """The file is where the plan has it."""
    (scene.folder / "f4.json").rename(scene.folder / "landing" / "f4.json")


def appended(scene: Scene) -> None:
    with (scene.folder / "landing" / "f2.json").open("a") as file:
        file.write(json.dumps({"ts": "2024-01-01T00:03:00Z", "page": "a", "n": 99}) + "\n")


def written_to_a_new_file(scene: Scene) -> None:
    """The appended row is moved to a file of its own, and the old file has its time again."""
    old = scene.folder / "landing" / "f2.json"
    *lines, added = old.read_text().splitlines(keepends=True)
    old.write_text("".join(lines))
    os.utime(old, (1_700_000_002, 1_700_000_002))
    (scene.folder / "landing" / "f2-more.json").write_text(added)


def came_with_an_old_time(scene: Scene) -> None:
    """A late file is copied with the time it has at its origin."""
    scene.add("late", [3], n=99)
    os.utime(scene.folder / "landing" / "late.json", (1_700_000_000 - DAYS_8_S,) * 2)


def with_the_row(stream: Stream) -> Rows:
    """All rows, and the one that Spark leaves out."""
    return stream.rows + Counter([ADDED])


FAILURES = [
    Failure(
        "FSRC-03", "a planned file was moved away", planned_file_moved,
        spark=Silent(lacks=4),
        found="SW-FSRC-003", risk="loss", goal="resume", by_hand=planned_file_moved_back, typed=("run",),
    ),
    Failure(
        "FSRC-05", "a file that was read got another row", appended,
        spark=Silent(lacks=1),
        found="SW-FSRC-005", risk="loss", goal="backfill", by_hand=written_to_a_new_file, typed=("run",),
        expected=with_the_row,
    ),
    Failure(
        "FSRC-06", "a file came with a time of long ago", came_with_an_old_time,
        spark=Silent(lacks=1),
        found="SW-FSRC-006", risk="loss", goal="backfill", typed=("touch", "run"),
        expected=with_the_row,
    ),
]  # fmt: skip


@pytest.mark.parametrize("failure", in_gate(FAILURES, "FSRC-03"))
def test_changed_input(copied: Stream, failure: Failure) -> None:
    prove(copied, failure)
