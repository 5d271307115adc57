"""A stream's recorded batches, decoded when they are asked for: ranges, watermarks, and what each range reads."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from slackwater.core.checkpoint import CommitEntry, OffsetEntry
from slackwater.core.records import History, Ranges
from slackwater.formats.commit_log import next_watermark_ms, parse_commit_entry, render_commit_entry
from slackwater.formats.offset_log import parse_offset_entry, planned_watermark_ms
from slackwater.sources import kind_of
from slackwater.sources.common.contract import Reach, Replaced, SourceRange
from slackwater.sources.common.source import Source


class BatchHistory:
    """A history with its entries decoded."""

    def __init__(self, history: History) -> None:
        self.history = history
        self._offsets: dict[int, OffsetEntry] = {}

    @property
    def batches(self) -> list[int]:
        """The batches whose range is recorded, in order."""
        return sorted(self.history.offsets)

    def offset(self, batch: int) -> OffsetEntry:
        """``offsets/N``. Raises KeyError where it is not recorded, FormatError where it cannot be parsed."""
        known = self._offsets.get(batch)
        if known is None:
            known = self._offsets[batch] = parse_offset_entry(self.history.offsets[batch].encode())
        return known

    def commit(self, batch: int) -> CommitEntry | None:
        """``commits/N``, where it is recorded."""
        text = self.history.commits.get(batch)
        return parse_commit_entry(text.encode()) if text is not None else None

    def watermark_ms(self, batch: int) -> int:
        """The watermark that a batch was planned with, 0 where there was none, or where the batch is not recorded."""
        text = self.history.offsets.get(batch)
        return 0 if text is None else planned_watermark_ms(text)

    def watermark_after_ms(self, batch: int) -> int:
        """The watermark in the commit of a batch, as ``watermark_ms``."""
        text = self.history.commits.get(batch)
        return 0 if text is None else next_watermark_ms(text)

    def commit_text(self, batch: int) -> str | None:
        """``commits/N`` as it is recorded, else as the next batch shows it, which starts with the watermark after N.

        ``None`` where neither is recorded. Later versions of the log name files of the state, which nothing else does.
        """
        commits = self.history.commits
        if batch in commits or batch + 1 not in self.history.offsets:
            return commits.get(batch)
        versions = {parse_commit_entry(text.encode()).version for text in commits.values()}
        shown = CommitEntry(1, self.offset(batch + 1).watermark_ms)
        return render_commit_entry(shown).decode() if versions == {1} else None

    def kind(self, source: str, offset: str | None) -> Source:
        """The kind of a source."""
        return kind_of(offset, self.history.sources.get(source, {}))

    def log_of(self, source: str) -> str:
        """The folder in ``sources/`` with the own log of a source: of one that is read twice, that of the first."""
        return self.history.source_logs.get(source, source)

    def spans(self, first: int, last: int) -> list[tuple[Source, SourceRange]]:
        """What batches ``first`` to ``last`` read, by source; empty where there is no batch in between."""
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
        """Entries of the sources' own logs that a checkpoint at batch N needs and that are not recorded, by source."""
        found = {span.source: kind.unrecorded(span) for kind, span in self._from_the_beginning(batch)}
        return {source: entries for source, entries in found.items() if entries}

    def reads_nothing(self, batch: int) -> bool:
        """Whether the recorded range of a batch is empty."""
        if not {batch, batch - 1} <= self.history.offsets.keys():
            return False
        return offsets_by_source(self.offset(batch)) == offsets_by_source(self.offset(batch - 1))

    def is_whole(self, batch: int) -> bool:
        """Whether everything is recorded that a checkpoint at batch N needs."""
        return batch in self.history.offsets and not self.unrecorded(batch)

    def newest_whole(self, last: int) -> int | None:
        """The newest batch up to ``last`` of which everything is recorded."""
        return next((batch for batch in reversed(self.batches) if batch <= last and self.is_whole(batch)), None)

    def missing(self, first: int, last: int, reach: Reach, *, files: bool = True) -> list[str]:
        """What the sources no longer have of batches ``first`` to ``last``, a line for people each.

        Sources of files are left out without ``files``.
        """
        spans = [(kind, span) for kind, span in self.spans(first, last) if files or not kind.reads_files]
        return [line for kind, span in spans for line in kind.unavailable(span, reach)]

    def replaced(self, first: int, last: int, reach: Reach) -> list[Replaced]:
        """The source files of batches ``first`` to ``last`` that are not those that the batches read."""
        return [file for kind, span in self.spans(first, last) for file in kind.replaced(span, reach)]

    def missing_after(self, batch: int, reach: Reach, *, files: bool = True) -> list[str]:
        """The same of everything that was recorded after a batch (-1: of everything)."""
        later = [known for known in self.batches if known > batch and self.is_whole(known)]
        base = batch if batch in self.history.offsets else None
        if not later or (base is None and batch >= 0):
            return []
        return self.missing(batch + 1, later[-1], reach, files=files)

    def missing_for(self, first: int, target: int, reach: Reach, ranges: Ranges) -> list[str]:
        """The same of all that continuing after ``target`` reads: the replayed batches from ``first``, and later ones.

        With new ranges the files of later ones need not be there: an earlier stage writes others in their place.
        """
        later = self.missing_after(target, reach, files=ranges == "recorded")
        return [*self.missing(first, target, reach), *later]

    def most_rows(self, batch: int) -> int | None:
        """How many rows a batch can have read, by the offsets of all sources: not each offset has a row."""
        if batch > 0 and batch - 1 not in self.history.offsets:
            return None
        counted = [kind.rows(span) for kind, span in self.spans(batch, batch)]
        known = [count for count in counted if count is not None]
        return sum(known) if counted and len(known) == len(counted) else None

    def is_intact(self, batch: int, reach: Reach) -> bool:
        """Whether all that a batch read are files, and those that it read are there, by their times and sizes."""
        return all(
            kind.reads_files
            and not kind.unrecorded(span)
            and all(file.path in span.sizes for file in kind.files(span))
            and not kind.unavailable(span, reach)
            and not kind.replaced(span, reach)
            for kind, span in self.spans(batch, batch)
        )

    def digest(self, batches: range) -> str:
        """SHA-256 over the ranges that are recorded of some batches."""
        lines = [f"{batch}:{self.history.offsets[batch]}" for batch in self.batches if batch in batches]
        return sha256("\n".join(lines).encode()).hexdigest()

    def settings(self, batch: int) -> Mapping[str, str] | None:
        """The SQL settings of the run that executed a batch, where they are recorded."""
        run = self.history.runs.get(batch)
        return run.settings if run is not None else None

    def pinned(self, batch: int) -> Mapping[str, str]:
        """The settings that the batch's own entry pins: Spark applies them in any session."""
        metadata = self.offset(batch).metadata
        return metadata.conf if metadata is not None else {}

    def _from_the_beginning(self, batch: int) -> list[tuple[Source, SourceRange]]:
        ends = offsets_by_source(self.offset(batch))
        return [
            (self.kind(source, end), SourceRange(source, None, end, self.history.sources.get(source, {})))
            for source, end in ends.items()
        ]


def offsets_by_source(entry: OffsetEntry) -> Mapping[str, str | None]:
    """The end of each source in an entry, by the source's position or name."""
    return {offset.source: offset.text for offset in entry.offsets}
