"""The newest recorded batches of a generation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from slackwater.core.facts import Facts
from slackwater.core.records import BatchRecord
from slackwater.sources import kind_of
from slackwater.sources.common.contract import SourceRange


def with_rows(facts: Facts, most: int) -> tuple[BatchRecord, ...]:
    """Returns at most so many newest batches that read rows; none where there are fewer."""
    batches = [one for one in facts.batches if one.input_rows][-most:]
    return tuple(batches) if len(batches) == most else ()


def lag_of(batch: BatchRecord) -> int | None:
    """Rows beyond the batch's end; ``None`` where no source reports them (file sources do not)."""
    known = [rows for rows in rows_ahead(batch) if rows is not None]
    return sum(known) if known else None


def rows_ahead(batch: BatchRecord) -> Sequence[int | None]:
    """The rows by source; ``None`` where offsets do not determine them."""
    return [
        kind_of(source.end, {}).rows(SourceRange(str(index), source.end, source.latest))
        for index, source in enumerate(batch.sources)
    ]


def never_falls(numbers: list[int]) -> bool:
    return all(before <= after for before, after in pairwise(numbers))
