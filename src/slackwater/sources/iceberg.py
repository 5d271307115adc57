"""Iceberg tables (``StreamingOffset``): a snapshot and a position in its files."""

from __future__ import annotations

from slackwater.sources.contract import SourceEntries
from slackwater.sources.opaque import OpaqueSource
from slackwater.sources.shapes import decoded, is_long

_FIELDS = {"version", "snapshot_id", "position", "scan_all_files"}


class Iceberg(OpaqueSource):
    """Positions are snapshots of the table; ``position`` counts the files that were read of the snapshot."""

    kind = "iceberg"

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
