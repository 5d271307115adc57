"""Iceberg tables (``StreamingOffset``): a snapshot and a position in its files."""

from typing import Any

from slackwater.sources.common.contract import EarlyEnd, End, SourceEntries, decoded, is_long
from slackwater.sources.common.source import Source

_FIELDS = {"version", "snapshot_id", "position", "scan_all_files"}


class Iceberg(Source):
    """Positions are snapshots; ``position`` counts the snapshot's files that were read."""

    kind = "iceberg"
    formats = frozenset({"iceberg"})
    connectors = frozenset({"iceberg"})
    end_field = "lastOffsetForTriggerAvailableNow"
    package = "org.apache.iceberg."
    # Before 1.11 its stream is no SupportsTriggerAvailableNow: Spark's wrapper of such a source fixes the end of the
    # run by one call of latestOffset with the limit of a batch.
    early_end = EarlyEnd(
        "org.apache.iceberg.IcebergBuild",
        (1, 11),
        frozenset({"streaming-max-files-per-micro-batch", "streaming-max-rows-per-micro-batch"}),
    )

    def owns(self, offset: object, log: SourceEntries) -> bool:
        return (
            isinstance(offset, dict)
            and offset.keys() <= _FIELDS
            and is_long(offset.get("snapshot_id"))
            and is_long(offset.get("position"))
        )

    def describe(self, offset: str | None) -> str:
        value = decoded(offset)
        if not isinstance(value, dict) or not self.owns(value, {}):
            return super().describe(offset)
        return f"snapshot {value['snapshot_id']}, position {value['position']}"

    def fixed_end(self, value: Any, source: str, log: SourceEntries) -> End | None:
        return {"offset": str(value.json())}


SOURCE = Iceberg()
