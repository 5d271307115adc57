"""Edits of what other triggers and modes write."""

from tests.diagnose.cases import Case, nothing, remove
from tests.diagnose.rewriting import replace

ASYNC = "async_progress_gaps"
CONTINUOUS = "continuous_rate"
METADATA = 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}\n'

CASES = [
    Case("gaps in both logs", "SW-MODE-003", nothing, corpus=ASYNC, says=("batch 37",)),
    Case("gaps in both logs, of Spark 3.5", "SW-MODE-003", nothing, corpus=ASYNC, version="3.5.9"),
    Case("no gaps", "SW-MODE-003", nothing, corpus="async_progress_interval0", fires=False),
    Case("a gap in one log", "SW-MODE-003", remove("checkpoint/offsets/6"), fires=False),
    Case(
        "gaps, and two batches since",
        "SW-MODE-003",
        remove("checkpoint/offsets/3", "checkpoint/commits/3"),
        fires=False,
    ),
    Case("an entry without metadata", "SW-MODE-004", nothing, corpus=CONTINUOUS, says=("batch 8",)),
    Case(
        "an older entry without metadata",
        "SW-MODE-004",
        replace("checkpoint/offsets/8", "v1\n\n", METADATA),
        corpus=CONTINUOUS,
        fires=False,
    ),
    Case("entries of micro-batches", "SW-MODE-004", nothing, fires=False),
]
