"""Delta tables (``DeltaSourceOffset``): the id of the table, a version of its log, and a file in that version."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from slackwater.sources.common.contract import End, Reached, SourceEntries, SourceRange
from slackwater.sources.common.shapes import decoded, is_long
from slackwater.sources.common.source import LiveSource, Source

_FIELDS = {"sourceVersion", "reservoirId", "reservoirVersion", "index", "isStartingVersion"}


class Delta(Source):
    """Positions are versions of the table; ``index`` -1 is before all files of the version."""

    kind = "delta"
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

    def owns(self, offset: object, log: SourceEntries) -> bool:
        return (
            isinstance(offset, dict)
            and offset.keys() <= _FIELDS
            and isinstance(offset.get("reservoirId"), str)
            and is_long(offset.get("reservoirVersion"))
        )

    def live(self) -> LiveSource:
        live: LiveSource = import_module("slackwater.sources.delta.live").LIVE
        return live

    def describe(self, offset: str | None) -> str:
        value = decoded(offset)
        if not isinstance(value, dict) or not self.owns(value, {}):
            return super().describe(offset)
        return f"version {value['reservoirVersion']}, file {value.get('index', -1)} of table {value['reservoirId']}"

    def fixed_end(self, value: Any, source: str, log: SourceEntries) -> End | None:
        return {"offset": str(value.get().json())} if value.isDefined() else None

    def reached(self, end: End, span: SourceRange) -> Reached:
        return "end" if decoded(end["offset"]) == decoded(span.end) else "unknown"


SOURCE = Delta()
