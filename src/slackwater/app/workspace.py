"""A home with its ledger, opened for one command."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from slackwater.errors import DataError
from slackwater.home.home import Home
from slackwater.home.stream_file import streams_of
from slackwater.ledger.ledger import Ledger
from slackwater.settings import Settings


@dataclass(frozen=True, slots=True)
class Workspace:
    """The settings, home and ledger of a use case. ``say`` shows the user a message."""

    settings: Settings
    home: Home
    ledger: Ledger
    say: Callable[[str], None]

    def can_refresh(self, stream: str) -> bool:
        """Whether the ledger can be updated from the checkpoint; if not, says that recorded data is used."""
        if self.ledger.read_only:
            self.say(
                f"{stream}: read access only; the ledger is not updated from the checkpoint, "
                "and batches that are not recorded yet are not included"
            )
        return not self.ledger.read_only


@contextmanager
def open_workspace(
    settings: Settings, *, create: bool = False, restore: bool = False, say: Callable[[str], None] | None = None
) -> Iterator[Workspace]:
    """The workspace of these settings. Raises NotFound if there is no ledger yet and ``create`` is not given.

    ``restore`` creates a ledger if the home has streams whose ledger was lost; ``acting`` fills it. ``say`` shows the
    user a message, such as that the ledger is locked; the default writes to stderr.
    """
    say = say or _to_stderr
    home = Home(settings.home)
    lost = restore and next(streams_of(home), None) is not None
    with Ledger.open(settings.ledger or home.ledger_url, create=create or lost, say=say) as ledger:
        try:
            yield Workspace(settings, home, ledger, say)
        except DataError as error:
            if error.code == "ledger-unreadable":
                # A value that cannot be decoded is found far from where the ledger's address is known.
                error.where = error.where or ledger.place
            raise


def _to_stderr(message: str) -> None:
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()
