"""A stream's recorded batches, decoded on demand: ranges, watermarks, source positions."""

from collections.abc import Mapping
from hashlib import sha256

from slackwater.core.checkpoint import ChangedFile, CommitEntry, OffsetEntry
from slackwater.core.records import History, Ranges
from slackwater.formats.text_log import (
    next_watermark_ms,
    parse_commit_entry,
    parse_offset_entry,
    planned_watermark_ms,
    render_commit_entry,
)
from slackwater.sources import kind_of
from slackwater.sources.common.contract import Reach, SourceRange
from slackwater.sources.common.source import Source


class BatchHistory:
    def __init__(self, history: History) -> None:
        self.history = history
        self._offsets: dict[int, OffsetEntry] = {}

    @property
    def batches(self) -> list[int]:
        return sorted(self.history.offsets)

    def offset(self, batch: int) -> OffsetEntry:
        """The ``offsets`` entry of a batch. Raises KeyError if not recorded, FormatError if malformed."""
        known = self._offsets.get(batch)
        if known is None:
            known = self._offsets[batch] = parse_offset_entry(self.history.offsets[batch].encode())
        return known

    def commit(self, batch: int) -> CommitEntry | None:
        text = self.history.commits.get(batch)
        return parse_commit_entry(text.encode()) if text is not None else None

    def watermark_ms(self, batch: int) -> int:
        """The watermark at planning; 0 if there is none or it is unrecorded."""
        text = self.history.offsets.get(batch)
        return 0 if text is None else planned_watermark_ms(text)

    def watermark_after_ms(self, batch: int) -> int:
        text = self.history.commits.get(batch)
        return 0 if text is None else next_watermark_ms(text)

    def commit_text(self, batch: int) -> str | None:
        """The recorded ``commits/N``, otherwise rebuilt from the next batch, which starts with the watermark after N.
        ``None`` without either. Later log versions also name state files, which nothing else shows.
        """
        commits = self.history.commits
        if batch in commits or batch + 1 not in self.history.offsets:
            return commits.get(batch)
        versions = {parse_commit_entry(text.encode()).version for text in commits.values()}
        shown = CommitEntry(1, self.offset(batch + 1).watermark_ms)
        return render_commit_entry(shown).decode() if versions == {1} else None

    def kind(self, source: str, offset: str | None) -> Source:
        return kind_of(offset, self.history.sources.get(source, {}))

    def log_of(self, source: str) -> str:
        """The folder in ``sources/`` with a source's log; a source that is read twice has one log."""
        return self.history.source_logs.get(source, source)

    def spans(self, first: int, last: int) -> list[tuple[Source, SourceRange]]:
        if first > last:
            return []
        starts = offsets_by_source(self.offset(first - 1)) if first > 0 else {}
        ends = offsets_by_source(self.offset(last))
        return [
            (
                self.kind(source, end),
                SourceRange(source, starts.get(source), end, self.history.sources.get(source, {}), self.history.sizes),
            )
            for source, end in ends.items()
        ]

    def unrecorded(self, batch: int) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for source, end in offsets_by_source(self.offset(batch)).items():
            span = SourceRange(source, None, end, self.history.sources.get(source, {}))
            if entries := self.kind(source, end).unrecorded(span):
                found[source] = entries
        return found

    def reads_nothing(self, batch: int) -> bool:
        if not {batch, batch - 1} <= self.history.offsets.keys():
            return False
        return offsets_by_source(self.offset(batch)) == offsets_by_source(self.offset(batch - 1))

    def is_whole(self, batch: int) -> bool:
        return batch in self.history.offsets and not self.unrecorded(batch)

    def newest_whole(self, last: int) -> int | None:
        return next((batch for batch in reversed(self.batches) if batch <= last and self.is_whole(batch)), None)

    def missing(self, first: int, last: int, reach: Reach, *, files: bool = True) -> list[str]:
        """The batches' data that the sources have lost, a line for people each. ``files=False`` omits file sources."""
        spans = [(kind, span) for kind, span in self.spans(first, last) if files or not kind.reads_files]
        return [line for kind, span in spans for line in kind.unavailable(span, reach)]

    def replaced(self, first: int, last: int, reach: Reach) -> list[ChangedFile]:
        return [file for kind, span in self.spans(first, last) for file in kind.replaced(span, reach)]

    def missing_after(self, batch: int, reach: Reach, *, files: bool = True) -> list[str]:
        """``missing`` for everything after a batch (-1: everything)."""
        later = [known for known in self.batches if known > batch and self.is_whole(known)]
        base = batch if batch in self.history.offsets else None
        if not later or (base is None and batch >= 0):
            return []
        return self.missing(batch + 1, later[-1], reach, files=files)

    def missing_for(self, first: int, target: int, reach: Reach, ranges: Ranges) -> list[str]:
        """``missing`` for replayed batches from ``first``, and later batches. With new ranges the files of later
        batches may be absent: an earlier stage rewrites them.
        """
        later = self.missing_after(target, reach, files=ranges == "recorded")
        return [*self.missing(first, target, reach), *later]

    def most_rows(self, batch: int) -> int | None:
        """The most rows that a batch can have read: not each offset has a row."""
        if batch > 0 and batch - 1 not in self.history.offsets:
            return None
        counted = [kind.rows(span) for kind, span in self.spans(batch, batch)]
        known = [count for count in counted if count is not None]
        return sum(known) if counted and len(known) == len(counted) else None

    def is_intact(self, batch: int, reach: Reach) -> bool:
        """Return whether a batch read only files, and all exist unchanged by time and size."""
        return all(
            kind.reads_files
            and not kind.unrecorded(span)
            and all(file.path in span.sizes for file in kind.files(span))
            and not kind.unavailable(span, reach)
            and not kind.replaced(span, reach)
            for kind, span in self.spans(batch, batch)
        )

    def digest(self, batches: range) -> str:
        lines = [f"{batch}:{self.history.offsets[batch]}" for batch in self.batches if batch in batches]
        return sha256("\n".join(lines).encode()).hexdigest()

    def settings(self, batch: int) -> Mapping[str, str] | None:
        run = self.history.runs.get(batch)
        return run.settings if run is not None else None

    def pinned(self, batch: int) -> Mapping[str, str]:
        """The pinned settings, which Spark applies in any session."""
        metadata = self.offset(batch).metadata
        return metadata.conf if metadata is not None else {}


def offsets_by_source(entry: OffsetEntry) -> Mapping[str, str | None]:
    return {offset.source: offset.text for offset in entry.offsets}
