"""A home with its ledger, opened for a command."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from slackwater.core.commands import command
from slackwater.core.errors import DataError, NotFound
from slackwater.core.escaping import printable
from slackwater.core.owners import check_owner
from slackwater.core.settings import Settings
from slackwater.ledger.database import parse_url
from slackwater.ledger.home import JOURNAL, PLAN_FILE, Home, streams_of
from slackwater.ledger.ledger import Ledger

_NAMES_MORE = (
    "home.json",
    "streams",
    "streams/*",
    "streams/*/*",
    "streams/*/*/stream.json",
    "streams/*/*/operations",
    "streams/*/*/operations/*",
    f"streams/*/*/operations/*/{PLAN_FILE}",
    f"streams/*/*/operations/*/{JOURNAL}",
)
"""Files in a home that name code or a place."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """An opened home. ``in_home`` are pipeline and name of streams with a ``stream.json`` at opening.

    On a remote store each look-up is a request.
    """

    settings: Settings
    home: Home
    ledger: Ledger
    say: Callable[[str], None]
    in_home: tuple[tuple[str, str], ...]

    def can_refresh(self, stream: str) -> bool:
        if self.ledger.read_only:
            self.say(
                f"{stream}: read access only; the ledger is not updated from the checkpoint, "
                "and batches that are not recorded yet are not included"
            )
        return not self.ledger.read_only

    def recorded_settings(self, stream: str) -> Mapping[str, str]:
        run = self.ledger.last_run(stream)
        return (run.settings if run is not None else None) or {}


@contextmanager
def open_workspace(
    settings: Settings, *, create: bool = False, restore: bool = False, say: Callable[[str], None] | None = None
) -> Iterator[Workspace]:
    """Open a home. Raises NotFound without a ledger unless ``create`` is given.

    ``create`` and ``restore`` change the home or run its code: raises SettingsError (``home-owner``) for a different
    owner. ``restore`` creates a lost ledger; ``check_home`` fills it. The default ``say`` writes to stderr.
    """
    say = say or to_stderr
    home = Home(settings.home)
    address = settings.ledger or home.ledger_url
    if create or restore:
        _check_owners(home, address)
    if create and not home.is_local and "://" not in address:
        say(
            f"the home is on a shared store and its ledger is the file {address}: only this machine may run its streams"
        )
    in_home = tuple(streams_of(home))
    found = [f"{pipeline}/{name}" for pipeline, name in in_home]
    with _open_ledger(address, found, create=create or (restore and bool(found)), say=say) as ledger:
        try:
            yield Workspace(settings, home, ledger, say, in_home)
        except DataError as error:
            if error.code == "ledger-unreadable":
                # A value that cannot be decoded is found far from where the ledger's address is known.
                error.where = error.where or ledger.place
            raise


def _check_owners(home: Home, ledger: str) -> None:
    folder, file = home.location.local, parse_url(ledger)
    if isinstance(file, Path):
        check_owner(file, folder or file.parent)
    if folder is not None:
        for path in (folder, *(path for named in _NAMES_MORE for path in folder.glob(named))):
            check_owner(path, folder)


def _open_ledger(address: str, streams: Sequence[str], *, create: bool, say: Callable[[str], None]) -> Ledger:
    try:
        return Ledger.open(address, create=create, say=say)
    except NotFound as error:
        if error.code != "ledger-missing" or not streams:
            raise
        raise NotFound(
            "ledger-lost",
            "The ledger of this home is lost, but the home has the checkpoints of streams",
            where=error.where,
            found=", ".join(streams),
            hint=restore_command(streams[0]),
        ) from error


def restore_command(stream: str) -> str:
    return f"to restore it from stream.json and the checkpoints, run: {command('plan', 'resume', stream)}"


def to_stderr(message: str) -> None:
    sys.stderr.write(f"{printable(message)}\n")
    sys.stderr.flush()
