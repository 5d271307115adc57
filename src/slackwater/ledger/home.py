"""The home: checkpoints, operations and ``stream.json`` of each stream; locally the ledger, too.

``stream.json`` and the operations' folders replace a lost ledger. ``home.json`` records the place of the home's
creation: a copied home would change the original's outputs, as ledger and plans hold absolute paths and output ids.

Files created here are private (modes 0600 and 0700); Spark sets the modes of checkpoints.
"""

import json
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from slackwater.core.commands import put_aside
from slackwater.core.errors import FormatError, SettingsError, SlackwaterError
from slackwater.core.escaping import is_unicode
from slackwater.core.records import UNDOING, GenerationRecord, OperationFiles, OperationRecord
from slackwater.core.snapshot import HomePlace
from slackwater.storage.open import (
    AnyLocation,
    Location,
    check_location,
    local_path_of,
    open_read_store,
    open_write_store,
    resolved,
)
from slackwater.storage.protocols import ReadStore, WriteStore

NUMBER_DIGITS = 10
"""Folders with longer names are not generations."""


class Home:
    """Locations in a home. Names must have been validated. Raises UsageError (``unknown-scheme``)."""

    def __init__(self, location: AnyLocation) -> None:
        given = os.fspath(location)
        self.location = Location(Path(given).expanduser() if local_path_of(given) == given else given)
        check_location(self.location)

    @cached_property
    def store(self) -> WriteStore:
        """Raises SettingsError (``home-store``) for an unreliable store."""
        store = open_write_store(self.location, private=True)
        if not (store.traits.durable and store.traits.lists_at_once):
            raise SettingsError(
                "home-store",
                "The home cannot be on this kind of store",
                where=self.location,
                expected="a store that keeps what was written, and lists it at once",
                hint="choose a different home with --home, SLACKWATER_HOME, or home in slackwater.toml",
            )
        return store

    @property
    def is_local(self) -> bool:
        return self.location.local is not None

    @property
    def given(self) -> Path | str:
        return self.location.local or str(self.location)

    @property
    def resolved(self) -> str:
        return resolved(self.location)

    @property
    def ledger_url(self) -> str:
        """The default ledger of this home. Raises SettingsError (``home-needs-ledger``) for a remote home: an object
        store cannot hold a database file.
        """
        if not self.is_local:
            raise SettingsError(
                "home-needs-ledger",
                "A home on a shared store needs an explicit ledger",
                where=self.location,
                expected="the address of a PostgreSQL database, or for one driver a path of its machine",
                found="no ledger",
                hint="set ledger in slackwater.toml, or SLACKWATER_LEDGER",
            )
        return self.location / "ledger.db"

    def stream_folder(self, pipeline: str, stream: str) -> Location:
        return self.location / "streams" / pipeline / stream

    def checkpoints(self, pipeline: str, stream: str) -> Location:
        return self.stream_folder(pipeline, stream) / "checkpoints"

    def generation_numbers(self, pipeline: str, stream: str) -> list[int]:
        names = [entry.name for entry in open_write_store(self.checkpoints(pipeline, stream)).list()]
        return sorted(int(name) for name in names if name.isascii() and name.isdigit() and len(name) < NUMBER_DIGITS)

    def checkpoint(self, pipeline: str, stream: str, number: int) -> Location:
        return self.checkpoints(pipeline, stream) / f"{number:04d}"

    def operations(self, pipeline: str, stream: str) -> Location:
        return self.stream_folder(pipeline, stream) / "operations"

    def operation(self, pipeline: str, stream: str, operation_id: str) -> Location:
        return self.operations(pipeline, stream) / operation_id


STREAM_FILE = "stream.json"


@dataclass(frozen=True, slots=True)
class StreamFile:
    """``id`` never changes; ``generation`` is in use. ``sink``, ``output_mode`` and ``pipeline_file`` are as in
    ``StreamRecord``.
    """

    id: str
    generation: int
    sink: Mapping[str, str]
    output_mode: str
    pipeline_file: str
    generations: Sequence[GenerationRecord]


def read_stream_file(home: Home, pipeline: str, stream: str) -> StreamFile | None:
    """The content, ``None`` without a file. Raises ``FormatError`` (``stream-file-damaged``)."""
    folder = open_read_store(home.stream_folder(pipeline, stream))
    try:
        text = folder.read(STREAM_FILE)
    except FileNotFoundError:
        return None
    except IsADirectoryError as error:
        raise _damaged(f"{folder.location}/{STREAM_FILE}", b"a directory") from error
    known = set(GenerationRecord._fields) - {"stream"}
    try:
        content = json.loads(text)
        _check_texts(content)
        found = StreamFile(
            str(content["id"]),
            int(content["generation"]),
            {str(key): str(value) for key, value in content["sink"].items()},
            str(content["output_mode"]),
            str(content["pipeline_file"]),
            tuple(
                GenerationRecord(f"{pipeline}/{stream}", **{key: record[key] for key in record.keys() & known})
                for record in content["generations"]
            ),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise _damaged(f"{folder.location}/{STREAM_FILE}", text) from error
    if found.generations and found.generation not in {one.number for one in found.generations}:
        raise _damaged(f"{folder.location}/{STREAM_FILE}", text)
    return found


def write_stream_file(home: Home, pipeline: str, stream: str, content: StreamFile) -> None:
    generations = [
        {key: value for key, value in record._asdict().items() if key != "stream"} for record in content.generations
    ]
    fields_ = {**asdict(content), "sink": dict(content.sink), "generations": generations}
    text = json.dumps(fields_, indent=2, sort_keys=True) + "\n"
    open_write_store(home.stream_folder(pipeline, stream), private=True).write(STREAM_FILE, text.encode())


def streams_of(home: Home) -> Iterator[tuple[str, str]]:
    for pipeline in _folders_in(home, "streams"):
        for name in _folders_in(home, f"streams/{pipeline}"):
            if home.store.exists(f"streams/{pipeline}/{name}/{STREAM_FILE}"):
                yield pipeline, name


def _folders_in(home: Home, folder: str) -> list[str]:
    return sorted(entry.name for entry in home.store.list(folder) if entry.is_dir and is_unicode(entry.name))


def _check_texts(value: object) -> None:
    """Raises ValueError for a string that no database accepts."""
    if isinstance(value, dict | list):
        for one in [*value, *value.values()] if isinstance(value, dict) else value:
            _check_texts(one)
    elif isinstance(value, str) and not is_unicode(value):
        raise ValueError(ascii(value))


def _damaged(path: str, text: bytes) -> FormatError:
    return FormatError(
        "stream-file-damaged",
        "stream.json does not show the generation in use",
        where=path,
        expected='{"id": ..., "generation": ..., "sink": {...}}',
        found=repr(text[:80]),
        hint=f"{put_aside(path)}, and type the command again; the next run writes the file from the ledger",
    )


PLAN_FILE = "plan.json"
JOURNAL = "journal.jsonl"
LATEST_MS = 2**53


def read_operation(stream: str, folder: AnyLocation) -> OperationRecord | None:
    """The operation in a folder, ``None`` if its plan is unreadable. Without an end in its journal, its status is
    ``applying`` or ``undoing``.
    """
    folder, store = Location(folder), open_read_store(folder)
    try:
        goal = _text(json.loads(store.read(PLAN_FILE))["goal"])
        journal = _content(store, JOURNAL)
        lines = [json.loads(line) for line in journal[: journal.rfind(b"\n") + 1].splitlines()]
        times = [int(line["at_ms"]) for line in lines] or [0]
        if not all(0 <= time <= LATEST_MS for time in times):
            return None
        # Killed before its first line, unless it has a backup: then its journal was lost.
        end = lines[-1].get("end") if lines else "unknown" if store.exists("backup") else "refused"
        end = _text(end) if end else None
        undoing = bool(lines) and lines[-1].get("state") in {"undoing", "undone"}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
    return OperationRecord(
        folder.name,
        stream,
        goal,
        end or (UNDOING if undoing else "applying"),
        times[0],
        ended_ms=times[-1] if end else None,
        summary=str(folder / PLAN_FILE),
    )


def _text(value: object) -> str:
    text = str(value)
    if not is_unicode(text):
        raise ValueError(ascii(text))
    return text


def files_in(folder: AnyLocation, *, home: str, stream_id: str) -> OperationFiles:
    folder, store = Location(folder), open_read_store(folder)
    plan, journal = (_content(store, name).decode("utf-8", "replace") for name in (PLAN_FILE, JOURNAL))
    # What follows the last line break was being written at a kill, and was never acted on.
    return OperationFiles(folder.name, home, stream_id, plan, journal[: journal.rfind("\n") + 1])


def _content(store: ReadStore, name: str) -> bytes:
    try:
        return store.read(name)
    except FileNotFoundError:
        return b""


HOME_FILE = "home.json"
LINKED_FOLDERS = ("streams/*", "streams/*/*", "streams/*/*/*", "streams/*/*/checkpoints/*")
"""The folders of a home that may be links, such as to another disk."""


HomeIdentity = tuple[str, str]
"""A home's id, which is permanent but for a copy's; and its folder or URI at its creation, symlinks resolved."""
Place = tuple[HomePlace, str | None]
"""A home's place and, unless that is ``here``, the place where it was created."""
HERE: Place = "here", None


def place_of(home: Home, streams: Iterable[tuple[str, str]] | None = None) -> Place:
    """Compare a home's place with the place of its creation.

    Also uses the streams' recorded places, as ``home.json`` may be deleted, edited or not copied; a home without any
    record counts as original. Raises FormatError (``home-file-damaged``).
    """
    known = read_identity(home.location)
    if known is None or known[1] == home.resolved:
        return _place_of_streams(home, streams_of(home) if streams is None else streams)
    identifier, was = known
    original = None
    with suppress(SlackwaterError, OSError):
        original = read_identity(was)
    return "copied" if original is not None and original[0] == identifier else "moved", was


def _place_of_streams(home: Home, streams: Iterable[tuple[str, str]]) -> Place:
    for pipeline, name in streams:
        stream = _stream_or_none(home, pipeline, name)
        for generation in stream.generations if stream is not None else ():
            below = home.checkpoint(pipeline, name, generation.number).removeprefix(home.location)
            if not generation.location.endswith(below):
                continue
            was = resolved(generation.location.removesuffix(below))
            if was == home.resolved:
                return HERE
            original = _stream_or_none(Home(was), pipeline, name)
            copied = original is not None and stream is not None and original.id == stream.id
            return "copied" if copied else "moved", was
    return HERE


def _stream_or_none(home: Home, pipeline: str, name: str) -> StreamFile | None:
    try:
        return read_stream_file(home, pipeline, name)
    except (SlackwaterError, OSError):
        return None


def shared_path(home: Path, original: Path) -> Path | None:
    """A link of a copied home to the original's files, if any. Hard links to atomically replaced files are harmless;
    ledger and journals are written in place.
    """
    folders = [home / "streams", *(path for depth in LINKED_FOLDERS for path in home.glob(depth) if path.is_dir())]
    written = [home / "ledger.db", *home.glob("streams/*/*/operations/*/journal.jsonl")]
    for path in (*written, *folders):
        there = original / path.relative_to(home)
        if path.exists() and there.exists() and path.samefile(there):
            return path
    return None


def ensure_identity(home: Home, identifier: str | None = None) -> str:
    """The id of the home, which is given the first time."""
    known = read_identity(home.location)
    if known is not None:
        return known[0]
    identifier = identifier or str(uuid.uuid4())
    write_identity(home, identifier)
    return identifier


def write_identity(home: Home, identifier: str) -> None:
    text = json.dumps({"id": identifier, "path": home.resolved}, indent=2, sort_keys=True) + "\n"
    home.store.write(HOME_FILE, text.encode())


def read_identity(folder: AnyLocation) -> HomeIdentity | None:
    store = open_read_store(folder)
    try:
        text = store.read(HOME_FILE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fields = json.loads(text)
        return _name(fields["id"]), _name(fields["path"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FormatError(
            "home-file-damaged",
            "home.json does not say where the home was created",
            where=f"{store.location}/{HOME_FILE}",
            expected='{"id": ..., "path": ...}',
            found=repr(text[:80]),
            hint="restore the file from a backup; or, if the home was neither moved nor copied, delete it",
        ) from error


def _name(value: object) -> str:
    if not (isinstance(value, str) and value and is_unicode(value)):
        raise ValueError(value)
    return value
