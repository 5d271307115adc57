"""Facts about sources: records that they serve, and files of file sources that were removed, changed, or never read."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TypeAlias, TypeVar

from slackwater.checkpoint.logs import CheckpointLogs
from slackwater.checkpoint.opened import OpenedCheckpoint
from slackwater.core.checkpoint import NONE_YET, ChangedFile, OffsetEntry, SourceFile, SourceLine
from slackwater.core.commands import mention
from slackwater.core.errors import FormatError, SlackwaterError
from slackwater.core.facts import Fact, SourceFacts, Unknown, Unserved
from slackwater.core.program import SourceShape, parsed_program
from slackwater.core.records import GenerationRecord, LogLine
from slackwater.core.snapshot import Snapshot
from slackwater.formats.compactible import parse_file_source_log
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.lineage import SIZES, SOURCE_IDS, SOURCES
from slackwater.ledger.recording.source_availability import StoreAvailability
from slackwater.ledger.tables import unreadable
from slackwater.sinks.common.registry import identity_at, open_output
from slackwater.sources import kind_of, kinds_of_format
from slackwater.sources.common.contract import Asked, SparkSource, replaced_file, without_partitions
from slackwater.sources.common.source import encoded
from slackwater.storage.open import local_file_of

_MOST_FILES = 500
"""The most files that are looked up: milliseconds on a local disk, a request each on a remote store."""
_MOST_ENTRIES = 10
"""The most entries that a start reads: Spark's compaction interval."""
_DAY_MS = 24 * 60 * 60 * 1000
_MAX_AGE_MS = 7 * _DAY_MS
_AGE_OPTIONS = frozenset({"maxfileage", "latestfirst"})
"""Options that change or remove the age limit."""


def missing_files(line: SourceLine, start: str | None, end: str | None) -> Fact[tuple[str, ...]]:
    """Removed files of the planned batch, by the source's own log."""
    kind, log = kind_of(end, {}), line.log
    first, last = kind.cut_entry(start), kind.cut_entry(end)
    if last is None or log is None:
        return ()
    wanted = range((NONE_YET if first is None else first) + 1, last + 1)
    paths = [file.path for file in log.entries if file.log_offset in wanted]
    return tried(lambda: _gone(paths), f"the files of source {line.name} cannot be looked up")


def changed_files(files: Sequence[SourceFile], sizes: Mapping[str, int]) -> tuple[ChangedFile, ...]:
    """The newest files on local disks that were written after being listed, or whose size changed. ``sizes`` are
    recorded bytes by path.
    """
    found = (replaced_file(file, sizes.get(file.path), StoreAvailability()) for file in _newest_local(files))
    return tuple(
        one for one in found if one is not None and (one.found_ms > one.read_ms or one.read_bytes != one.found_bytes)
    )


def newest_files(ledger: Ledger, stream: str, log: str, last: int) -> Sequence[SourceFile]:
    """The files in the newest recorded log entries up to ``last``."""
    lines = ledger.lines(stream, SOURCES + log, max(last - _MOST_ENTRIES, NONE_YET) + 1, last)
    return [file for text in lines.values() for file in parse_file_source_log(encoded(text))]


def recorded_sizes(ledger: Ledger, stream: str, log: str, files: Sequence[SourceFile]) -> dict[str, int]:
    entries = [file.log_offset for file in files[-_MOST_FILES:]]
    lines = ledger.lines(stream, SIZES + log, min(entries), max(entries)) if entries else {}
    return {path: size for line in lines.values() for path, size in json.loads(line).items()}


def removed_files(line: SourceLine, end: str | None) -> Fact[tuple[str, ...]]:
    """The newest listed files on local disks, up to offset ``end``, that were removed. If their folder is missing too,
    the checkpoint may be a copy from a different machine.
    """
    last = kind_of(end, {}).cut_entry(end)
    if last is None:
        return ()
    paths = [Path(local_file_of(file.path) or "") for file in _newest_local(_files(line)) if file.log_offset <= last]
    return tried(lambda: _not_in_their_folder(paths), f"the files of source {line.name} cannot be looked up")


def _not_in_their_folder(paths: Sequence[Path]) -> tuple[str, ...]:
    present = {folder for folder in {path.parent for path in paths} if _is_there(folder)}
    return tuple(str(path) for path in paths if path.parent in present and not _is_there(path))


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def read_outputs(line: SourceLine) -> Fact[tuple[tuple[str, Mapping[str, int]], ...]]:
    """Outputs of Spark's file sink that contain the newest listed files on local disks."""
    paths = [local_file_of(file.path) or "" for file in _newest_local(_files(line))]
    folders = {without_partitions(path.rpartition("/")[0]) for path in paths}
    return tried(
        lambda: tuple(found for folder in sorted(folders) if (found := _output_at(folder)) is not None),
        f"the folders of source {line.name} cannot be read",
    )


def _output_at(folder: str) -> tuple[str, Mapping[str, int]] | None:
    identity = identity_at(folder) if Path(folder).is_dir() else None
    if identity is None:
        return None
    listed = open_output(identity).listed()
    return None if listed is None else (folder, listed[1])


def too_old_files(line: SourceLine, shape: SourceShape | None) -> Fact[tuple[str, ...]]:
    """Unlisted files next to listed files on local disks, with the same suffix, that the source considers too old."""
    files = _files(line)
    if not files or (shape is not None and _AGE_OPTIONS & shape.options.keys()):
        return ()
    # ``FileStreamSource`` counts the age from the newest time in its log, and not from the present.
    limit_ms = max(file.timestamp_ms for file in files) - _MAX_AGE_MS
    listed = {local_file_of(file.path) for file in files}
    return tried(
        lambda: tuple(sorted(_unlisted_before(limit_ms, _newest_local(files), listed))),
        f"the folders of source {line.name} cannot be listed",
    )


def _files(line: SourceLine) -> Sequence[SourceFile]:
    return line.log.entries if line.log is not None else ()


def _newest_local(files: Sequence[SourceFile]) -> Sequence[SourceFile]:
    return [file for file in files[-_MOST_FILES:] if local_file_of(file.path) is not None]


def _unlisted_before(limit_ms: int, files: Sequence[SourceFile], listed: set[str | None]) -> Iterator[str]:
    paths = [Path(local_file_of(file.path) or "") for file in files]
    suffixes = {path.suffix for path in paths}
    looked_up = 0
    for folder in sorted({path.parent for path in paths}):
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            # Spark lists no files whose names start so (``HadoopFSUtils.shouldFilterOutPathName``).
            hidden = path.name.startswith((".", "_"))
            if hidden or path.suffix not in suffixes or str(path) in listed or not path.is_file():
                continue
            looked_up += 1
            if looked_up > _MOST_FILES:
                return
            if path.stat().st_mtime * 1000 < limit_ms:
                yield str(path)


def _gone(paths: Sequence[str]) -> Fact[tuple[str, ...]]:
    """If the folders are missing too, the checkpoint may be a copy from a different machine."""
    available = StoreAvailability()
    gone = tuple(path for path in paths if not available.exists(path))
    folders = {path.rpartition("/")[0] for path in gone}
    if gone and len(gone) == len(paths) and not any(available.exists(folder) for folder in folders):
        return Unknown(f"the folder {min(folders)} does not exist on this machine")
    return gone


_T = TypeVar("_T")
ANSWER_S_MAX = 2.0
"""How long a start, ``status`` and ``doctor`` wait for a source."""


def tried(look: Callable[[], Fact[_T]], reason: str) -> Fact[_T]:
    """The result of ``look``, or ``Unknown`` with ``reason`` and its error."""
    try:
        return look()
    except SlackwaterError as error:
        return Unknown(f"{reason}: {error.message}", error.hint, error)
    except OSError as error:
        return Unknown(f"{reason}: {error}", error=error)


def tried_in_time(look: Callable[[], Fact[_T]], reason: str) -> Fact[_T]:
    """``tried`` for at most ``ANSWER_S_MAX``. The thread of a store that does not answer is left behind."""
    found: list[Fact[_T]] = []
    failed: list[Exception] = []

    def answer() -> None:
        try:
            found.append(tried(look, reason))
        except Exception as error:  # noqa: BLE001 - raised again by the caller
            failed.append(error)

    # Without concurrent.futures: importing it takes a fiftieth of the time of ``status``.
    asking = Thread(target=answer, daemon=True)
    asking.start()
    asking.join(ANSWER_S_MAX)
    if failed:
        raise failed[0]
    return found[0] if found else Unknown(f"{reason}: no answer within {ANSWER_S_MAX:g} s")


Ids: TypeAlias = Mapping[str, Mapping[str, str]]
"""``LiveSource.ids`` by the source's number in the query."""


def shapes_of(snapshot: Snapshot) -> Sequence[SourceShape]:
    """The sources in the recorded program of the query that made the newest batch."""
    recorded = parsed_program(snapshot.generation.programs, max(snapshot.marks.committed, 0))
    return recorded.sources if recorded is not None else ()


def at_place(values: Sequence[_T], place: int | None) -> _T | None:
    return values[place] if place is not None and place < len(values) else None


def offset_before(opened: OpenedCheckpoint) -> OffsetEntry | None:
    """The entry before the newest in ``offsets/``; ``None`` if it is damaged, too."""
    known = opened.logs.offset_ids
    with suppress(FormatError, OSError):
        return opened.logs.offset(known[-2]) if len(known) > 1 else None
    return None


def asked_sources(
    ledger: Ledger, snapshot: Snapshot, opened: OpenedCheckpoint, query: Sequence[SparkSource] = ()
) -> tuple[SourceFacts, ...]:
    """The sources that can be asked before a start; for files, only files in the newest entries of a log. ``query`` are
    the sources of the query that is about to start, by their places in it.
    """
    newest = opened.logs.newest_offset
    if newest is None:
        return ()
    before = offset_before(opened) if snapshot.marks.next_is_planned else None
    marks, shapes = snapshot.marks, shapes_of(snapshot)
    ids = recorded_ids(ledger, snapshot.generation, marks.planned)
    starts = {offset.source: offset.text for offset in before.offsets} if before is not None else {}
    made_ms = planned_ms(snapshot, newest, before)
    found = []
    for index, offset in enumerate(newest.offsets):
        shape, kind = at_place(shapes, index), kind_of(offset.text, {})
        if (last := kind.cut_entry(offset.text)) is not None:
            log = snapshot.source_logs.get(offset.source, offset.source)
            files = newest_files(ledger, snapshot.stream.full_name, log, last)
            sizes = recorded_sizes(ledger, snapshot.stream.full_name, log, files)
            changed = tried_in_time(
                partial(changed_files, files, sizes), f"the files of source {offset.source} cannot be looked up"
            )
            found.append(SourceFacts(offset.source, kind.kind, None, offset.text, changed_files=changed, shape=shape))
        if shape is None or not kind.shows_what_is_served:
            continue
        start = starts.get(offset.source) if marks.next_is_planned else offset.text
        asked = Asked(start, offset.text if marks.next_is_planned else None, made_ms, ids.get(str(index), {}))
        lacking = unserved(offset.source, shape, asked, at_place(query, index))
        found.append(SourceFacts(offset.source, kind.kind, start, offset.text, unserved=lacking, shape=shape))
    return tuple(found)


def not_compared(sources: Iterable[SourceFacts]) -> tuple[str, ...]:
    """The sources that did not answer, with reasons, for people."""
    facts = (fact for source in sources for fact in (source.unserved, source.changed_files))
    return tuple(f"not compared: {fact.reason}" for fact in facts if isinstance(fact, Unknown))


def unserved(
    source: str, shape: SourceShape | None, asked: Asked, now: SparkSource | None = None
) -> Fact[tuple[Unserved, ...]]:
    kind = kind_of(asked.start if asked.end is None else asked.end, {})
    if not kind.shows_what_is_served:
        return ()
    if shape is None:
        return Unknown(
            f"what source {source} reads is recorded by a run only",
            f"start its program by `{mention('run')}`, or have it recorded by slackwater.watch",
        )
    return tried_in_time(
        lambda: tuple(kind.live().unserved(shape, asked, now)), f"source {source} cannot report its positions"
    )


def planned_ms(snapshot: Snapshot, newest: OffsetEntry | None, before: OffsetEntry | None) -> int | None:
    """The time at which Spark planned the batch before the next; ``None`` if a Slackwater plan made or inherited it."""
    marks, generation = snapshot.marks, snapshot.generation
    entry = before if marks.next_is_planned else newest
    inherited = -1 if generation.based_at is None else generation.based_at
    if entry is None or entry.metadata is None or marks.next_batch - 1 <= max(inherited, generation.floor):
        return None
    return entry.metadata.batch_timestamp_ms or None


def recorded_ids(ledger: Ledger, generation: GenerationRecord, planned: int) -> Ids:
    """The sources' ids when the run that planned batch ``planned`` started; empty: not recorded. Only of this
    generation: after a reset, earlier positions may be of other topics.
    """
    name, number = generation.stream, generation.number
    runs = [one for one in ledger.recorded_entries(name, number, SOURCE_IDS) if one <= planned]
    text = ledger.own_lines(name, number, SOURCE_IDS, [max(runs)])[max(runs)] if runs else "{}"
    try:
        return {place: dict(ids) for place, ids in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise unreadable("ids of sources as JSON", text) from error


def record_ids(
    ledger: Ledger,
    generation: GenerationRecord,
    shapes: Sequence[SourceShape],
    logs: CheckpointLogs,
    query: Sequence[SparkSource],
) -> None:
    """Record the source ids at the start of a run. A source that does not answer keeps its earlier ids."""
    offsets = [one.text for one in logs.newest_offset.offsets] if logs.newest_offset is not None else []
    found: dict[str, Mapping[str, str]] = {}
    for index, shape in enumerate(shapes):
        ids = _present_ids(shape, at_place(offsets, index), at_place(query, index))
        if isinstance(ids, Unknown):
            return
        if ids:
            found[str(index)] = ids
    following = logs.planned + 1
    if found != recorded_ids(ledger, generation, following):
        text = json.dumps(found, sort_keys=True, separators=(",", ":"))
        ledger.record_lines([LogLine(generation.stream, generation.number, SOURCE_IDS, following, text)])


def _present_ids(shape: SourceShape, offset: str | None, now: SparkSource | None) -> Fact[Mapping[str, str]]:
    kind = next((one for one in kinds_of_format(shape.kind) if one.shows_what_is_served), None)
    return {} if kind is None else tried(lambda: kind.live().ids(shape, offset, now), "a source does not answer")
