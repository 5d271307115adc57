"""Known defects of Spark: signs and releases.

They are data (``defects.toml``), from the pull requests that corrected them. Silent defects are found by a stream's
releases (``checks/versions.py``).
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
    """``issue`` is a number in Spark's tracker, ``what`` a sentence without its end.

    ``texts``: templates of its message (``error_texts``), which count only close to one of ``needs``. ``since``: the
    first affected release, if known. ``fixed``: the first correct release of each line. ``avoid``: a workaround.
    ``operators`` and ``provider``: streams whose rows a silent defect can change.
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
        release = f"use Spark {' or '.join(self.fixed)}, or newer"
        return f"{release}; until then {self.avoid}" if self.avoid else release

    def is_in(self, version: str) -> bool:
        """Whether a release has the defect. A line older than all corrected lines has it."""
        release = _release(version)
        if self.since and release < _release(self.since):
            return False
        corrected = [_release(one) for one in self.fixed]
        return release < max(corrected) and not any(one[:2] == release[:2] and one <= release for one in corrected)


@cache
def known() -> tuple[Defect, ...]:
    return tuple(Defect(**_values(one)) for one in tomllib.loads(_TABLE.read_text(encoding="utf-8"))["defect"])


def _values(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:3] if part.isdigit())
