"""Edits that show a change of the query, or of what it pins."""

from tests.diagnose.cases import AGGREGATION, Case, nothing, remove
from tests.diagnose.recorded import with_session, with_settings
from tests.diagnose.rewriting import replace, swap

_PARTITIONS = '"spark.sql.shuffle.partitions":"{}"'
_HDFS, _ROCKSDB = "HDFSBackedStateStoreProvider", "RocksDBStateStoreProvider"
_NEWEST = "checkpoint/offsets/8"

_SWAPPED = swap("checkpoint/sources/0/4", "checkpoint/sources/1/4")
_OLD_STATE = remove(*(f"checkpoint/state/0/{number}/{version}.delta" for number in (0, 1) for version in (7, 8, 9)))
_ONE_VERSION = remove("checkpoint/state/0/0/9.delta", "checkpoint/state/0/1/9.delta")

_JOIN_1 = replace("checkpoint/offsets/5", 'join.stateFormatVersion":"2"', 'join.stateFormatVersion":"1"')

CASES = [
    Case(
        "other partitions in the session", "SW-CHG-010", nothing, ledger=with_settings(shuffle_partitions="9"),
        says=("is 9 in the session", "uses 2"),
    ),
    Case(
        "another policy", "SW-CHG-010", nothing, ledger=with_settings(streaming_multipleWatermarkPolicy="max"),
        says=("max",),
    ),
    Case("the pinned value", "SW-CHG-010", nothing, ledger=with_settings(shuffle_partitions="2"), fires=False),
    Case(
        "another value in the session of the code", "SW-CHG-010", nothing,
        ledger=with_session({"spark.sql.shuffle.partitions": "200"}), says=("is 200 in the session", "batch 7 pins"),
    ),
    Case(
        "a setting that an older release did not pin", "SW-CHG-010", nothing, version="3.5.9",
        ledger=with_session({"spark.sql.streaming.statefulOperator.alwaysNullableOutput.enabled": "true"}),
        says=("alwaysNullableOutput.enabled is true", "uses false", "batch 7 does not pin it"),
    ),
    Case(
        "the pinned value in the session of the code", "SW-CHG-010", nothing,
        ledger=with_session({"spark.sql.shuffle.partitions": "2"}), fires=False,
    ),
    Case("not set", "SW-CHG-010", nothing, ledger=with_settings(), fires=False),
    Case("version 1 of a join", "SW-CHG-011", _JOIN_1, "join_inner_hdfs", says=("join 0", "offsets/5")),
    Case("version 2", "SW-CHG-011", nothing, "join_inner_hdfs", fires=False),
    Case("the newest entries", "SW-CHG-002", _SWAPPED, "join_inner_hdfs", says=("sources 0 and 1", "input_l")),
    Case("each reads its own", "SW-CHG-002", nothing, "join_inner_hdfs", fires=False),
    Case("one source", "SW-CHG-002", nothing, fires=False),
    Case("three batches without", "SW-CHG-007", _OLD_STATE, AGGREGATION, says=("ends at batch 5", "up to 8")),
    Case("the newest version", "SW-CHG-007", _ONE_VERSION, AGGREGATION, fires=False),
    Case("one partition", "SW-CHG-007", remove("checkpoint/state/0/0/9.delta"), AGGREGATION, fires=False),
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
