"""Edits of what other programs leave in a checkpoint, or remove from it."""

from __future__ import annotations

from tests.doctor.cases import Case, both, nothing, remove, write

FILE = 'v1\n{"path":"file:///data/in/x.json","timestamp":1704067200000,"batchId":99}'

CASES = [
    Case("a number among the plans", "SW-STORE-007", write("checkpoint/offsets/99", "hello"), says=("mv -n",)),
    Case("a number among the commits", "SW-STORE-007", write("checkpoint/commits/20240131", "hello")),
    Case("a number among the entries of a source", "SW-STORE-007", write("checkpoint/sources/0/99", FILE)),
    Case("a name that is no number", "SW-STORE-007", write("checkpoint/offsets/7 (copy)", "hello"), fires=False),
    Case(
        "files of a source that no batch has read", "SW-STORE-007", write("checkpoint/sources/0/8", FILE), fires=False
    ),
    Case("a gap below the newest plan", "SW-STORE-007", remove("checkpoint/offsets/6"), fires=False),
    Case("the newest plan is missing", "SW-STORE-007", remove("checkpoint/offsets/7"), fires=False),
    Case("gaps of asynchronous progress tracking", "SW-STORE-007", nothing, corpus="async_progress_gaps", fires=False),
    Case(
        "two commits and a plan are missing",
        "SW-STORE-007",
        both(remove("checkpoint/commits/7"), remove("checkpoint/commits/6", "checkpoint/offsets/6")),
        fires=False,
    ),
]
