"""Settings pinned in ``offsets/``, which override the session's at a restart."""

from collections.abc import Mapping

from slackwater.core.checkpoint import OffsetEntry
from slackwater.core.facts import CheckpointSeen

PARTITIONS = "spark.sql.shuffle.partitions"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
POLICY = "spark.sql.streaming.multipleWatermarkPolicy"
JOIN_FORMAT = "spark.sql.streaming.join.stateFormatVersion"
ENCODING = "spark.sql.streaming.stateStore.encodingFormat"
"""Pinned by Spark 4.0 and later, so it shows the release."""

ABSENT: Mapping[str, str] = {
    "spark.sql.streaming.flatMapGroupsWithState.stateFormatVersion": "1",
    "spark.sql.streaming.aggregation.stateFormatVersion": "1",
    JOIN_FORMAT: "1",
    "spark.sql.streaming.stateStore.compression.codec": "lz4",
    "spark.sql.streaming.statefulOperator.useStrictDistribution": "false",
    "spark.sql.optimizer.pruneFiltersCanPruneStreamingSubplan": "true",
    ENCODING: "unsaferow",
    "spark.sql.streaming.stateStore.rocksdb.mergeOperatorVersion": "1",
    "spark.sql.streaming.stateStore.rowChecksum.enabled": "false",
    "spark.sql.streaming.statefulOperator.alwaysNullableOutput.enabled": "false",
    "spark.sql.dropDuplicates.deterministicKeyOrder.enabled": "false",
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": "false",
    "spark.sql.function.protobufExtensions.enabled": "false",
}
"""What Spark uses for unpinned settings: the behaviour of releases without them.

Source: ``OffsetSeqMetadata``, and warnings of Spark 4.3 when it continues older checkpoints.
"""
PINNED = (PARTITIONS, PROVIDER, POLICY, "spark.sql.streaming.stateStore.rocksdb.formatVersion", *ABSENT)
"""Settings that Spark takes from the newest entry of ``offsets/``, whatever the session has."""


def newest_committed(checkpoint: CheckpointSeen) -> OffsetEntry | None:
    """``None`` where it is not among the newest two."""
    if checkpoint.committed < 0 or not checkpoint.offset_ids:
        return None
    if checkpoint.offset_ids[-1] == checkpoint.committed:
        return checkpoint.newest_offset
    before = checkpoint.offset_ids[-2:-1]
    return checkpoint.offset_before if before == (checkpoint.committed,) else None


def settings_of(entry: OffsetEntry | None) -> Mapping[str, str]:
    return entry.metadata.conf if entry is not None and entry.metadata is not None else {}


def pinned_partitions(entry: OffsetEntry | None) -> int | None:
    text = settings_of(entry).get(PARTITIONS, "")
    return int(text) if text.isascii() and text.isdigit() else None
