"""Delta tables (``DeltaSourceOffset``): the id of the table, a version of its log, and a file in that version."""

from __future__ import annotations

from slackwater.sources.contract import SourceEntries
from slackwater.sources.opaque import OpaqueSource
from slackwater.sources.shapes import decoded, is_long

_FIELDS = {"sourceVersion", "reservoirId", "reservoirVersion", "index", "isStartingVersion"}


class Delta(OpaqueSource):
    """Positions are versions of the table; ``index`` -1 is before all files of the version."""

    kind = "delta"

    def owns(self, offset: object, log: SourceEntries) -> bool:
        return (
            isinstance(offset, dict)
            and offset.keys() <= _FIELDS
            and isinstance(offset.get("reservoirId"), str)
            and is_long(offset.get("reservoirVersion"))
        )

    def describe(self, offset: str | None) -> str:
        value = decoded(offset)
        if not isinstance(value, dict) or not self.owns(value, {}):
            return super().describe(offset)
        return f"version {value['reservoirVersion']}, file {value.get('index', -1)} of table {value['reservoirId']}"
