"""How far a stream is behind its sources, from what its newest batch reported."""

from __future__ import annotations

from slackwater.model.records import BatchRecord
from slackwater.plan.past import is_kafka_offset, kafka_span


def lag_of(batch: BatchRecord) -> int | None:
    """Rows the sources hold beyond the batch's end; ``None`` where no source tells (file sources do not)."""
    spans = [
        kafka_span(source.end, source.latest)
        for source in batch.sources
        if source.latest is not None and is_kafka_offset(source.latest) and is_kafka_offset(source.end)
    ]
    return sum(spans) if spans else None
