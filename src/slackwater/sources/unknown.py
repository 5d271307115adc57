"""Every source that no other kind owns: Python data sources, other connectors, sources without an offset."""

from __future__ import annotations

from slackwater.sources.contract import SourceEntries
from slackwater.sources.opaque import OpaqueSource


class Unknown(OpaqueSource):
    """The kind that is tried last."""

    kind = "unknown"

    def owns(self, offset: object, log: SourceEntries) -> bool:
        return True
