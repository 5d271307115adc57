"""Edits of the log of Spark's file sink."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from slackwater.diagnose.checks.sink import LIMIT
from tests.diagnose.cases import Case, output_in_place, write

_LINE = (
    '{{"path":"{folder}/{name}","size":1,"isDir":false,"modificationTime":1,"blockReplication":1,"blockSize":1,'
    '"action":"add"}}'
)


def _listing(files: int) -> Callable[[Path], None]:
    """An edit of the newest entry of the log, which lists so many files then."""

    def edit(case: Path) -> None:
        folder = (case / "sink").as_uri()
        lines = [_LINE.format(folder=folder, name=f"part-{number}.parquet") for number in range(files)]
        write("sink/_spark_metadata/8.compact", "\n".join(("v1", *lines)))(case)

    return edit


CASES = [
    Case("one more than the limit", "SW-FSINK-009", _listing(LIMIT + 1), with_sink=True, says=(str(LIMIT + 1),)),
    Case("as many as the limit", "SW-FSINK-009", _listing(LIMIT), with_sink=True, fires=False),
    Case("a file for each batch", "SW-FSINK-009", output_in_place, with_sink=True, fires=False),
]
