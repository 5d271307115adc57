from __future__ import annotations

from slackwater.core.sink import CatalogueEntry
from slackwater.sinks.common.mark import PUBLISHED_WITH_MARKER, marked_traits

JDBC_TRAITS = marked_traits(PUBLISHED_WITH_MARKER)
ENTRIES = (CatalogueEntry("jdbc", "jdbc(url, table)", JDBC_TRAITS, ("append", "complete"), rank=50),)
