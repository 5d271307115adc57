"""Tables of known failures, error codes and defects of Spark; their texts are data, in TOML files."""

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from slackwater.core import errors

How = Literal["run", "not-detectable"]


class Failure(NamedTuple):
    """A known failure. A failure without a finding has ``how``: ``run`` refuses or prevents it. ``text`` says by which
    code, or why it is undetectable.
    """

    title: str
    how: How | None = None
    text: str = ""


class ErrorCode(NamedTuple):
    """A row of the table. In sentences an ellipsis replaces variable parts."""

    code: str
    kind: type[errors.SlackwaterError]
    causes: tuple[str, ...]
    expected: str | None
    remedy: str


class Defect(NamedTuple):
    """A known defect of Spark, from the pull request that corrected it. Silent defects are found by a stream's releases
    (``checks/versions.py``).

    ``issue`` is a number in Spark's tracker, ``what`` a sentence without its end. ``texts``: templates of its message
    (``error_texts``), which count only close to any of ``needs``. ``since``: the first affected release, if known.
    ``fixed``: the first correct release of each line. ``avoid``: a workaround. ``operators`` and ``provider``: streams
    whose rows a silent defect can change.
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


def table(name: str) -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8"))


@cache
def known_failures() -> Mapping[str, Failure]:
    """``docs/reference/coverage.md`` is made of it. ``SW-LOG-006`` finds ``LOG-06``."""
    return {code: Failure(**row) for code, row in table("catalogue").items()}


@cache
def error_codes() -> Mapping[str, ErrorCode]:
    return {
        code: ErrorCode(code, getattr(errors, row["kind"]), tuple(row["causes"]), row.get("expected"), row["remedy"])
        for code, row in table("error_codes").items()
    }


@cache
def known() -> tuple[Defect, ...]:
    entries: list[dict[str, Any]] = table("defects")["defect"]
    values: Iterator[dict[str, Any]] = (
        {key: tuple(one) if isinstance(one, list) else one for key, one in entry.items()} for entry in entries
    )
    return tuple(Defect(**one) for one in values)


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:3] if part.isdigit())
