"""Files of file sources: listed files that were removed or changed, and files that were never read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from slackwater.core.checkpoint import NONE_YET, SourceFile, SourceLine
from slackwater.core.facts import ChangedFile, Fact, Unknown
from slackwater.core.program import SourceShape
from slackwater.facts.attempt import tried
from slackwater.formats.compactible import parse_file_source_log
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.lineage import SIZES, SOURCES
from slackwater.ledger.recording.source_availability import StoreAvailability
from slackwater.sinks.common.registry import identity_at, open_output
from slackwater.sources import kind_of
from slackwater.sources.common.contract import replaced_file
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
    """The newest files on local disks that were written after being listed, or whose size changed.

    ``sizes`` are recorded bytes by path.
    """
    found = (replaced_file(file, sizes.get(file.path), StoreAvailability()) for file in _newest_local(files))
    return tuple(
        ChangedFile(one.path, one.read_ms, one.found_ms, one.read_bytes, one.found_bytes)
        for one in found
        if one is not None and (one.found_ms > one.read_ms or one.read_bytes != one.found_bytes)
    )


def newest_files(ledger: Ledger, stream: str, log: str, last: int) -> Sequence[SourceFile]:
    """The files in the newest recorded log entries up to ``last``."""
    lines = ledger.lines(stream, SOURCES + log, max(last - _MOST_ENTRIES, NONE_YET) + 1, last)
    return [file for text in lines.values() for file in parse_file_source_log(text.encode("utf-8", "surrogateescape"))]


def recorded_sizes(ledger: Ledger, stream: str, log: str, files: Sequence[SourceFile]) -> dict[str, int]:
    entries = [file.log_offset for file in files[-_MOST_FILES:]]
    lines = ledger.lines(stream, SIZES + log, min(entries), max(entries)) if entries else {}
    return {path: size for line in lines.values() for path, size in json.loads(line).items()}


def removed_files(line: SourceLine, end: str | None) -> Fact[tuple[str, ...]]:
    """The newest listed files on local disks, up to offset ``end``, that were removed.

    If their folder is missing too, the checkpoint may be a copy from a different machine.
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
    folders = {_without_partitions(Path(local_file_of(file.path) or "").parent) for file in _newest_local(_files(line))}
    return tried(
        lambda: tuple(found for folder in sorted(folders) if (found := _output_at(folder)) is not None),
        f"the folders of source {line.name} cannot be read",
    )


def _without_partitions(folder: Path) -> Path:
    # Folders such as ``day=1`` are partitions of the output above them.
    while "=" in folder.name:
        folder = folder.parent
    return folder


def _output_at(folder: Path) -> tuple[str, Mapping[str, int]] | None:
    identity = identity_at(str(folder)) if folder.is_dir() else None
    if identity is None:
        return None
    listed = open_output(identity).listed()
    return None if listed is None else (str(folder), listed[1])


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
