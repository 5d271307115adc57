"""``home.json``: where a home was created, so that a moved or copied one is recognised before anything is changed.

Ledger and plans hold absolute paths and ids of outputs. A copy of a home that acted on them would change the outputs
of the original.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path

from slackwater.errors import FormatError
from slackwater.home.home import Home
from slackwater.model.snapshot import HomePlace
from slackwater.storage.local import LocalStore

HOME_FILE = "home.json"


@dataclass(frozen=True, slots=True)
class HomeIdentity:
    """``id`` never changes, but a copy gets a new one; ``path`` is the folder, symlinks resolved."""

    id: str
    path: str


@dataclass(frozen=True, slots=True)
class Place:
    """Whether a home is where it was made, and where that was."""

    place: HomePlace = "here"
    was: str | None = None


def place_of(home: Home) -> Place:
    """Where the home is, compared with where it was made. A home without ``home.json`` counts as being in its place.

    Raises FormatError (``home-file-damaged``).
    """
    known = read_identity(home.path)
    here = str(home.path.resolve())
    if known is None or known.path == here:
        return Place()
    original = _identity_or_none(Path(known.path))
    copied = original is not None and original.id == known.id
    return Place("copied" if copied else "moved", known.path)


def ensure_identity(home: Home) -> HomeIdentity:
    """The identity, given now where there is none yet."""
    known = read_identity(home.path)
    return known if known is not None else write_identity(home, str(uuid.uuid4()))


def write_identity(home: Home, identifier: str) -> HomeIdentity:
    """Record that this home, with this id, is where it is now."""
    identity = HomeIdentity(identifier, str(home.path.resolve()))
    text = json.dumps(asdict(identity), indent=2, sort_keys=True) + "\n"
    LocalStore(home.path, private=True).write(HOME_FILE, text.encode())
    return identity


def read_identity(folder: Path) -> HomeIdentity | None:
    """``home.json`` of a folder, ``None`` where there is none. Raises FormatError (``home-file-damaged``)."""
    store = LocalStore(folder)
    try:
        text = store.read(HOME_FILE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fields = json.loads(text)
        return HomeIdentity(str(fields["id"]), str(fields["path"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FormatError(
            "home-file-damaged",
            "home.json does not name the place where the home was created",
            where=f"{store.location}/{HOME_FILE}",
            expected='{"id": ..., "path": ...}',
            found=repr(text[:80]),
            hint="restore the file from a backup; or, if the home was neither moved nor copied, delete it",
        ) from error


def _identity_or_none(folder: Path) -> HomeIdentity | None:
    try:
        return read_identity(folder)
    except (FormatError, OSError):
        return None
