"""File sources (``FileStreamSource``): ``{"logOffset":5}`` covers all entries of ``sources/<source>/`` up to 5.

Facts: docs/format.md, sections 6 and 7.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from slackwater.core.checkpoint import ChangedFile, SourceFile
from slackwater.formats.compactible import lay_out, parse_file_source_log, render_source_file
from slackwater.formats.text_log import split_log
from slackwater.sources.common.contract import (
    Claims,
    EmptyBase,
    End,
    Range,
    Reach,
    Reached,
    RestartEffect,
    SourceEntries,
    SourceRange,
    decoded,
    is_long,
    log_shape,
    refuse_backward,
    replaced_file,
)
from slackwater.sources.common.source import LiveSource as LiveSource
from slackwater.sources.common.source import Source, encoded

NO_FILES = '{"logOffset":-1}'
"""The offset of a file source that has read no files, as Spark writes it."""
_NO_ENTRY = -1
_FIRST = '{"logOffset":0}'
_FIXED_MOST = 20_000
_BETWEEN = "\x00"


class Files(Source):
    """Positions are entry numbers of the source's own log; only the log names the files."""

    kind = "files"
    live_module = "slackwater.sources.files.live"
    has_empty_base = True
    shows_what_is_free = True
    label = "file"
    words = "files"
    example = '{"logOffset": 5}: the newest entry of the source\'s own log that counts as read, -1 for none'
    formats = frozenset({"json", "csv", "parquet", "orc", "text", "xml", "avro", "binaryfile"})
    connectors = frozenset({"avro"})
    harmless_options = frozenset(
        {
            *("cleansource", "latestfirst", "maxbytespertrigger", "maxcachedfiles", "maxfileage"),
            *("maxfilespertrigger", "sourcearchivedir"),
        }
    )
    identity_options = frozenset({"filenameonly"})
    reads_files = True
    nothing_read = NO_FILES
    end_field = "allFilesForTriggerAvailableNow"
    failures = (("source-changed", re.compile("Wrong basePath")),)
    restart_effect: RestartEffect = (
        "duplicate",
        (
            "a file source takes no startingOffsets: a new checkpoint reads every file that it finds, so those read "
            "before have to be moved out of its directory"
        ),
    )

    def is_named(self, description: str) -> bool:
        return description.startswith(("FileSource[", "FileStreamSource["))

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
            # A compacted entry lists the files of all earlier entries, too.
            if file.log_offset == entry
        )

    def counted(self, span: SourceRange) -> Mapping[str, int | None] | None:
        behind = _entry(span.end) - _entry(span.start)
        if behind > 0 and self.unrecorded(span):
            return None
        return {"files": len(self.files(span)) if behind > 0 else behind}

    def unavailable(self, span: SourceRange, reach: Reach) -> tuple[str, ...]:
        return tuple(file.path for file in self.files(span) if not reach.exists(file.path))

    def replaced(self, span: SourceRange, reach: Reach) -> tuple[ChangedFile, ...]:
        found = (replaced_file(file, span.sizes.get(file.path), reach) for file in self.files(span))
        return tuple(one for one in found if one is not None)

    def claimed(self, span: SourceRange, live: SourceRange, read: Sequence[SourceRange]) -> tuple[str, ...] | None:
        if any(self.unrecorded(one) for one in (live, *read)):
            return None
        free = set(self.free(live, read))
        return tuple(file.path for file in self.files(span) if file.path not in free)

    def free(self, live: SourceRange, read: Sequence[SourceRange]) -> tuple[str, ...]:
        seen = {file.path for one in read for file in self.files(one)}
        return tuple(file.path for file in self.files(live) if file.path not in seen)

    def initial(self, log: SourceEntries) -> str | None:
        return NO_FILES

    def describe(self, offset: str | None) -> str:
        last = _entry(offset)
        return "before the first file" if last == _NO_ENTRY else f"after entry {last} of the source log"

    def cut_entry(self, end: str | None) -> int | None:
        return _entry(end)

    def entry_parser(self, data: bytes) -> Callable[[bytes], object] | None:
        return parse_file_source_log if b'{"path":' in data else None

    def listed(self, data: bytes) -> tuple[SourceFile, ...]:
        return tuple(parse_file_source_log(data))

    def count_listed(self, data: bytes) -> int:
        _, lines = split_log(data, newest=1)
        if lines and lines[-1]:
            # A torn file is cut at its end.
            parse_file_source_log(f"v1\n{lines[-1]}".encode())
        return sum(1 for line in lines if line)

    def range_between(self, start: EmptyBase, end: EmptyBase, claims: Claims, *, to_next: bool) -> Range:
        """Omits files that batches have read or that the stream will read itself."""
        before, after = _files_of(start), _files_of(end)
        if not to_next:
            refuse_backward(claims.live.source, [path for path in before if path not in after])
        new = [file for path, file in after.items() if path not in before]
        free = set(self.free(claims.live, claims.read))
        counted = {file.path for file in self.files(claims.live)}
        wanted = [file for file in new if file.path in free]
        left_out = (
            (sum(file.path in counted - free for file in new), "that batches have read"),
            (sum(file.path not in counted for file in new), "that the stream reads by itself"),
        )
        parts = [f"{count} {why} left out" for count, why in left_out if count]
        summary = "; ".join([f"{len(wanted)} files", *parts])
        if not wanted:
            return Range(NO_FILES, NO_FILES, summary=summary)
        lines = [render_source_file(file._replace(log_offset=0)) for file in wanted]
        log = {name: encoded(content) for name, content in lay_out({0: lines}, 0, claims.interval).items()}
        return Range(NO_FILES, _FIRST, log, summary)

    def fixed_end(self, value: Any, source: str, log: SourceEntries) -> End | None:
        # So many names would take long over py4j; without them the next start asks the source.
        if value.size() > _FIXED_MOST:
            return {}
        # NewFileEntry(file:///a,8,1700000000000), before Spark 4 without the size.
        texts = [text for text in str(value.mkString(_BETWEEN)).split(_BETWEEN) if text]
        fields = int(value.head().productArity()) if texts else 0
        # From the right: a path may contain commas.
        paths = {unquote(text.partition("(")[2].rsplit(",", fields - 1)[0]) for text in texts}
        after = max(log, default=_NO_ENTRY)
        read = {unquote(file.path) for file in self.files(SourceRange(source, None, _offset(after), log))}
        return {"source": source, "after": after, "files": len(paths - read)}

    def reached(self, end: End, span: SourceRange) -> Reached:
        since = span._replace(start=_offset(int(end["after"])))
        if self.unrecorded(since):
            return "unknown"
        read = len(self.files(since))
        if read == end["files"]:
            return "end"
        return "before" if read < end["files"] else "unknown"

    def continues(self, was: str, now: str) -> bool:
        """Return whether a location continues an earlier location: a pattern can match files that were read there."""
        return any(set("*?[{") & set(location) for location in (was, now))

    def restart_fields(
        self, offset: str | None, files_read: int | None, files_to_come: Sequence[SourceFile]
    ) -> Mapping[str, object]:
        to_come = [
            {"path": file.path, "log_offset": file.log_offset, "timestamp_ms": file.timestamp_ms}
            for file in files_to_come
        ]
        return {"log_offset": _entry(offset), "files_read": files_read, "files_to_come": to_come}


def _files_of(base: EmptyBase) -> Mapping[str, SourceFile]:
    # Compacted entries repeat the files of others.
    return {file.path: file for content in base.log.values() for file in parse_file_source_log(content)}


def _offset(entry: int) -> str:
    return f'{{"logOffset":{entry}}}'


def _entry(offset: str | None) -> int:
    value = decoded(offset)
    if isinstance(value, dict):
        value = value.get("logOffset")
    return value if is_long(value) else _NO_ENTRY


SOURCE = Files()
