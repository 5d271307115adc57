"""File sources (``FileStreamSource``): ``{"logOffset":5}`` means all entries of ``sources/<source>/`` up to 5.

Facts: checkpoint-format sections 6 and 7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slackwater.formats.compactible import lay_out
from slackwater.formats.file_source_log import parse_file_source_log
from slackwater.model.checkpoint_logs import SourceFile
from slackwater.sources.contract import EmptyBase, Reach, SourceEntries, SourceRange
from slackwater.sources.opaque import OpaqueSource, encoded
from slackwater.sources.shapes import decoded, is_long, log_shape

NO_FILES = '{"logOffset":-1}'
"""The offset of a file source that has read no files, as Spark writes it."""
_NO_ENTRY = -1


class Files(OpaqueSource):
    """Positions are entry numbers of the source's own log; only that log names the files."""

    kind = "files"

    def owns(self, offset: object, log: SourceEntries) -> bool:
        if isinstance(offset, dict):
            return offset.keys() == {"logOffset"} and is_long(offset["logOffset"]) and offset["logOffset"] >= _NO_ENTRY
        # Old releases wrote the bare number.
        return (offset is None or is_long(offset)) and log_shape(log) == "files"

    def empty_base(self, start: str | None) -> EmptyBase | None:
        return EmptyBase(NO_FILES)

    def first_log(self, base: EmptyBase) -> Mapping[str, bytes] | None:
        # Batch 0 reads all entries of the log: none of them can count as read before.
        return {} if _entry(base.end) == _NO_ENTRY else None

    def log_until(self, end: str | None, log: SourceEntries, interval: int) -> Mapping[str, bytes]:
        last = _entry(end)
        lines = {entry: content.split("\n")[1:] for entry, content in log.items() if entry <= last}
        return {name: encoded(content) for name, content in lay_out(lines, last, interval).items()}

    def unrecorded(self, span: SourceRange) -> tuple[str, ...]:
        first, last = _entry(span.start) + 1, _entry(span.end)
        gaps: list[str] = []
        for entry in [*sorted(entry for entry in span.log if first <= entry <= last), last + 1]:
            if first < entry:
                gaps.append(str(first) if first == entry - 1 else f"{first}..{entry - 1}")
            first = entry + 1
        return tuple(gaps)

    def files(self, span: SourceRange) -> tuple[SourceFile, ...]:
        first, last = _entry(span.start) + 1, _entry(span.end)
        return tuple(
            file
            for entry in sorted(span.log)
            if first <= entry <= last
            for file in parse_file_source_log(encoded(span.log[entry]))
            if file.log_offset == entry
        )

    def counted(self, span: SourceRange) -> Mapping[str, int | None] | None:
        behind = _entry(span.end) - _entry(span.start)
        if behind > 0 and self.unrecorded(span):
            return None
        return {"files": len(self.files(span)) if behind > 0 else behind}

    def unavailable(self, span: SourceRange, reach: Reach) -> tuple[str, ...]:
        return tuple(file.path for file in self.files(span) if not reach.exists(file.path))

    def claimed(self, span: SourceRange, live: SourceRange, read: Sequence[SourceRange]) -> tuple[str, ...] | None:
        if any(self.unrecorded(one) for one in (live, *read)):
            return None
        free = set(self.free(live, read))
        return tuple(file.path for file in self.files(span) if file.path not in free)

    def free(self, live: SourceRange, read: Sequence[SourceRange]) -> tuple[str, ...]:
        """Files that count as read, and that no batch has read."""
        seen = {file.path for one in read for file in self.files(one)}
        return tuple(file.path for file in self.files(live) if file.path not in seen)

    def initial(self, log: SourceEntries) -> str | None:
        return NO_FILES

    def describe(self, offset: str | None) -> str:
        last = _entry(offset)
        return "before the first file" if last == _NO_ENTRY else f"after entry {last} of the source log"

    def cut_entry(self, end: str | None) -> int | None:
        return _entry(end)


def _entry(offset: str | None) -> int:
    """The newest entry that an offset covers; -1 for none."""
    value = decoded(offset)
    if isinstance(value, dict):
        value = value.get("logOffset")
    return value if is_long(value) else _NO_ENTRY
