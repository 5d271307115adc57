"""Damage is a value: one bad file does not stop a report."""

from __future__ import annotations

from typing import NamedTuple


class Damage(NamedTuple):
    """A file of a checkpoint that is not what it should be.

    ``path`` is relative to the checkpoint; ``kind`` is one of torn, empty, missing, foreign, too-new, too-large,
    checksum, unreadable.
    """

    path: str
    kind: str
    expected: str
    found: str
