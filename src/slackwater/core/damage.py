"""Damage is a value: one bad file does not stop a report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

_CLAUSES: Mapping[str, str] = {
    "checksum": "does not have its checksum",
    "too-new": "is of a newer version",
    "too-large": "is too large",
}


class Damage(NamedTuple):
    """A file of a checkpoint that is not what it should be.

    ``path`` is relative to the checkpoint; ``kind`` is one of torn, empty, missing, foreign, too-new, too-large,
    checksum, unreadable.
    """

    path: str
    kind: str
    expected: str
    found: str

    @property
    def clause(self) -> str:
        """The path with its verb, for a sentence."""
        return f"{self.path} {_CLAUSES.get(self.kind, f'is {self.kind}')}"


class UnreadState(NamedTuple):
    """Files of the state that the next batch loads, whose bytes the check before a start has not verified.

    ``paths`` are relative to the checkpoint. ``size`` is in bytes. ``verified_by_store``: they are on a remote store,
    which compares what it serves with checksums of its own; of other files nothing but name and size is known.
    """

    paths: tuple[str, ...] = ()
    size: int = 0
    verified_by_store: bool = False
