"""Edits of ``state/``."""

from __future__ import annotations

from tests.doctor.cases import AGGREGATION, Case, both, nothing, remove, write
from tests.doctor.rewriting import delete_folder

_SCHEMA = "checkpoint/state/0/0/_metadata/schema"
_METADATA = "checkpoint/state/0/_metadata/metadata"
_LOGS = both(delete_folder("checkpoint/offsets"), delete_folder("checkpoint/commits"))

CASES = [
    Case("no schema", "SW-STATE-006", remove(_SCHEMA), AGGREGATION, says=("the schema of operator 0",)),
    Case("no metadata", "SW-STATE-006", remove(_METADATA), AGGREGATION, says=("the metadata of operator 0",)),
    Case("malformed metadata", "SW-STATE-006", write(_METADATA, "v1\n{"), AGGREGATION, says=("metadata of",)),
    Case("no metadata, as Spark 3.5", "SW-STATE-006", nothing, AGGREGATION, version="3.5.9", fires=False),
    Case("schemas of version 3", "SW-STATE-006", nothing, "join_v3_rocksdb_vcf", fires=False),
    Case("nothing removed", "SW-STATE-006", nothing, AGGREGATION, fires=False),
    Case("the logs of the batches", "SW-STATE-014", _LOGS, AGGREGATION, says=("version 9",)),
    Case("no state either", "SW-STATE-014", both(_LOGS, delete_folder("checkpoint/state")), AGGREGATION, fires=False),
    Case("a stateless query", "SW-STATE-014", _LOGS, fires=False),
]  # fmt: skip
