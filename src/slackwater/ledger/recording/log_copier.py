"""Copies the text logs of a checkpoint and of the file sink into the ledger, verbatim, as far as it lacks them.

What may not happen: a changed checkpoint; half a pass in the ledger; a torn file in the ledger. An error of the store
or of the ledger is the caller's: none is hidden here, and the next pass starts where this one did.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from slackwater.core.records import LogLine
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.lineage import METADATA, SINK, SIZES, SOURCES
from slackwater.ledger.recording.log_folders import LogFolders
from slackwater.ledger.recording.log_text import (
    after_recorded,
    decode,
    is_whole,
    split_source_compact,
    strip_sink_compact,
)
from slackwater.ledger.recording.reach import StoreReach
from slackwater.ledger.recording.replacement import may_replace, parses
from slackwater.sinks.common.contract import Output
from slackwater.sources import kind_of_entry
from slackwater.sources.common.read_files import sizes_as_read
from slackwater.storage.open import local_file_of
from slackwater.storage.protocols import FileTooLarge, ReadStore

_REREAD_LOCAL = 100
"""How many of a log's newest entries a first pass compares with the ledger. After a trim Spark plans batches again,
perhaps unobserved; as many as Spark keeps of offsets/ by default."""
_REREAD_AT_LEAST = 2
"""On a remote store, where each read takes a round trip: the batch that was in flight, and the one before it."""


def copy_new(ledger: Ledger, stream: str, generation: int, checkpoint: ReadStore, sink: Output | None = None) -> int:
    """Copy what the ledger lacks, once; how many entries were recorded."""
    return LogCopier(ledger, stream, generation, checkpoint, sink).copy()


@dataclass(slots=True)
class _Progress:
    """What the ledger has of one log. ``doubtful`` entries are there too, but their content is still to be compared."""

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


@dataclass(frozen=True, slots=True)
class _Listed:
    """A log with the entries that are there, as entry to file name."""

    log: str
    store: ReadStore
    folder: str
    names: Mapping[int, str]


class LogCopier:
    """Copies again and again; a pass in which nothing is new lists a few directories and runs no SQL.

    Its first pass also compares the newest entries with the ledger's copies. For one thread at a time.
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
        """Whether a pass lists a remote store, which costs time and money."""
        return self._checkpoint.traits.remote or (self._sink is not None and self._sink.store.traits.remote)

    def copy(self) -> int:
        """One pass, recorded in one transaction; how many entries were new or had changed."""
        # All is listed before anything is read, and each log before those that Spark writes earlier in a batch:
        # whatever an offsets entry means was then in sources/ when that was listed.
        fresh = {listed.log: self._fresh(listed) for listed in list(self._listed())}
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
        for log, texts in fresh.items():
            if texts:
                self._progress[log].add(texts)
        return len(changed)

    def _sizes(self, lines: Sequence[LogLine]) -> list[LogLine]:
        """The bytes of the files that new entries of file sources name, where they still are as they were read.

        Of a remote store, which is asked for each file, only of what arrives while the query is watched.
        """
        found = []
        for line in lines:
            if line.log.startswith(SOURCES):
                data = line.text.encode("utf-8", "surrogateescape")
                files = kind_of_entry(data).listed(data)
                if any(local_file_of(file.path) is None for file in files) and not self._seen_before:
                    continue
                sizes = sizes_as_read(files, StoreReach())
                log = SIZES + line.log.removeprefix(SOURCES)
                found += [self._line(log, line.entry, json.dumps(sizes))] if sizes else []
        return found

    def _listed(self) -> Iterator[_Listed]:
        if self._sink is not None and self._sink_folders is not None:
            folder = self._sink.folder
            names = self._sink_folders.entries(folder)
            self._newest_in_sink = max(names, default=-1)
            yield _Listed(SINK, self._sink.store, folder, names)
        sources = (SOURCES + source for source in self._checkpoint_folders.folders("sources"))
        for log in itertools.chain(("commits", "offsets"), sources):
            yield _Listed(log, self._checkpoint, log, self._checkpoint_folders.entries(log))
        yield _Listed(METADATA, self._checkpoint, "", {0: METADATA})

    def _fresh(self, listed: _Listed) -> dict[int, str]:
        """The content of the entries that are not known to be in the ledger."""
        log, names = listed.log, listed.names
        if not names:
            return {}
        progress = self._progress.get(log) or self._begin(log, names)
        progress.forget_above(max(names))
        texts: dict[int, str] = {}
        for entry in sorted(names.keys() - progress.known):
            text = _read(listed.store, f"{listed.folder}/{names[entry]}".lstrip("/"))
            if text is None or not is_whole(log, text):
                continue
            if _is_compact(names[entry]):
                merged = self._expand(log, entry, text, texts)
                texts.update({number: merged[number] for number in merged.keys() - progress.known})
            elif parses(log, text, self._sink):
                texts[entry] = text
        return texts

    def _begin(self, log: str, names: Mapping[int, str]) -> _Progress:
        recorded = (
            # The sink's log continues through all generations; a checkpoint's logs are its own.
            self._ledger.entries(self._stream, log, generation=self._generation)
            if log == SINK
            else self._ledger.recorded_entries(self._stream, self._generation, log)
        )
        doubtful = recorded.intersection(self._to_compare(names))
        progress = _Progress(recorded - doubtful, doubtful, highest=max(recorded, default=-1))
        self._progress[log] = progress
        return progress

    def _to_compare(self, names: Mapping[int, str]) -> list[int]:
        newest_first = sorted(names, reverse=True)
        further = [] if self.is_remote else newest_first[_REREAD_AT_LEAST:_REREAD_LOCAL]
        # A compacted entry repeats other entries; reading each of them again would read the log many times over.
        return newest_first[:_REREAD_AT_LEAST] + [entry for entry in further if not _is_compact(names[entry])]

    def _expand(self, log: str, entry: int, text: str, this_pass: Mapping[int, str]) -> dict[int, str]:
        """The entries that a compacted one merges, or of a sink its own; none if it cannot be parsed."""
        if log != SINK:
            return split_source_compact(text, entry) if parses(log, text, None) else {}
        recorded = self._ledger.lines(self._stream, log, last=entry - 1, generation=self._generation)
        earlier = [one for _, one in sorted({**recorded, **this_pass}.items())]
        own = after_recorded(text, earlier)
        if not parses(log, text if own is None else own, self._sink):
            return {}
        return {entry: strip_sink_compact(text, earlier) if own is None else own}

    def _recorded(self, log: str, texts: Mapping[int, str]) -> Mapping[int, str]:
        """What the ledger has of the entries whose recorded content is in doubt."""
        doubtful = self._progress[log].doubtful.intersection(texts) if texts else set()
        if not doubtful:
            return {}
        if log == SINK:
            lines = self._ledger.lines(self._stream, log, min(doubtful), max(doubtful), generation=self._generation)
            return {entry: line for entry, line in lines.items() if entry in doubtful}
        return self._ledger.own_lines(self._stream, self._generation, log, doubtful)

    def _may_replace(self, log: str, entry: int, recorded: str, found: str, in_sink: Mapping[int, str]) -> bool:
        if not parses(log, recorded, self._sink):
            return True
        return may_replace(log, recorded, found, shown=log == "offsets" and self._is_shown(entry, in_sink))

    def _is_shown(self, batch: int, in_sink: Mapping[int, str]) -> bool:
        """Whether the sink still shows the recorded batch; ``in_sink`` are entries of its log as they are now."""
        mark = self._ledger.last_sink_mark(self._stream)
        was_shown = mark is not None and batch <= mark.written
        if self._sink is None:
            return was_shown
        lines = self._ledger.lines(self._stream, SINK, batch, batch, generation=self._generation)
        same = in_sink.get(batch, lines[batch]) == lines[batch] if batch in lines else was_shown
        return same and batch <= self._newest_in_sink

    def _line(self, log: str, entry: int, text: str) -> LogLine:
        return LogLine(self._stream, self._generation, log, entry, text)


def _is_compact(name: str) -> bool:
    return name.endswith(".compact")


def _read(store: ReadStore, path: str) -> str | None:
    try:
        return decode(store.read(path))
    except FileNotFoundError:
        # Spark purges its logs while they are being read.
        return None
    except FileTooLarge:
        # No entry that Spark wrote; the checks of damage report it.
        return None
