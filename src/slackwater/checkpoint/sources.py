from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from slackwater.checkpoint.layout import SOURCES, source_path
from slackwater.checkpoint.listing import Listing
from slackwater.checkpoint.logs import damage_of, read_or_damage, source_order
from slackwater.core.checkpoint import Damage, OffsetEntry, SourceFile, SourceLine, SourceLog
from slackwater.core.errors import FormatError
from slackwater.core.units import MIB
from slackwater.formats.compactible import parse_entry_name
from slackwater.formats.text_log import parse_records, split_log
from slackwater.sources import UNKNOWN, kind_of, kind_of_entry
from slackwater.sources.common.source import Source
from slackwater.storage.protocols import ReadStore

_FIRST_ENTRY = 0
_FILES_COMPARED = 20_000
_BYTES_COMPARED = 2 * MIB
"""Of older entries, which no start reads: a tenth of a second."""


@dataclass(slots=True)
class SourceReader:
    """``with_files`` parses every entry; otherwise files are only counted."""

    store: ReadStore
    listing: Listing
    with_files: bool = False
    damage: list[Damage] = field(default_factory=list)

    def sources(self, entry: OffsetEntry | None) -> tuple[SourceLine, ...]:
        offsets = {offset.source: offset.text for offset in entry.offsets} if entry else {}
        names = sorted(offsets.keys() | set(self.listing.folder(SOURCES).directories), key=source_order)
        return tuple(self._source(index, name, offsets.get(name)) for index, name in enumerate(names))

    def _source(self, index: int, name: str, offset: str | None) -> SourceLine:
        log = _EntryFiles(self, name)
        kind = kind_of(offset, log)
        if kind is UNKNOWN:
            # The offset may be damaged; the log shows the kind too.
            kind = kind_of(None, log)
        if kind.reads_files:
            return SourceLine(index, name, kind.label, self._file_log(kind, log))
        return SourceLine(index, name, kind.label, initial=self._initial(kind, log))

    def _file_log(self, kind: Source, log: _EntryFiles) -> SourceLog | None:
        if not log:
            return None
        files: list[SourceFile] = []
        count = 0
        for entry in log.newest():
            data = log.data(entry)
            if data is None:
                continue
            try:
                if self.with_files:
                    files += kind.listed(data)
                    count = len(files)
                else:
                    count += kind.count_listed(data)
            except FormatError as error:
                self.damage.append(damage_of(log.path(entry), error))
        differing = tuple(self._differing(kind, log, files)) if self.with_files else ()
        return SourceLog(min(log), max(log), count, tuple(files), differing)

    def _differing(self, kind: Source, log: _EntryFiles, files: Sequence[SourceFile]) -> Iterator[str]:
        first = log.newest()[0]
        older = [entry for entry in log if entry < first]
        if not older or self.store.traits.remote or len(files) > _FILES_COMPARED:
            return
        bytes_left = _BYTES_COMPARED
        for entry in sorted(older, reverse=True):
            data = log.data(entry) or b""
            bytes_left -= len(data)
            if bytes_left < 0:
                return
            compacted = log.is_compacted(entry)
            with suppress(FormatError):  # Spark does not read it when it starts; --verify reports it
                listed = kind.listed(data)
                if listed and listed != tuple(
                    file for file in files if (file.log_offset <= entry if compacted else file.log_offset == entry)
                ):
                    yield log.path(entry)

    def _initial(self, kind: Source, log: _EntryFiles) -> str | None:
        data = log.data(_FIRST_ENTRY) if _FIRST_ENTRY in log else None
        if data is None:
            return None
        try:
            initial = kind.initial(log)
            if initial or kind is not UNKNOWN:
                return initial or _text_of(data)
            parse_source_entry(data)
        except FormatError as error:
            self.damage.append(damage_of(log.path(_FIRST_ENTRY), error))
            return None
        with suppress(FormatError):
            return _text_of(data)
        return None


def parse_source_entry(data: bytes) -> None:
    """Raises ``FormatError`` for cut records; an unknown kind's other bytes are accepted."""
    if not data:
        raise FormatError("empty", "the file has no bytes", expected="an entry of a source's log", found="0 bytes")
    parser = kind_of_entry(data).entry_parser(data)
    if parser is not None:
        parser(data)
    elif data.startswith(b"v1\n{"):
        parse_records(data)


def _text_of(data: bytes) -> str | None:
    return "\n".join(split_log(data, newest=1)[1]).strip() or None


def names_of_entries(files: Iterable[str]) -> dict[int, str]:
    """The file of each entry; a compacted file takes precedence over a plain file."""
    found: dict[int, str] = {}
    for file in sorted(files):
        parsed = parse_entry_name(file)
        if parsed and (parsed[1] or parsed[0] not in found):
            found[parsed[0]] = file
    return found


class _EntryFiles(Mapping[int, str]):
    """A source's log by entry, each read once on demand."""

    def __init__(self, reader: SourceReader, source: str) -> None:
        self._reader = reader
        self._source = source
        self._names = names_of_entries(reader.listing.folder(source_path(source)).files)
        self._data: dict[int, bytes | None] = {}

    def __getitem__(self, entry: int) -> str:
        """The entry; empty if unreadable."""
        return (self.data(entry) or b"").decode("utf-8", "surrogateescape")

    def __contains__(self, entry: object) -> bool:
        return entry in self._names

    def __iter__(self) -> Iterator[int]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def path(self, entry: int) -> str:
        """Raises KeyError."""
        return source_path(self._source, self._names[entry])

    def data(self, entry: int) -> bytes | None:
        """``None`` for an unreadable entry. Raises KeyError."""
        if entry not in self._data:
            reader = self._reader
            self._data[entry] = read_or_damage(reader.store, reader.listing, self.path(entry), reader.damage)
        return self._data[entry]

    def is_compacted(self, entry: int) -> bool:
        """Whether the file holds older entries too. Raises KeyError."""
        return self._names[entry].endswith(".compact")

    def newest(self) -> list[int]:
        compacted = [entry for entry, name in self._names.items() if name.endswith(".compact")]
        first = max(compacted, default=min(self._names))
        return sorted(entry for entry in self._names if entry >= first)
