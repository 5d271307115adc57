r"""Reads a stack trace or log in parts of bounded size, without what terminals and log formats add to it.

Colours and carriage returns are removed. A trace inside a JSON string gets its line ends back as vertical tabs, so that
the numbers of lines stay those of the input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

PART_CHARACTERS = 1 << 20
OVERLAP_CHARACTERS = 1 << 14
"""How much of a part is seen again in the next: more than an error text with what is close to it."""

_COLOUR = re.compile(r"\x1b\[[0-9;]{0,32}[A-Za-z]")
_MAIL = re.compile(r" (?=\n)|(?<=\n)(?:> ?){1,8}")
"""What mails add: a blank before the end of a line that was wrapped, and marks of a quotation."""

_ESCAPED_LINE_END = re.compile(r"(?:\\r)?\\n(?=\\t|Caused by|\s|at |=== |Driver stacktrace)")


@dataclass(frozen=True, slots=True)
class Part:
    """A cleaned part of a log. ``position`` and ``lines`` count the characters and line ends before it."""

    text: str
    position: int
    lines: int

    def line_number(self, at: int) -> int:
        """The number of the line in the input, from 1, that the character ``at`` of the part is in."""
        return self.lines + self.text.count("\n", 0, at) + 1


def parts(pieces: Iterable[str]) -> Iterator[Part]:
    """Cleaned parts of a log that is given in pieces of any size. Each begins with the end of the part before it."""
    position = lines = 0
    text = ""
    for piece in _cut(pieces):
        text += _cleaned(piece)
        yield Part(text, position, lines)
        seen = max(0, len(text) - OVERLAP_CHARACTERS)
        position += seen
        lines += text.count("\n", 0, seen)
        text = text[seen:]


def _cut(pieces: Iterable[str]) -> Iterator[str]:
    """The pieces joined and cut again to parts, at the ends of lines where there are some."""
    waiting: list[str] = []
    length = 0
    for piece in pieces:
        for start in range(0, len(piece), PART_CHARACTERS):
            waiting.append(piece[start : start + PART_CHARACTERS])
            length += len(waiting[-1])
            if length >= PART_CHARACTERS:
                joined = "".join(waiting)
                cut = joined.rfind("\n") + 1 or len(joined)
                yield joined[:cut]
                waiting, length = [joined[cut:]], len(joined) - cut
    if length:
        yield "".join(waiting)


def _cleaned(text: str) -> str:
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    if "\r" in text:
        text = text.replace("\r", " ")
    if " \n" in text or "\n>" in text:
        text = _MAIL.sub("", text)
    if "\\n" in text:
        text = _ESCAPED_LINE_END.sub("\v", text).replace("\v\\t", "\v\t")
    return text.replace('\\"', '"')
