"""Defects of Spark that are known: what a user sees of them, which releases have them, and which do not any more.

They are data (``defects.toml``), from the pull requests that corrected them. A message of one of them is recognised by
``error_texts``; a defect that nobody sees is found by the releases that a stream ran with (``checks/ver``).
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_TABLE = Path(__file__).with_name("defects.toml")


@dataclass(frozen=True, slots=True)
class Defect:
    """``issue``: its number in Spark's issue tracker. ``what``: a sentence without its end.

    ``texts``: templates of its message (``error_texts``), none for a defect that nobody sees; they count
    only close to one of ``needs``. ``since``: the first release that has it, empty if that is not known. ``fixed``: of
    each line of releases the first one that does not. ``avoid``: what helps without another release. ``operators`` and
    ``provider``: the streams whose rows it can change without any message, empty for a defect that has one.
    """

    issue: str
    what: str
    fixed: tuple[str, ...]
    since: str = ""
    texts: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    avoid: str = ""
    operators: tuple[str, ...] = ()
    provider: str = ""

    @property
    def advice(self) -> str:
        """What to do, as a sentence without its end."""
        release = f"use Spark {' or '.join(self.fixed)}, or newer"
        return f"{release}; until then {self.avoid}" if self.avoid else release

    def is_in(self, version: str) -> bool:
        """Whether a release has it. A line of releases that is older than all that were corrected has it."""
        release = _release(version)
        if self.since and release < _release(self.since):
            return False
        corrected = [_release(one) for one in self.fixed]
        return release < max(corrected) and not any(one[:2] == release[:2] and one <= release for one in corrected)


@cache
def known() -> tuple[Defect, ...]:
    """All defects of the table, in its order."""
    return tuple(Defect(**_values(one)) for one in tomllib.loads(_TABLE.read_text(encoding="utf-8"))["defect"])


def _values(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:3] if part.isdigit())
