"""The sources of a checkpoint: what kind each is, told from its offsets and its own log, and what that log lists."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from slackwater.checkpoint.integrity import read_checked
from slackwater.checkpoint.layout import SOURCES, source_path
from slackwater.checkpoint.listing import Listing
from slackwater.checkpoint.logs import damage_of, source_order
from slackwater.errors import FormatError
from slackwater.formats.compactible import parse_entry_name
from slackwater.formats.file_source_log import parse_file_source_log
from slackwater.formats.kafka_initial_offsets import parse_initial_offsets
from slackwater.formats.text_log import split_log
from slackwater.model.checkpoint import SourceLine, SourceLog
from slackwater.model.checkpoint_logs import OffsetEntry, SourceFile, SourceOffset
from slackwater.model.damage import Damage
from slackwater.storage.protocols import ReadStore

_FIRST_ENTRY = "0"
_SHAPES = (
    ("file", {"logOffset"}),
    ("delta", {"reservoirId", "reservoirVersion"}),
    ("iceberg", {"snapshot_id", "position"}),
    ("rate-micro-batch", {"offset", "timestamp"}),
    ("kinesis", {"streamName"}),
)


def kind_of_offset(text: str | None) -> str | None:
    """What source writes offsets of this shape; ``None`` where that cannot be told."""
    if text is None:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, int):
        return "number"
    if not isinstance(value, dict) or not value:
        return None
    shape = next((kind for kind, fields in _SHAPES if fields <= value.keys()), None)
    if shape:
        return shape
    inner = list(value.values())
    if all(isinstance(item, dict) for item in inner):
        if all("runTimeMs" in item for item in inner):
            return "rate-continuous"
        partitions = [offset for item in inner for offset in item.items()]
        if partitions and all(name.isdigit() and isinstance(offset, int) for name, offset in partitions):
            return "kafka"
    return None


@dataclass(slots=True)
class SourceReader:
    """Reads the sources of one listing. ``with_files`` parses every entry; otherwise files are only counted."""

    store: ReadStore
    listing: Listing
    with_files: bool = False
    damage: list[Damage] = field(default_factory=list)

    def sources(self, entry: OffsetEntry | None) -> tuple[SourceLine, ...]:
        """Every source that the newest entry or a log of its own speaks of."""
        offsets = {offset.source: offset for offset in entry.offsets} if entry else {}
        names = sorted(offsets.keys() | set(self.listing.folder(SOURCES).directories), key=source_order)
        return tuple(self._source(index, name, offsets.get(name)) for index, name in enumerate(names))

    def _source(self, index: int, name: str, offset: SourceOffset | None) -> SourceLine:
        kind = kind_of_offset(offset.text) if offset else None
        ids = self._entries(name)
        if kind == "file" or (kind is None and len(ids) > 0 and self._lists_files(name)):
            return SourceLine(index, name, "file", self._file_log(name, ids))
        if self.listing.has(source_path(name, _FIRST_ENTRY)):
            return self._with_initial(index, name, kind)
        return SourceLine(index, name, {"number": "socket, memory or rate"}.get(kind or "", kind or "unknown"))

    def _entries(self, name: str) -> dict[int, str]:
        """The log entries of a source by number; a compacted one takes the place of the plain one."""
        found: dict[int, str] = {}
        for file in sorted(self.listing.folder(source_path(name)).files):
            parsed = parse_entry_name(file)
            if parsed and (parsed[1] or parsed[0] not in found):
                found[parsed[0]] = file
        return found

    def _lists_files(self, name: str) -> bool:
        entries = self._entries(name)
        data = self._read(source_path(name, entries[max(entries)])) or b""
        return b'{"path":' in data

    def _file_log(self, name: str, ids: dict[int, str]) -> SourceLog | None:
        if not ids:
            return None
        compacted = [number for number, file in ids.items() if file.endswith(".compact")]
        newest = max(compacted, default=min(ids))
        # The newest compacted entry holds all before it.
        names = [ids[number] for number in sorted(ids) if number >= newest]
        files: list[SourceFile] = []
        count = 0
        for file in names:
            data = self._read(source_path(name, file))
            if data is None:
                continue
            try:
                count += self._count(data, files)
            except FormatError as error:
                self.damage.append(damage_of(source_path(name, file), error))
        return SourceLog(min(ids), max(ids), count, tuple(files))

    def _count(self, data: bytes, files: list[SourceFile]) -> int:
        if self.with_files:
            files.extend(parsed := parse_file_source_log(data))
            return len(parsed)
        _, lines = split_log(data, newest=1)
        if lines and lines[-1]:
            # A torn file is cut at its end.
            parse_file_source_log(f"v1\n{lines[-1]}".encode())
        return sum(1 for line in lines if line)

    def _with_initial(self, index: int, name: str, kind: str | None) -> SourceLine:
        path = source_path(name, _FIRST_ENTRY)
        data = self._read(path)
        if data is None:
            return SourceLine(index, name, kind or "unknown")
        try:
            if kind == "kafka" or data[:1] == b"\0":
                return SourceLine(index, name, "kafka", initial=parse_initial_offsets(data))
            _, lines = split_log(data, newest=1)
        except FormatError as error:
            self.damage.append(damage_of(path, error))
            return SourceLine(index, name, kind or "unknown")
        text = "\n".join(lines).strip()
        if kind == "number" and text.isdigit():
            return SourceLine(index, name, "rate", initial=text)
        return SourceLine(index, name, kind or "unknown", initial=text or None)

    def _read(self, path: str) -> bytes | None:
        try:
            checked = read_checked(self.store, self.listing, path, thorough=False)
        except OSError as error:
            self.damage.append(damage_of(path, error))
            return None
        self.damage.extend(checked.damage)
        return checked.data
