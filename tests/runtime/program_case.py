"""An edit of a query."""

from __future__ import annotations

from dataclasses import dataclass

from tests.runtime.program_queries import Build


@dataclass(frozen=True)
class Case:
    """An edit: the query before and after, the effect and the code of the gravest change (``None``: no change)."""

    name: str
    before: Build
    after: Build
    effect: str
    code: str | None = None
    text: str = ""
    conf: str = ""
    mode: str = "append"
