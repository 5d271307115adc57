"""Edits that leave what two queries on one checkpoint leave."""

from __future__ import annotations

from tests.doctor.cases import Case, both, nothing
from tests.doctor.rewriting import replace

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
]
