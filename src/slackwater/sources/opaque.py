"""The contract for a source whose offsets are only strings. Kinds with more known of them override what they know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slackwater.model.checkpoint_logs import SourceFile
from slackwater.sources.contract import EmptyBase, Reach, SourceEntries, SourceRange

NO_OFFSET = "no offset yet"


class OpaqueSource:
    """Copies the source's own log as it is and derives nothing from offsets."""

    def empty_base(self, start: str | None) -> EmptyBase | None:
        return None

    def first_log(self, base: EmptyBase) -> Mapping[str, bytes] | None:
        return None

    def log_until(self, end: str | None, log: SourceEntries, interval: int) -> Mapping[str, bytes]:
        return {str(entry): encoded(line) for entry, line in log.items()}

    def rows(self, span: SourceRange) -> int | None:
        return None

    def counted(self, span: SourceRange) -> Mapping[str, int | None] | None:
        return None

    def unrecorded(self, span: SourceRange) -> tuple[str, ...]:
        return ()

    def files(self, span: SourceRange) -> tuple[SourceFile, ...]:
        return ()

    def unavailable(self, span: SourceRange, reach: Reach) -> tuple[str, ...]:
        return ()

    def claimed(self, span: SourceRange, live: SourceRange, read: Sequence[SourceRange]) -> tuple[str, ...] | None:
        return () if span.start == span.end else None

    def free(self, live: SourceRange, read: Sequence[SourceRange]) -> tuple[str, ...]:
        return ()

    def initial(self, log: SourceEntries) -> str | None:
        return None

    def describe(self, offset: str | None) -> str:
        return NO_OFFSET if offset is None else offset

    def cut_entry(self, end: str | None) -> int | None:
        return None


def encoded(entry: str) -> bytes:
    """The bytes of a log entry that was decoded with surrogate escapes."""
    return entry.encode("utf-8", "surrogateescape")
