"""Edits of the logs of file sources, and of the files that they list."""

from __future__ import annotations

from tests.doctor.cases import Case, both, nothing, remove
from tests.doctor.rewriting import reread

_PLANNED = both(reread("checkpoint/sources/0"), remove("checkpoint/commits/7"))
_BACK_TO_5 = remove(*(f"checkpoint/{log}/{batch}" for log in ("offsets", "commits") for batch in (6, 7)))
_BACK_TO_6 = remove("checkpoint/offsets/7", "checkpoint/commits/7")

CASES = [
    Case("the newest entry", "SW-FSRC-001", remove("checkpoint/sources/0/7"), says=("entry 7 of", "batch 7")),
    Case("an entry in a compacted one", "SW-FSRC-001", remove("checkpoint/sources/0/4"), fires=False),
    Case("nothing removed", "SW-FSRC-001", nothing, fires=False),
    Case("the newest compacted entry", "SW-FSRC-002", remove("checkpoint/sources/0/5.compact"), says=("entry 5",)),
    Case("an entry after it", "SW-FSRC-002", remove("checkpoint/sources/0/6"), says=("entry 6",)),
    Case("an older compacted entry", "SW-FSRC-002", remove("checkpoint/sources/0/2.compact"), fires=False),
    Case("older ones removed by Spark", "SW-FSRC-002", nothing, "retention_min_batches_2_filesink", fires=False),
    Case(
        "a planned file", "SW-FSRC-003", both(_PLANNED, remove("input/in-007.json")), says=("in-007.json", "1 files")
    ),
    Case("a file that was read", "SW-FSRC-003", both(_PLANNED, remove("input/in-006.json")), fires=False),
    Case("all planned files exist", "SW-FSRC-003", _PLANNED, fires=False),
    Case("two batches taken back", "SW-FSRC-011", _BACK_TO_5, says=("2 entries after entry 5", "batch 6")),
    Case("one entry more, as of a crash", "SW-FSRC-011", _BACK_TO_6, fires=False),
]  # fmt: skip
