"""A home with its ledger, opened for one command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from slackwater.home.home import Home
from slackwater.ledger.ledger import Ledger
from slackwater.settings import Settings


@dataclass(frozen=True, slots=True)
class Workspace:
    """What a use case works in."""

    settings: Settings
    home: Home
    ledger: Ledger


@contextmanager
def open_workspace(settings: Settings, *, create: bool = False) -> Iterator[Workspace]:
    """The workspace of these settings. Raises NotFound where there is no ledger yet and ``create`` is not given."""
    home = Home(settings.home)
    with Ledger.open(settings.ledger or home.ledger_url, create=create) as ledger:
        yield Workspace(settings, home, ledger)
