"""Edits that leave what two queries on one checkpoint leave."""

import re
from collections.abc import Callable
from pathlib import Path

from tests.diagnose.cases import Case, both, nothing, write
from tests.diagnose.rewriting import replace


def _planned_at(batch: int, time_ms: int) -> Callable[[Path], None]:
    def edit(case: Path) -> None:
        file = case / f"checkpoint/offsets/{batch}"
        planned = re.sub(r'"batchTimestampMs":\d+', f'"batchTimestampMs":{time_ms}', file.read_text())
        write(f"checkpoint/offsets/{batch}", planned)(case)

    return edit


def _temporary(entry: str, number: int) -> Callable[[Path], None]:
    """An edit that leaves a temporary file of an entry, as a driver that was killed while it wrote."""
    folder, _, name = entry.rpartition("/")
    return write(f"checkpoint/{folder}/.{name}.00000000-0000-0000-0000-{number:012}.tmp", "v1")


CASES = [
    Case(
        "a source goes back",
        "SW-SHARE-003",
        replace("checkpoint/offsets/5", '{"logOffset":5}', '{"logOffset":2}'),
        says=("batch 5",),
    ),
    Case(
        "a source is of another kind in between",
        "SW-SHARE-003",
        replace("checkpoint/offsets/4", '{"logOffset":4}', '{"orders":{"0":17}}'),
        says=("batch 5", "is of files again"),
    ),
    Case(
        "a batch without new data",
        "SW-SHARE-003",
        replace("checkpoint/offsets/5", '{"logOffset":5}', '{"logOffset":4}'),
        fires=False,
    ),
    Case(
        "a source of another kind from a batch on",
        "SW-SHARE-003",
        both(
            replace("checkpoint/offsets/6", '{"logOffset":6}', '{"orders":{"0":17}}'),
            replace("checkpoint/offsets/7", '{"logOffset":7}', '{"orders":{"0":20}}'),
        ),
        fires=False,
    ),
    Case("nothing edited", "SW-SHARE-003", nothing, fires=False),
    Case(
        "a batch planned before the one before it",
        "SW-SHARE-001",
        _planned_at(5, 1),
        says=("batch 5 was planned before batch 4", "1970-01-01"),
    ),
    Case(
        "two temporary files of an entry",
        "SW-SHARE-001",
        both(_temporary("offsets/8", 1), _temporary("offsets/8", 2)),
        says=("batch 8 has 2 temporary files",),
    ),
    Case("one temporary file, as of a crash", "SW-SHARE-001", _temporary("offsets/8", 1), fires=False),
    Case(
        "temporary files of two entries",
        "SW-SHARE-001",
        both(_temporary("offsets/8", 1), _temporary("commits/7", 2)),
        fires=False,
    ),
    Case("nothing edited", "SW-SHARE-001", nothing, fires=False),
]
