"""Edits of ``state/``."""

from tests.diagnose.cases import AGGREGATION, Case, both, nothing, remove, write
from tests.diagnose.recorded import batch, skipping, with_history
from tests.diagnose.rewriting import delete_folder

_SCHEMA = "checkpoint/state/0/0/_metadata/schema"
_METADATA = "checkpoint/state/0/_metadata/metadata"
_FORMAT_2 = "agg_cpv2_rocksdb_changelog"
_PARTITION_1, _PARTITION_0 = (f"checkpoint/state/0/{number}/9.delta" for number in (1, 0))
_OLD_DELTA = "checkpoint/state/0/0/5.delta"
_LOGS = both(delete_folder("checkpoint/offsets"), delete_folder("checkpoint/commits"))

CASES = [
    Case("no state at all", "SW-STATE-003", delete_folder("checkpoint/state"), _FORMAT_2, says=("batch 8",)),
    Case(
        "a batch without data", "SW-STATE-003", delete_folder("checkpoint/state"), AGGREGATION,
        says=("without new data",),
    ),
    Case("state is there, after a batch without data", "SW-STATE-003", nothing, AGGREGATION, fires=False),
    Case("state is there", "SW-STATE-003", nothing, _FORMAT_2, fires=False),
    Case("nothing names state", "SW-STATE-003", delete_folder("checkpoint/state"), fires=False),
    Case("one of two partitions", "SW-STATE-009", remove(_PARTITION_1), AGGREGATION, says=("1 of the 2", "state/0/1")),
    Case("both partitions", "SW-STATE-009", remove(_PARTITION_0, _PARTITION_1), AGGREGATION, fires=False),
    Case("all are complete", "SW-STATE-009", nothing, AGGREGATION, fires=False),
    Case("0 rows", "SW-STATE-010", nothing, says=("batch 3", "--from"), ledger=with_history(batch(2, 5), batch(3, 0))),
    Case("all batches have rows", "SW-STATE-010", nothing, ledger=with_history(batch(2, 5), batch(3, 4)), fires=False),
    Case("the output has it", "SW-STATE-010", nothing, ledger=skipping(with_history(batch(3, 0))), fires=False),
    Case("no new data", "SW-STATE-010", nothing, ledger=with_history(batch(3, 0, moved=False)), fires=False),
    Case("no commit names ids", "SW-STATE-011", delete_folder("checkpoint/commits"), _FORMAT_2, says=("version 9",)),
    Case("the commit names them", "SW-STATE-011", nothing, _FORMAT_2, fires=False),
    Case("state without ids", "SW-STATE-011", delete_folder("checkpoint/commits"), AGGREGATION, fires=False),
    Case("no schema", "SW-STATE-006", remove(_SCHEMA), AGGREGATION, says=("the schema of operator 0",)),
    Case("no metadata", "SW-STATE-006", remove(_METADATA), AGGREGATION, says=("the metadata of operator 0",)),
    Case("malformed metadata", "SW-STATE-006", write(_METADATA, "v1\n{"), AGGREGATION, says=("metadata of",)),
    Case("no metadata, as Spark 3.5", "SW-STATE-006", nothing, AGGREGATION, version="3.5.9", fires=False),
    Case("schemas of version 3", "SW-STATE-006", nothing, "join_v3_rocksdb_vcf", fires=False),
    Case("nothing removed", "SW-STATE-006", nothing, AGGREGATION, fires=False),
    Case("the logs of the batches", "SW-STATE-014", _LOGS, AGGREGATION, says=("version 9",)),
    Case("no state either", "SW-STATE-014", both(_LOGS, delete_folder("checkpoint/state")), AGGREGATION, fires=False),
    Case("a stateless query", "SW-STATE-014", _LOGS, fires=False),
    Case("a change before a snapshot", "SW-STATE-015", remove(_OLD_DELTA), AGGREGATION, says=("version 5",)),
    Case(
        "a number that no version has", "SW-STATE-015",
        write(f"checkpoint/state/0/0/{10**17}.snapshot", "x"), AGGREGATION,
        says=("version 10,",),
    ),
    Case("the oldest change", "SW-STATE-015", remove("checkpoint/state/0/0/1.delta"), AGGREGATION, fires=False),
    Case("nothing is missing", "SW-STATE-015", nothing, AGGREGATION, fires=False),
]  # fmt: skip
