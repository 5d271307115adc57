"""Asks a Delta table whether it is the one that was read, and whether its log still has the next version."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

from slackwater.core.errors import EnvironmentMissing
from slackwater.core.facts import Unserved
from slackwater.core.program import SourceShape
from slackwater.sources.common.shapes import decoded
from slackwater.sources.common.source import LiveSource
from slackwater.sources.delta import SOURCE as DELTA
from slackwater.storage.open import is_uri, open_read_store

_LOG = "_delta_log"
_COMMIT = re.compile(r"(\d{20})\.json")


class DeltaLive(LiveSource):
    """Reads the log of a table that is named by its path."""

    def unserved(self, shape: SourceShape, start: str | None, end: str | None) -> Sequence[Unserved]:
        value, location = decoded(start), shape.location
        if not isinstance(value, dict) or not DELTA.owns(value, {}):
            return ()
        if not (location.startswith("/") or is_uri(location)):
            raise EnvironmentMissing(
                "store-unreachable",
                "The source is a table of a catalog, whose path is not recorded",
                where=location,
                hint="compare the table's id and its oldest version in the catalog",
            )
        names = [entry.name for entry in open_read_store(location).list(_LOG)]
        versions = sorted(int(match[1]) for name in names if (match := _COMMIT.fullmatch(name)))
        read, oldest = str(value["reservoirId"]), value["reservoirVersion"]
        table = _table_id(location) if names else None
        if table != read:
            found = f"table {table}" if names else "no Delta table"
            return (Unserved("table-replaced", location, f"table {read}", found),)
        if versions and oldest < versions[0]:
            found = f"version {versions[0]} as the oldest"
            return (Unserved("versions-cleaned", location, f"version {oldest}", found, versions[0] - oldest),)
        return ()


def _table_id(location: str) -> str:
    if find_spec("deltalake") is None:
        raise EnvironmentMissing(
            "extra-missing", "Reading a Delta table needs deltalake", where=location,
            hint="pip install 'slackwater[delta]'",
        )  # fmt: skip
    found: str = import_module("slackwater.sources.delta.table").table_id(location)
    return found


LIVE = DeltaLive(DELTA)
