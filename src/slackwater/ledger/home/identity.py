"""``home.json``: where a home was created, so that a moved or copied one is recognised before anything is changed.

Ledger and plans hold absolute paths and ids of outputs. A copy of a home that acted on them would change the outputs
of the original.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from slackwater.core.errors import FormatError, SlackwaterError
from slackwater.core.snapshot import HomePlace
from slackwater.core.unicode import is_unicode
from slackwater.ledger.home.home import Home
from slackwater.ledger.home.stream_file import StreamFile, read_stream_file, streams_of
from slackwater.storage.location import AnyLocation
from slackwater.storage.open import open_read_store, resolved

HOME_FILE = "home.json"
LINKED_FOLDERS = ("streams/*", "streams/*/*", "streams/*/*/*", "streams/*/*/checkpoints/*")
"""Where a home may have a link in place of a folder, such as to another disk."""


@dataclass(frozen=True, slots=True)
class HomeIdentity:
    """``id`` never changes, but a copy gets a new one; ``path`` is the folder or its URI, symlinks resolved."""

    id: str
    path: str


@dataclass(frozen=True, slots=True)
class Place:
    """Whether a home is where it was made, and where that was."""

    place: HomePlace = "here"
    was: str | None = None


def place_of(home: Home, streams: Iterable[tuple[str, str]] | None = None) -> Place:
    """Where the home is, compared with where it was made. ``streams`` are those of the home, where they are known.

    Also by where its streams were made, as ``home.json`` can be deleted, edited or left out of a copy; without any
    record of a place a home counts as being in its own. Raises FormatError (``home-file-damaged``).
    """
    known = read_identity(home.location)
    if known is None or known.path == home.resolved:
        return _place_of_streams(home, streams_of(home) if streams is None else streams)
    original = _identity_or_none(known.path)
    copied = original is not None and original.id == known.id
    return Place("copied" if copied else "moved", known.path)


def _place_of_streams(home: Home, streams: Iterable[tuple[str, str]]) -> Place:
    """Where the home is, by the first stream whose checkpoints are in the home."""
    for pipeline, name in streams:
        stream = _stream_or_none(home, pipeline, name)
        for generation in stream.generations if stream is not None else ():
            below = home.checkpoint(pipeline, name, generation.number).removeprefix(home.location)
            if not generation.location.endswith(below):
                continue
            was = resolved(generation.location.removesuffix(below))
            if was == home.resolved:
                return Place()
            original = _stream_or_none(Home(was), pipeline, name)
            copied = original is not None and stream is not None and original.id == stream.id
            return Place("copied" if copied else "moved", was)
    return Place()


def _stream_or_none(home: Home, pipeline: str, name: str) -> StreamFile | None:
    try:
        return read_stream_file(home, pipeline, name)
    except (SlackwaterError, OSError):
        return None


def shared_path(home: Path, original: Path) -> Path | None:
    """A file or folder of a copied home that is the original's own, by a link of either kind; ``None`` without one.

    Files that are replaced as a whole may have hard links; the ledger and the journals are written in place.
    """
    folders = [home / "streams", *(path for depth in LINKED_FOLDERS for path in home.glob(depth) if path.is_dir())]
    written = [home / "ledger.db", *home.glob("streams/*/*/operations/*/journal.jsonl")]
    for path in (*written, *folders):
        there = original / path.relative_to(home)
        if path.exists() and there.exists() and path.samefile(there):
            return path
    return None


def ensure_identity(home: Home, identifier: str | None = None) -> HomeIdentity:
    """The identity; where there is none yet, ``identifier`` or a new one is given now."""
    known = read_identity(home.location)
    return known if known is not None else write_identity(home, identifier or str(uuid.uuid4()))


def write_identity(home: Home, identifier: str) -> HomeIdentity:
    """Record that this home, with this id, is where it is now."""
    identity = HomeIdentity(identifier, home.resolved)
    text = json.dumps(asdict(identity), indent=2, sort_keys=True) + "\n"
    home.store.write(HOME_FILE, text.encode())
    return identity


def read_identity(folder: AnyLocation) -> HomeIdentity | None:
    """``home.json`` of a folder, ``None`` where there is none. Raises FormatError (``home-file-damaged``)."""
    store = open_read_store(folder)
    try:
        text = store.read(HOME_FILE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fields = json.loads(text)
        return HomeIdentity(_name(fields["id"]), _name(fields["path"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FormatError(
            "home-file-damaged",
            "home.json does not name the place where the home was created",
            where=f"{store.location}/{HOME_FILE}",
            expected='{"id": ..., "path": ...}',
            found=repr(text[:80]),
            hint="restore the file from a backup; or, if the home was neither moved nor copied, delete it",
        ) from error


def _name(value: object) -> str:
    if not (isinstance(value, str) and value and is_unicode(value)):
        raise ValueError(value)
    return value


def _identity_or_none(folder: str) -> HomeIdentity | None:
    try:
        return read_identity(folder)
    except (SlackwaterError, OSError):
        return None
