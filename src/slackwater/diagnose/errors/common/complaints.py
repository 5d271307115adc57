"""What a person says of a query in plain words, without an error: "rows are doubled after a restart", "no output".

A complaint is a set of topics that a text must have, such as ``doubled`` and ``restart``; each topic has patterns for
the words that people use. They are data (``complaints.toml``). Of the complaints that a text fits, the one with most
topics counts. Only prose is read: a stack trace and the lines of a log have better evidence.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from slackwater.diagnose.errors.common.template import Place

PREFIX = "in plain words: "
"""Before a complaint in the names of a table of texts."""

_TABLE = Path(__file__).with_name("complaints.toml")
_FAILS = r"(?:not(?! found)|n't|never|cannot|nothing|no longer|stop(?:s|ped)?|without)"
_PROSE_MAX = 4000
_WORDS_MIN = 4
_NO_PROSE = re.compile(
    r"(?:^|[\n\v])[ \t]{0,40}at [\w.$<>/@+-]{3,300}\(|\b(?:INFO|WARN|ERROR|FATAL|DEBUG)\b ?[\[:(]?[\w$.]|Traceback \("
    r"|[a-z]\.[A-Z]\w+(?:Exception|Error)\b|[A-Z][a-z]\w+(?:Exception|Error): "
)


@dataclass(frozen=True, slots=True)
class Complaint:
    """``topics``: of each group a text must have one. ``codes``: its causes, the most frequent first."""

    name: str
    topics: tuple[frozenset[str], ...]
    codes: tuple[str, ...]


def complaint_places(text: str) -> Iterator[tuple[str, Place]]:
    """The complaint that a text in plain words fits best, over the whole text; nothing for other texts."""
    if len(text) > _PROSE_MAX or len(text.split()) < _WORDS_MIN or _NO_PROSE.search(text):
        return
    found = {name for name, pattern in topics().items() if pattern.search(text)}
    fitting = [one for one in complaints() if all(not found.isdisjoint(group) for group in one.topics)]
    if fitting:
        best = max(fitting, key=lambda one: len(one.topics))
        stripped = text.strip()
        start = text.find(stripped)
        yield f"{PREFIX}{best.name}", Place(start, start + len(stripped), {})


@cache
def complaints() -> tuple[Complaint, ...]:
    """All complaints, in the order in which they count."""
    return tuple(
        Complaint(name, tuple(frozenset(group.split("|")) for group in one["topics"]), tuple(one["codes"]))
        for name, one in _table()["complaints"].items()
    )


@cache
def topics() -> Mapping[str, re.Pattern[str]]:
    """The pattern of each topic."""
    return {
        name: re.compile("|".join(words).replace("<fails>", _FAILS), re.IGNORECASE)
        for name, words in _table()["topics"].items()
    }


@cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads(_TABLE.read_text(encoding="utf-8"))
