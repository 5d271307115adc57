"""How far a stream is behind its sources, from what its newest batch reported."""

from __future__ import annotations

from slackwater.model.records import BatchRecord
from slackwater.sources.contract import SourceRange
from slackwater.sources.registry import kind_of


def lag_of(batch: BatchRecord) -> int | None:
    """Rows the sources hold beyond the batch's end; ``None`` where no source reports them (file sources do not)."""
    ahead = [
        kind_of(source.end, {}).rows(SourceRange(str(index), source.end, source.latest))
        for index, source in enumerate(batch.sources)
    ]
    known = [rows for rows in ahead if rows is not None]
    return sum(known) if known else None
