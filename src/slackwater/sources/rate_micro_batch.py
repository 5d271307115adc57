"""The source ``rate-micro-batch``.

Facts: docs/format.md, section 6.
"""

from __future__ import annotations

from slackwater.sources.common.contract import SourceEntries, SourceRange
from slackwater.sources.common.shapes import decoded, is_long
from slackwater.sources.common.source import Source


class RateMicroBatch(Source):
    """The number of rows so far, and the timestamp of the next batch."""

    kind = "rate-micro-batch"
    formats = frozenset({"rate-micro-batch"})
    harmless_options = frozenset({"advancemillisperbatch", "numpartitions", "rowsperbatch", "starttimestamp"})

    def owns(self, offset: object, log: SourceEntries) -> bool:
        return _rows_until(offset) is not None

    def rows(self, span: SourceRange) -> int | None:
        start = 0 if span.start is None else _rows_until(decoded(span.start))
        end = _rows_until(decoded(span.end))
        return None if start is None or end is None else max(end - start, 0)


def _rows_until(offset: object) -> int | None:
    if not isinstance(offset, dict) or offset.keys() != {"offset", "timestamp"}:
        return None
    rows = offset["offset"]
    return rows if is_long(rows) and is_long(offset["timestamp"]) else None


SOURCE = RateMicroBatch()
