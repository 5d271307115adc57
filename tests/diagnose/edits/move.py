"""Edits of addresses in logs, as a move or a copy leaves them."""

import shutil
from collections.abc import Callable
from pathlib import Path

from tests.diagnose.cases import AGGREGATION, Case, both, nothing, output_in_place
from tests.diagnose.rewriting import replace

OLD = "sink/_spark_metadata/6"


def _without_hidden(start: str) -> Callable[[Path], None]:
    """An edit that deletes what a tool leaves out which takes such names for hidden ones."""

    def edit(case: Path) -> None:
        for path in sorted((case / "checkpoint").rglob(f"{start}*"), reverse=True):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    return edit


CASES = [
    Case("the output was moved", "SW-MOVE-003", nothing, with_sink=True, says=("/data/streams/", "8 files")),
    Case(
        "the output was moved, and the stream has continued",
        "SW-MOVE-003",
        both(output_in_place, replace(OLD, "/sink/part", "/elsewhere/part")),
        with_sink=True,
        says=("1 file ", "/elsewhere"),
    ),
    Case(
        "the host of the address changed",
        "SW-MOVE-003",
        both(output_in_place, replace(OLD, "file:///", "file://localhost/")),
        with_sink=True,
        says=("file://localhost/",),
    ),
    Case("the output is where its log says", "SW-MOVE-003", output_in_place, with_sink=True, fires=False),
    Case(
        "a copy without names that begin with an underscore",
        "SW-STATE-006",
        _without_hidden("_"),
        AGGREGATION,
        says=("the schema of operator 0", "the metadata of operator 0", "MOVE-07"),
    ),
    Case("a copy without names that begin with a dot", "SW-STATE-006", _without_hidden("."), AGGREGATION, fires=False),
]
