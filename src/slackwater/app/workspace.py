"""A home with its ledger, opened for one command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from slackwater.home.home import Home
from slackwater.home.stream_file import streams_of
from slackwater.ledger.ledger import Ledger
from slackwater.settings import Settings


@dataclass(frozen=True, slots=True)
class Workspace:
    """What a use case works in."""

    settings: Settings
    home: Home
    ledger: Ledger


@contextmanager
def open_workspace(settings: Settings, *, create: bool = False, restore: bool = False) -> Iterator[Workspace]:
    """The workspace of these settings. Raises NotFound where there is no ledger yet and ``create`` is not given.

    ``restore`` creates a ledger where the home has streams whose ledger was lost; ``acting`` fills it.
    """
    home = Home(settings.home)
    lost = restore and next(streams_of(home), None) is not None
    with Ledger.open(settings.ledger or home.ledger_url, create=create or lost) as ledger:
        yield Workspace(settings, home, ledger)
