"""Edits of what other programs leave in a checkpoint, or remove from it."""

from tests.diagnose.cases import AGGREGATION, Case, both, nothing, remove, write
from tests.diagnose.recorded import renaming_by_copies, with_settings
from tests.diagnose.rewriting import delete_folder

FILE = 'v1\n{"path":"file:///data/in/x.json","timestamp":1704067200000,"batchId":99}'

DELTA = "checkpoint/state/0/1/9.delta"
UUID = "00000000-0000-0000-0000-000000000000"
TEMPORARY = f"checkpoint/state/0/1/.9.delta.{UUID}.TID7.tmp"
PLAN = f"checkpoint/offsets/.4.{UUID}.tmp"
MANAGER = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
NO_STATE = both(*(delete_folder(f"checkpoint/state/0/{partition}") for partition in (0, 1)))
AGED = remove("checkpoint/metadata", "checkpoint/sources/0/0", "checkpoint/offsets/0", "checkpoint/commits/0")
"""What a rule removes that keeps the newest files: the oldest ones."""

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
    Case(
        "a version of state",
        "SW-STORE-002",
        both(remove(DELTA), write(TEMPORARY, "x")),
        AGGREGATION,
        says=("state/0/1/9.delta is missing", ".9.delta.0"),
    ),
    Case(
        "an older entry", "SW-STORE-002", both(remove("checkpoint/offsets/4"), write(PLAN, "v1")), says=("offsets/4",)
    ),
    Case("a second attempt has written it", "SW-STORE-002", write(TEMPORARY, "x"), AGGREGATION, fires=False),
    Case("no temporary file", "SW-STORE-002", remove(DELTA), AGGREGATION, fires=False),
    Case(
        "the next version, as of a crash",
        "SW-STORE-002",
        write(TEMPORARY.replace(".9.", ".10."), "x"),
        AGGREGATION,
        fires=False,
    ),
    Case(
        "a store that copies",
        "SW-STORE-001",
        nothing,
        ledger=renaming_by_copies(with_settings()),
        says=("checkpointFileManagerClass", "which renames"),
    ),
    Case(
        "a manager that does not rename",
        "SW-STORE-001",
        nothing,
        ledger=renaming_by_copies(with_settings(streaming_checkpointFileManagerClass=MANAGER)),
        fires=False,
    ),
    Case("a store that renames", "SW-STORE-001", nothing, ledger=with_settings(), fires=False),
    Case("no state on this disk", "SW-STORE-006", NO_STATE, AGGREGATION, says=("operator 0", "batch 8")),
    Case("the metadata is missing, too", "SW-STORE-006", delete_folder("checkpoint/state"), AGGREGATION, fires=False),
    Case(
        "the first batch is not committed",
        "SW-STORE-006",
        both(NO_STATE, delete_folder("checkpoint/commits"), delete_folder("checkpoint/offsets")),
        AGGREGATION,
        fires=False,
    ),
    Case("state is there", "SW-STORE-006", nothing, AGGREGATION, fires=False),
    Case("metadata, and an old entry that is missing", "SW-LOG-012", AGED, says=("STORE-04",)),
]
