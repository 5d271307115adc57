"""How far a stream is behind its sources: rows as the newest batch reported them, and files that it has not read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from slackwater.errors import FormatError
from slackwater.ledger.ledger import Ledger
from slackwater.model.checkpoint_logs import SinkFile
from slackwater.model.records import BatchRecord, BatchSource
from slackwater.sinks.files.manifest import Manifest
from slackwater.sources.contract import SourceRange
from slackwater.sources.registry import kind_of
from slackwater.storage.local import LocalStore
from slackwater.storage.open import local_path_of

FILES_MAX = 10_000
"""Names in a source directory, and entries in its log, up to which they are compared: ``status`` must be quick."""

_FILE_SOURCE = re.compile(r"FileStreamSource\[(?P<path>.*)\]", re.DOTALL)
_GLOB = re.compile(r"[*?\[\]{}\\]")


@dataclass(frozen=True, slots=True)
class Lag:
    """What the sources hold beyond a batch: rows (Kafka), and files with their bytes; ``None``: no such source.

    ``unknown`` is the reason why files could not be counted; ``files`` and ``bytes`` are ``None`` then.
    """

    rows: int | None = None
    files: int | None = None
    bytes: int | None = None
    unknown: str | None = None


def lag_of(batch: BatchRecord) -> int | None:
    """Rows the sources hold beyond the batch's end; ``None`` where no source reports them (file sources do not)."""
    ahead = [
        kind_of(source.end, {}).rows(SourceRange(str(index), source.end, source.latest))
        for index, source in enumerate(batch.sources)
    ]
    known = [rows for rows in ahead if rows is not None]
    return sum(known) if known else None


def stream_lag(ledger: Ledger, batch: BatchRecord | None) -> Lag:
    """The lag after a stream's newest batch, from its source directories and the recorded entries of their logs.

    Lists local directories only, and none with more than ``FILES_MAX`` files.
    """
    if batch is None:
        return Lag()
    read: dict[int, Mapping[int, str]] = {}
    for index in _file_sources(batch):
        log = f"sources/{index}"
        if len(ledger.entries(batch.stream, log)) > FILES_MAX:
            return Lag(lag_of(batch), unknown=f"source {index} has read files in more than {FILES_MAX:,} entries")
        read[index] = {entry: line.text for entry, line in ledger.lines(batch.stream, log).items()}
    return lag_after(batch, read)


def lag_after(batch: BatchRecord, recorded: Mapping[int, Mapping[int, str]]) -> Lag:
    """The lag after a batch. ``recorded`` has for each file source, by its index, the entries of its log by number."""
    sources = _file_sources(batch)
    if not sources:
        return Lag(lag_of(batch))
    sizes: list[int] = []
    for index, source in sources.items():
        try:
            sizes += _unread(str(index), source, recorded.get(index, {}))
        except (OSError, FormatError) as error:
            return Lag(lag_of(batch), unknown=f"source {index} cannot be listed: {error}")
        except _Uncounted as reason:
            return Lag(lag_of(batch), unknown=f"source {index} {reason}")
    return Lag(lag_of(batch), len(sizes), sum(sizes))


class _Uncounted(Exception):
    """Why the files of a source are not counted."""


def _file_sources(batch: BatchRecord) -> dict[int, BatchSource]:
    return {index: source for index, source in enumerate(batch.sources) if _FILE_SOURCE.match(source.description)}


def _unread(name: str, source: BatchSource, log: Mapping[int, str]) -> list[int]:
    """The sizes of the files that the source's directory holds and no entry of its log up to the batch's end lists."""
    store = _directory(source)
    kind, span = kind_of(source.end, log), SourceRange(name, None, source.end, log)
    if kind.unrecorded(span):
        raise _Uncounted("has read files that the ledger does not list")
    read = {local_path_of(file.path) for file in kind.files(span)}
    manifest = Manifest(store)
    if manifest.all_names():
        return [size for path, size in _files_of_manifest(manifest).items() if path not in read]
    return [store.size(name) for name in _names(store) if f"{store.location}/{name}" not in read]


def _directory(source: BatchSource) -> LocalStore:
    match = _FILE_SOURCE.match(source.description)
    path = match["path"] if match else ""
    # Hadoop's Path.toString: a URI whose path is not percent-encoded.
    scheme, colon, rest = path.partition(":")
    if colon and scheme != "file":
        raise _Uncounted(f"is not on a local disk: {path}")
    local = re.sub(r"^/+", "/", rest if colon else path)
    if _GLOB.search(local):
        raise _Uncounted(f"reads a path pattern: {path}")
    store = LocalStore(local)
    if not store.exists(""):
        raise _Uncounted(f"does not exist: {path}")
    return store


def _files_of_manifest(manifest: Manifest) -> dict[str | None, int]:
    """Files of a directory that Spark's file sink wrote: a file source reads those in its manifest only."""
    files: list[SinkFile] = []
    for name in manifest.valid_names():
        files += manifest.parse(name)[1]
        _require_countable(files)
    return {local_path_of(file.path): file.size for file in files}


def _names(store: LocalStore) -> list[str]:
    """Files as Spark lists them: in the directory and its partitions (``key=value``), without hidden ones."""
    names: list[str] = []
    for folder in store.folders():
        if all("=" in part for part in folder.path.split("/") if part):
            prefix = f"{folder.path}/" if folder.path else ""
            names += [prefix + name for name in folder.files if not name.startswith((".", "_"))]
        _require_countable(names)
    return names


def _require_countable(found: Iterable[object]) -> None:
    if sum(1 for _ in found) > FILES_MAX:
        raise _Uncounted(f"has more than {FILES_MAX:,} files")
