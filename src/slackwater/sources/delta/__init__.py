"""Delta tables (``DeltaSourceOffset``): table id, log version, and a file in the version."""

import json
from collections.abc import Mapping
from typing import Any

from slackwater.sources.common.contract import EmptyBase, End, SourceEntries, decoded, is_long
from slackwater.sources.common.contract import Reached as Reached
from slackwater.sources.common.contract import SourceRange as SourceRange
from slackwater.sources.common.source import LiveSource as LiveSource
from slackwater.sources.common.source import Source

BEFORE_ALL = -1
"""The ``index`` before all files of a version."""
_FIELDS = {"sourceVersion", "reservoirId", "reservoirVersion", "index", "isStartingVersion"}


class Delta(Source):
    """Positions are table versions; ``index`` -1 is before all files of a version."""

    kind = "delta"
    live_module = "slackwater.sources.delta.live"
    shows_what_is_served = True
    formats = frozenset({"delta"})
    connectors = frozenset({"delta"})
    harmless_options = frozenset(
        {
            *("ignorechanges", "ignoredeletes", "maxbytespertrigger", "maxfilespertrigger", "maxversionspertrigger"),
            "skipchangecommits",
        }
    )
    start_options = frozenset({"startingtimestamp", "startingversion"})
    end_field = "lastOffsetForTriggerAvailableNow"
    example = "the offset of a table, as the command offsets shows it"

    def is_named(self, description: str) -> bool:
        """Return whether a description is of this kind: the format before a run, the path in progress events."""
        return description == "delta" or description.startswith("DeltaSource[")

    def owns(self, offset: object, log: SourceEntries) -> bool:
        return (
            isinstance(offset, dict)
            and offset.keys() <= _FIELDS
            and isinstance(offset.get("reservoirId"), str)
            and is_long(offset.get("reservoirVersion"))
        )

    def at(self, table: str, version: int, *, whole: bool) -> str:
        """The position before a version; ``whole``: read the table as it is then, not only the version's changes."""
        position = {
            "sourceVersion": 1,
            "reservoirId": table,
            "reservoirVersion": version,
            "index": BEFORE_ALL,
            "isStartingVersion": whole,
        }
        return json.dumps(position, separators=(",", ":"))

    def first_log(self, base: EmptyBase) -> Mapping[str, bytes] | None:
        # Without a position Delta reads the whole table first.
        position = decoded(base.end)
        return {} if isinstance(position, dict) and _is_whole(position) else None

    def describe(self, offset: str | None) -> str:
        value = decoded(offset)
        if not isinstance(value, dict) or not self.owns(value, {}):
            return super().describe(offset)
        version, table = value["reservoirVersion"], value["reservoirId"]
        if _is_whole(value):
            return f"all rows of version {version} of table {table}"
        return f"version {version}, file {value.get('index', BEFORE_ALL)} of table {table}"

    def fixed_end(self, value: Any, source: str, log: SourceEntries) -> End | None:
        return {"offset": str(value.get().json())} if value.isDefined() else None


def _is_whole(position: Mapping[str, Any]) -> bool:
    return bool(position.get("isStartingVersion")) and position.get("index") == BEFORE_ALL


SOURCE = Delta()
