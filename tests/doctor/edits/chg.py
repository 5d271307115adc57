"""Edits that show a change of the query, or of what it pins."""

from __future__ import annotations

from tests.doctor.cases import AGGREGATION, Case, nothing
from tests.doctor.rewriting import replace

_PARTITIONS = '"spark.sql.shuffle.partitions":"{}"'
_HDFS, _ROCKSDB = "HDFSBackedStateStoreProvider", "RocksDBStateStoreProvider"
_NEWEST = "checkpoint/offsets/8"

CASES = [
    Case(
        "fewer partitions", "SW-CHG-008", replace(_NEWEST, _PARTITIONS.format(2), _PARTITIONS.format(1)), AGGREGATION,
        says=("pins 1 shuffle", "in 2"),
    ),
    Case(
        "more partitions", "SW-CHG-008", replace(_NEWEST, _PARTITIONS.format(2), _PARTITIONS.format(8)), AGGREGATION,
        says=("pins 8 shuffle", "in 2"),
    ),
    Case("repartitioned offline", "SW-CHG-008", nothing, "offline_repartition_rocksdb", fires=False),
    Case("one partition without keys", "SW-CHG-008", nothing, "agg_global_nokey_hdfs", fires=False),
    Case("as pinned", "SW-CHG-008", nothing, AGGREGATION, fires=False),
    Case("RocksDB is pinned", "SW-CHG-009", replace(_NEWEST, _HDFS, _ROCKSDB), AGGREGATION, says=("hdfs",)),
    Case("a provider of the user's", "SW-CHG-009", replace(_NEWEST, _HDFS, "OwnProvider"), AGGREGATION, fires=False),
    Case("as its files", "SW-CHG-009", nothing, "agg_window_append_rocksdb", fires=False),
]  # fmt: skip
