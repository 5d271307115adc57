"""Every error code with its kind, causes and remedy, from the table ``error_codes.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from slackwater.core import errors

_TABLE = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """A row of the table. In sentences an ellipsis replaces variable parts."""

    code: str
    kind: type[errors.SlackwaterError]
    causes: tuple[str, ...]
    expected: str | None
    remedy: str


@cache
def error_codes() -> Mapping[str, ErrorCode]:
    table = tomllib.loads(_TABLE.read_text(encoding="utf-8"))
    return {
        code: ErrorCode(code, getattr(errors, row["kind"]), tuple(row["causes"]), row.get("expected"), row["remedy"])
        for code, row in table.items()
    }
