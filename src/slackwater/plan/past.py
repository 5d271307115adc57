"""Reads a stream's recorded past: which batches are known, which sources they read, where they lie."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from slackwater.formats.commit_log import parse_commit_entry
from slackwater.formats.file_source_log import parse_file_source_log
from slackwater.formats.offset_log import parse_offset_entry
from slackwater.model.checkpoint_logs import CommitEntry, OffsetEntry, SourceFile
from slackwater.model.history import History


class Past:
    """A history with its entries decoded when they are asked for."""

    def __init__(self, history: History) -> None:
        self.history = history

    @property
    def batches(self) -> list[int]:
        """The batches whose range is recorded, in order."""
        return sorted(self.history.offsets)

    def offset(self, batch: int) -> OffsetEntry:
        """``offsets/N``. Raises KeyError where it is not recorded, FormatError where it does not decode."""
        return parse_offset_entry(self.history.offsets[batch].encode())

    def commit(self, batch: int) -> CommitEntry | None:
        """``commits/N``, where it is recorded."""
        text = self.history.commits.get(batch)
        return parse_commit_entry(text.encode()) if text is not None else None

    def source_files(self, source: str, first: int, last: int) -> list[SourceFile]:
        """The files that a file source took in its log entries ``first`` to ``last``."""
        texts = self.history.sources.get(source, {})
        return [
            file
            for entry in sorted(texts)
            if first <= entry <= last
            for file in parse_file_source_log(texts[entry].encode())
            if file.log_offset == entry
        ]

    def missing_source_entries(self, batch: int) -> dict[str, list[int]]:
        """Entries of file sources that batch N's range names and nobody has recorded, by source."""
        missing: dict[str, list[int]] = {}
        for source, text in _offsets(self.offset(batch)).items():
            last = log_offset(text)
            if last is not None:
                known = self.history.sources.get(source, {})
                gone = [entry for entry in range(last + 1) if entry not in known]
                if gone:
                    missing[source] = gone
        return missing

    def digest(self, first: int, last: int) -> str:
        """SHA-256 over the recorded ranges of batches ``first`` to ``last``."""
        lines = [f"{batch}:{self.history.offsets.get(batch)}" for batch in range(first, last + 1)]
        return sha256("\n".join(lines).encode()).hexdigest()


def log_offset(text: str | None) -> int | None:
    """The ``logOffset`` of a file source's offset; ``None`` for another kind of source or for no offset."""
    value = _json(text)
    if isinstance(value, dict) and set(value) == {"logOffset"}:
        return int(value["logOffset"])
    return None


def is_kafka_offset(text: str | None) -> bool:
    """Whether an offset is Kafka's: topic -> partition -> next offset."""
    value = _json(text)
    return isinstance(value, dict) and all(
        isinstance(partitions, dict) and all(isinstance(offset, int) for offset in partitions.values())
        for partitions in value.values()
    )


def kafka_span(start: str | None, end: str | None) -> int:
    """Offsets between two positions: the rows of a topic that is neither transactional nor compacted."""
    ends, starts = _kafka_positions(end), _kafka_positions(start)
    return sum(offset - starts.get(partition, 0) for partition, offset in ends.items())


def _kafka_positions(text: str | None) -> dict[tuple[str, str], int]:
    topics: Any = _json(text) or {}
    return {
        (topic, partition): int(offset)
        for topic, partitions in topics.items()
        for partition, offset in partitions.items()
    }


def offsets_by_source(entry: OffsetEntry) -> Mapping[str, str | None]:
    """The end of each source in an entry, by the source's position or name."""
    return _offsets(entry)


def _offsets(entry: OffsetEntry) -> dict[str, str | None]:
    return {offset.source: offset.text for offset in entry.offsets}


def _json(text: str | None) -> object:
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None
