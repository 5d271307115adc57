"""The templates of error texts: the words of a message, with placeholders such as ``<batch>`` for its values.

``batch <batch> doesn't exist`` is found by its longest literal part, ``doesn't exist``, which a search for a string
does; only there the whole template is compared. A blank stands for any white space, and a line feed is a blank at which
some version of the message has a line end. ``<any>`` stands for any part of a line, ``<eol>`` for the end of the line.
The values of other placeholders are returned by their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

_NUMBER = r"-?\d{1,19}+"
_WORD = r"""[^\s'"\[\](),;]{1,256}"""
_PATH = r"""[^\s'"`<>|]{1,512}"""
_REST = r"[^\n]{1,400}"

_NAMES: Mapping[str, str] = {
    _NUMBER: "batch version operator partition source start end offset found_offset size latest interval recorded"
    " requested earliest expected found committed file",
    _WORD: "id table group conf name format mode store state_id before after",
    _PATH: "path target root",
    _REST: "partitions operators current",
    r"[\w.\-]{1,249}?-\d{1,6}(?!\w)": "topic_partition",
}
_PATTERNS: Mapping[str, str] = {name: pattern for pattern, names in _NAMES.items() for name in names.split()}
_PIECE = re.compile(r"<(\w+)>")
_BEFORE_MAX = 700
_AFTER_MAX = 2500


@dataclass(frozen=True, slots=True)
class Place:
    """Where a template matches in a text, with the values of its placeholders."""

    start: int
    end: int
    params: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Template:
    """A compiled template. ``literal`` is in each text that the template matches."""

    literal: str
    pattern: re.Pattern[str]

    def places(self, text: str, joined: str, most: int) -> Iterator[Place]:
        """Where the template matches, the last place first; at most ``most`` places of its literal are compared.

        The literal is looked for in ``joined``, the text with blanks for its line ends: a page or a terminal may have
        wrapped it. The work for each place is bounded, because only some text around the literal is compared.
        """
        at = len(text)
        for _ in range(most):
            at = joined.rfind(self.literal, 0, at)
            if at < 0:
                return
            for found in self.pattern.finditer(text, max(0, at - _BEFORE_MAX), min(len(text), at + _AFTER_MAX)):
                if found.start() <= at < found.end():
                    params = {name: value.rstrip(".,;:)") for name, value in found.groupdict().items() if value}
                    yield Place(found.start(), found.end(), params)


@cache
def compile_template(template: str) -> Template:
    """Compiles a template. Raises KeyError for a placeholder of an unknown name."""
    pieces = _PIECE.split(template)
    literals, names = pieces[::2], pieces[1::2]
    pattern = _literal_pattern(literals[0])
    seen: set[str] = set()
    for index, name in enumerate(names):
        following = literals[index + 1]
        pattern += _placeholder(name, last=not following and index == len(names) - 1, again=name in seen)
        pattern += _literal_pattern(following)
        seen.add(name)
    parts = (part.strip() for literal in literals for part in literal.split("\n"))
    return Template(max(parts, key=len), re.compile(pattern))


def _literal_pattern(literal: str) -> str:
    return r"\s{1,80}".join(re.escape(word) for word in re.split(r"\s+", literal))


def _placeholder(name: str, *, last: bool, again: bool) -> str:
    if name == "eol":
        return r"[ \t]{0,80}(?=[\n\v]|\Z)"
    if name == "any":
        return r"[^\n]{0,400}?"
    if again:
        return f"(?P={name})"
    pattern = _PATTERNS[name]
    lazy = "?" if pattern in {_WORD, _PATH, _REST} and not last else ""
    return f"(?P<{name}>{pattern}{lazy})"
