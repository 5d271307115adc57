"""Copies missing entries of the text logs of a checkpoint and file sink into the ledger, verbatim.

Must not happen: a changed checkpoint; half a pass or a torn file in the ledger. Errors are raised; the next pass starts
over.

The ledger's copy is evidence of Spark's batches. Only a newer entry that parses replaces it, never a torn, restored or
edited file, and not while the sink shows the recorded batch. Replaced entries are kept.

Facts: docs/format.md, sections 3, 6, 7, 8. Every tenth entry of a file source's or sink's log is ``N.compact`` and
repeats all earlier entries; verbatim, the ledger would grow quadratically.
"""

import itertools
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from slackwater.core.errors import FormatError
from slackwater.core.records import LogLine
from slackwater.formats.text_log import (
    LEADING,
    parse_commit_entry,
    parse_object,
    parse_offset_entry,
    parse_query_metadata,
    parse_records,
)
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.lineage import METADATA, SINK, SIZES, SOURCES
from slackwater.ledger.recording.source_availability import StoreAvailability
from slackwater.sinks.common.contract import Output, SinkLog
from slackwater.sources import kind_of_entry
from slackwater.sources.common.contract import sizes_as_read
from slackwater.storage.open import local_file_of
from slackwater.storage.protocols import FileTooLarge, ReadStore

_REREAD_LOCAL = 100
"""How many of a log's newest entries a first pass compares with the ledger: Spark keeps as many of offsets/ by default.

After a trim Spark plans batches again, perhaps unobserved.
"""
_REREAD_AT_LEAST = 2
"""On a remote store each read takes a round trip, so only the batch in flight and its predecessor are compared."""
_ENTRY_NAME = re.compile(r"([0-9]{1,18})(\.compact)?")
_LISTED_EVERY_S = 1.0
_RECORD = "{"
_PARSERS: dict[str, Callable[[bytes], object]] = {
    METADATA: parse_query_metadata,
    "offsets": parse_offset_entry,
    "commits": parse_commit_entry,
}
_VERSION_LINE = re.compile(r"v[0-9]+(\n|$)")
_OWN_MOST = 1000


def copy_new(ledger: Ledger, stream: str, generation: int, checkpoint: ReadStore, sink: Output | None = None) -> int:
    return LogCopier(ledger, stream, generation, checkpoint, sink).copy()


@dataclass(slots=True)
class _Progress:
    """The ledger's entries of a log; the content of ``doubtful`` entries must be compared."""

    known: set[int]
    doubtful: set[int]
    highest: int

    def forget_above(self, newest: int) -> None:
        # An entry taken away from the end of a log may come back as a batch that was planned differently.
        if newest < self.highest:
            self.doubtful |= {entry for entry in self.known if entry > newest}
            self.known = {entry for entry in self.known if entry <= newest}
            self.highest = newest

    def add(self, entries: Mapping[int, str]) -> None:
        self.known.update(entries)
        self.doubtful.difference_update(entries)
        self.highest = max(self.highest, *entries)


_Listed = tuple[str, ReadStore, str, Mapping[int, str]]
"""A log, its store and folder, and the file names of its entries."""


class LogCopier:
    """A pass without new entries lists a few directories and runs no SQL. The first pass also compares the newest
    entries. Not thread-safe.
    """

    def __init__(
        self, ledger: Ledger, stream: str, generation: int, checkpoint: ReadStore, sink: Output | None = None
    ) -> None:
        self._ledger = ledger
        self._stream = stream
        self._generation = generation
        self._checkpoint = checkpoint
        self._sink = sink.log() if sink is not None else None
        self._checkpoint_folders = LogFolders(checkpoint)
        self._sink_folders = LogFolders(self._sink.store) if self._sink is not None else None
        self._progress: dict[str, _Progress] = {}
        self._newest_in_sink = -1
        self._seen_before = False

    @property
    def is_remote(self) -> bool:
        """Return whether a pass lists a remote store, which costs time and money."""
        return self._checkpoint.traits.remote or (self._sink is not None and self._sink.store.traits.remote)

    def copy(self) -> int:
        # All is listed before anything is read, and each log before those that Spark writes earlier in a batch:
        # whatever an offsets entry means was then in sources/ when that was listed.
        fresh = {listed[0]: self._fresh(*listed) for listed in list(self._listed())}
        changed: list[LogLine] = []
        replaced: list[LogLine] = []
        for log, texts in fresh.items():
            recorded = self._recorded(log, texts)
            for entry, text in texts.items():
                old = recorded.get(entry)
                if old == text:
                    continue
                if old is not None and not self._may_replace(log, entry, old, text, fresh.get(SINK, {})):
                    continue
                changed.append(self._line(log, entry, text))
                replaced += [] if old is None else [self._line(log, entry, old)]
        if changed:
            self._ledger.record_lines([*changed, *self._sizes(changed)], replaced)
        self._seen_before = True
        # After the transaction only: what a failed pass has read is read again in the next one.
        for log, texts in fresh.items():
            if texts:
                self._progress[log].add(texts)
        return len(changed)

    def _sizes(self, lines: Sequence[LogLine]) -> list[LogLine]:
        """The sizes in bytes of unchanged files in new entries of file sources. A remote store is asked per file, so
        only while the query is watched.
        """
        found = []
        for line in lines:
            if line.log.startswith(SOURCES):
                data = line.text.encode("utf-8", "surrogateescape")
                files = kind_of_entry(data).listed(data)
                if any(local_file_of(file.path) is None for file in files) and not self._seen_before:
                    continue
                sizes = sizes_as_read(files, StoreAvailability())
                log = SIZES + line.log.removeprefix(SOURCES)
                found += [self._line(log, line.entry, json.dumps(sizes))] if sizes else []
        return found

    def _listed(self) -> Iterator[_Listed]:
        if self._sink is not None and self._sink_folders is not None:
            folder = self._sink.folder
            names = self._sink_folders.entries(folder)
            self._newest_in_sink = max(names, default=-1)
            yield SINK, self._sink.store, folder, names
        sources = (SOURCES + source for source in self._checkpoint_folders.folders("sources"))
        for log in itertools.chain(("commits", "offsets"), sources):
            yield log, self._checkpoint, log, self._checkpoint_folders.entries(log)
        yield METADATA, self._checkpoint, "", {0: METADATA}

    def _fresh(self, log: str, store: ReadStore, folder: str, names: Mapping[int, str]) -> dict[int, str]:
        if not names:
            return {}
        progress = self._progress.get(log) or self._begin(log, names)
        progress.forget_above(max(names))
        texts: dict[int, str] = {}
        for entry in sorted(names.keys() - progress.known):
            try:
                text = decode(store.read(f"{folder}/{names[entry]}".lstrip("/")))
            except (FileNotFoundError, FileTooLarge):
                # Spark purges its logs while they are being read. It wrote no entry of that size: checks of damage
                # report it.
                continue
            if not _is_whole(log, text):
                continue
            if _is_compact(names[entry]):
                merged = self._expand(log, entry, text, texts)
                texts.update({number: merged[number] for number in merged.keys() - progress.known})
            elif _parses(log, text, self._sink):
                texts[entry] = text
        return texts

    def _begin(self, log: str, names: Mapping[int, str]) -> _Progress:
        recorded = (
            # The sink's log continues through all generations; a checkpoint's logs are its own.
            self._ledger.entries(self._stream, log, generation=self._generation)
            if log == SINK
            else self._ledger.recorded_entries(self._stream, self._generation, log)
        )
        newest_first = sorted(names, reverse=True)
        further = [] if self.is_remote else newest_first[_REREAD_AT_LEAST:_REREAD_LOCAL]
        # A compacted entry repeats other entries; reading each of them again would read the log many times over.
        plain = (entry for entry in further if not _is_compact(names[entry]))
        doubtful = recorded & {*newest_first[:_REREAD_AT_LEAST], *plain}
        progress = _Progress(recorded - doubtful, doubtful, highest=max(recorded, default=-1))
        self._progress[log] = progress
        return progress

    def _expand(self, log: str, entry: int, text: str, this_pass: Mapping[int, str]) -> dict[int, str]:
        """The entries merged in a compacted entry (for a sink: its own); none if malformed."""
        if log != SINK:
            return split_source_compact(text, entry) if _parses(log, text, None) else {}
        recorded = self._ledger.lines(self._stream, log, last=entry - 1, generation=self._generation)
        earlier = [one for _, one in sorted({**recorded, **this_pass}.items())]
        own = after_recorded(text, earlier)
        if not _parses(log, text if own is None else own, self._sink):
            return {}
        return {entry: strip_sink_compact(text, earlier) if own is None else own}

    def _recorded(self, log: str, texts: Mapping[int, str]) -> Mapping[int, str]:
        doubtful = self._progress[log].doubtful.intersection(texts) if texts else set()
        if not doubtful:
            return {}
        if log == SINK:
            lines = self._ledger.lines(self._stream, log, min(doubtful), max(doubtful), generation=self._generation)
            return {entry: line for entry, line in lines.items() if entry in doubtful}
        return self._ledger.own_lines(self._stream, self._generation, log, doubtful)

    def _may_replace(self, log: str, entry: int, recorded: str, found: str, in_sink: Mapping[int, str]) -> bool:
        """Return whether ``found`` may replace a different ``recorded``. ``in_sink``: the lines of this pass."""
        if not _parses(log, recorded, self._sink):
            return True
        if log != "offsets":
            # Cut after its version line, a file is still an entry: that of a batch without files, or of an old release.
            return _RECORD not in recorded or _RECORD in found
        mark = self._ledger.last_sink_mark(self._stream)
        is_shown = mark is not None and entry <= mark.written
        if self._sink is not None:
            lines = self._ledger.lines(self._stream, SINK, entry, entry, generation=self._generation)
            same = in_sink.get(entry, lines[entry]) == lines[entry] if entry in lines else is_shown
            is_shown = same and entry <= self._newest_in_sink
        return not is_shown and _planned_ms(found) > _planned_ms(recorded)

    def _line(self, log: str, entry: int, text: str) -> LogLine:
        return LogLine(self._stream, self._generation, log, entry, text)


def _is_compact(name: str) -> bool:
    return name.endswith(".compact")


@dataclass(slots=True)
class _Listing:
    names: dict[int, str]
    highest: int
    listed_s: float


class LogFolders:
    """The entries of log folders, asked many times a second.

    Spark numbers log entries without gaps, so between listings of a local folder only the next name is checked, at a
    hundredth of the cost. Each folder is listed every second, so deleted entries do not stay.
    """

    def __init__(self, store: ReadStore) -> None:
        self._store = store
        self._listings: dict[str, _Listing] = {}

    def entries(self, folder: str) -> Mapping[int, str]:
        """Numbered entries (``N`` or ``N.compact``), as entry to file name.

        Valid until the next call for the folder.
        """
        known = self._listings.get(folder)
        # On a remote store a check for a name takes a request, as a listing does. A trim removes the newest entries.
        if (
            known is None
            or self._store.traits.remote
            or time.monotonic() - known.listed_s >= _LISTED_EVERY_S
            or known.highest not in known.names
            or not self._store.exists(f"{folder}/{known.names[known.highest]}")
        ):
            found = dict[int, str]()
            for listed in self._store.list(folder):
                match = None if listed.is_dir else _ENTRY_NAME.fullmatch(listed.name)
                if match is not None and not (match[2] and int(match[1]) in found):
                    found[int(match[1])] = listed.name
            self._listings[folder] = _Listing(found, max(found, default=-1), time.monotonic())
            return found
        while True:
            following = known.highest + 1
            names = (str(following), f"{following}.compact")
            name = next((one for one in names if self._store.exists(f"{folder}/{one}")), None)
            if name is None:
                return known.names
            known.highest, known.names[following] = following, name

    def folders(self, folder: str) -> tuple[str, ...]:
        return tuple(
            entry.name for entry in self._store.list(folder) if entry.is_dir and not entry.name.startswith(".")
        )


def _parses(log: str, text: str, sink: SinkLog | None) -> bool:
    data = text.encode("utf-8", "surrogateescape")
    parser = _PARSERS.get(log)
    if log == SINK and sink is not None:
        parser = sink.parse
    elif log.startswith(SOURCES):
        parser = kind_of_entry(data).entry_parser(data) or parse_records
    if parser is None:
        return True
    try:
        parser(data)
    except FormatError:
        return False
    return True


def _planned_ms(text: str) -> int:
    metadata = parse_offset_entry(text.encode("utf-8", "surrogateescape")).metadata
    return metadata.batch_timestamp_ms if metadata is not None else 0


def decode(data: bytes) -> str:
    """Decode bytes so that those that are not UTF-8 survive the round trip."""
    return data.decode("utf-8", "surrogateescape")


def _is_whole(log: str, text: str) -> bool:
    """Return whether a string can be an entry; otherwise the file is read again later."""
    if log == "metadata":
        return text.startswith("{") and text.endswith("}")
    return _VERSION_LINE.match(text.removeprefix(LEADING)) is not None


def split_source_compact(text: str, entry: int) -> dict[int, str]:
    """The entries of a compacted source entry: each line names its entry."""
    version, *lines = text.split("\n")
    texts = {entry: [version]}
    for line in lines:
        # A line that cannot be parsed is kept where it was found.
        number: object = entry
        with suppress(FormatError, KeyError):
            number = parse_object(line, "a file entry")["batchId"]
        of = number if isinstance(number, int) and 0 <= number <= entry else entry
        texts.setdefault(of, [version]).append(line)
    return {number: "\n".join(parts) for number, parts in texts.items()}


def after_recorded(text: str, earlier: Iterable[str]) -> str | None:
    """A sink's compacted entry without all earlier entries' lines, if they come first in order, as Spark writes it.
    ``None``: other lines, or a remaining line may name a file of an earlier entry.
    """
    version = text.partition("\n")[0]
    recorded = "\n".join([version, *(lines for _, _, lines in (one.partition("\n") for one in earlier) if lines)])
    rest = text[len(recorded) :]
    own = rest.split("\n")[1:]
    if not text.startswith(recorded) or not rest.startswith("\n" if rest else ""):
        return None
    if len(own) > _OWN_MOST or any(_file(line)[0] in recorded for line in own):
        return None
    return version + rest


def strip_sink_compact(text: str, earlier: Iterable[str]) -> str:
    """A sink's compacted entry without files of earlier entries.

    Lines do not name their batch. Files of unknown earlier entries stay: the entry then represents all batches up to
    its own.
    """
    known = {_file(line) for text in earlier for line in text.split("\n")[1:]}
    version, *lines = text.split("\n")
    return "\n".join([version, *(line for line in lines if _file(line) not in known)])


def _file(line: str) -> tuple[str, str]:
    # Not the whole line: a newer Spark may rewrite an older one's line with other fields.
    try:
        fields = json.loads(line)
        return str(fields["path"]), str(fields.get("action"))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return line, ""
