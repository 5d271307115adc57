"""Recognises Spark's error texts in a stack trace, a driver log or the message of a failed query.

The texts are data (``error_texts.toml``, and ``defects.toml`` for known defects of Spark), and only those of this
product's subject: logs of a checkpoint, state, sources, sinks, modes, watermarks, versions, two writers.

One cause has the text of several Spark versions, and one text has several causes: a symptom names the catalogue's codes
that it may mean, and the stream's files decide (``diagnose/causes``). Pure: the same text gives the same symptoms.

A text is a template: the words of a message, with placeholders such as ``<batch>`` for its values. ``batch <batch>
doesn't exist`` is found by its longest literal part, ``doesn't exist``, with a search for a string; only there the
whole template is compared. A blank stands for any white space, and a line feed is a blank at which some version of the
message has a line end. ``<any>`` stands for any part of a line, ``<eol>`` for the end of the line. The values of other
placeholders are returned by their names.

A log is read in parts of bounded size. Colours and carriage returns are removed. A trace inside a JSON string gets its
line ends back as vertical tabs, so that the numbers of lines stay those of the input.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from slackwater.core.escaping import one_line
from slackwater.core.masking import brief, mask
from slackwater.diagnose.defects import known

_TABLE = Path(__file__).with_suffix(".toml")

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

_PLACES_MAX = 8
"""How often one text is compared in one part of a log; the last places are the newest failure."""
_NEAR_CHARACTERS = 8000
_LINE_CHARACTERS = 300
PART_CHARACTERS = 1 << 20
_OVERLAP_CHARACTERS = 1 << 14
"""How much of a part is seen again in the next: more than an error text with what is close to it."""

_COLOUR = re.compile(r"\x1b\[[0-9;]{0,32}[A-Za-z]")
_MAIL = re.compile(r" (?=\n)|(?<=\n)(?:> ?){1,8}")
"""What mails add: a blank before the end of a line that was wrapped, and marks of a quotation."""

_ESCAPED_LINE_END = re.compile(r"(?:\\r)?\\n(?=\\t|Caused by|\s|at |=== |Driver stacktrace)")


class Certainty(StrEnum):
    """``CERTAIN``: the text has one cause. ``LIKELY``: the first code is the usual cause. ``POSSIBLE``: a hint only."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


class Level(IntEnum):
    """What a text is in a log; an earlier level is reported first.

    ``CAUSE`` names what failed. ``NAMED`` is known by the name of an error condition or exception alone. ``WRAPPER`` is
    printed around other causes, and counts where no cause is known. ``GENERAL`` is the class of an exception, reported
    where none of them is recognised. ``NOTE`` is a message of a query that continues.
    """

    CAUSE = 0
    NAMED = 1
    WRAPPER = 2
    GENERAL = 3
    NOTE = 4


_CERTAINTIES = tuple(Certainty)


@dataclass(frozen=True, slots=True)
class Near:
    """Codes that come first if one of ``literals``, such as a stack frame, is close to the text.

    ``certainty`` replaces the certainty of the text, if it is given.
    """

    literals: tuple[str, ...]
    codes: tuple[str, ...]
    certainty: Certainty | None = None


@dataclass(frozen=True, slots=True)
class ErrorText:
    """One symptom of the table.

    ``texts`` are templates, the most informative first. ``codes`` are the catalogue's codes that the texts may mean,
    the most likely first. A text counts only close to one of ``needs``, if there are any. ``below`` names two values of
    the message: the text counts only where the first is smaller than the second. ``says`` is what is known of this text
    beyond what the catalogue has for its first code.
    """

    symptom: str
    codes: tuple[str, ...]
    texts: tuple[str, ...]
    level: Level = Level.CAUSE
    certainty: Certainty | None = None
    near: tuple[Near, ...] = ()
    needs: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    says: str = ""


@dataclass(frozen=True, slots=True)
class Symptom:
    """A symptom that was recognised in a text.

    ``params`` are values of the message, such as ``batch`` or ``path``; ``line`` is the matched text up to the end of
    its line. Both are masked. ``where`` is the number of the line in the input, from 1. ``says`` is what is known of it
    beyond what the catalogue has for its first code.
    """

    symptom: str
    codes: tuple[str, ...]
    line: str
    where: int
    certainty: Certainty
    level: Level
    params: Mapping[str, str] = field(default_factory=dict, hash=False)
    says: str = ""


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


@dataclass(frozen=True, slots=True)
class _Found:
    """A text that was found. ``start`` and ``end`` are positions in the whole input."""

    error: ErrorText
    codes: tuple[str, ...]
    certainty: Certainty
    start: int
    end: int
    symptom: Symptom

    @property
    def rank(self) -> tuple[int, bool, int]:
        """Sorts the best first: causes, of these hints last, then what is around them; and the inner, later text."""
        is_hint = self.error.level is Level.CAUSE and self.certainty is Certainty.POSSIBLE
        return self.error.level, is_hint, -self.start

    @property
    def weight(self) -> tuple[int, int, int, bool]:
        """Sorts the best first of texts that overlap: the longer text says more, and so does what is close to it."""
        length = self.end - self.start
        return self.error.level, _CERTAINTIES.index(self.certainty), -length, not self.error.needs

    @property
    def quality(self) -> tuple[int, int, int]:
        """Compares two places of one symptom: the more is known of it, then the later."""
        return -_CERTAINTIES.index(self.certainty), len(self.symptom.params), self.start


def recognise(text: str | Iterable[str]) -> tuple[Symptom, ...]:
    """The symptoms in a text, the best first; none if nothing is recognised.

    A long log can be given in pieces, such as the lines of a file: the memory needed does not grow with it.
    """
    best: dict[str, _Found] = {}
    for part in _parts((text,) if isinstance(text, str) else text):
        for found in _found_in(part):
            known = best.get(found.error.symptom)
            if known is None or found.quality >= known.quality:
                best[found.error.symptom] = found
    kept = _without_overlaps(best.values())
    ranked = sorted(kept, key=lambda found: found.rank)
    has_better = any(found.error.level < Level.GENERAL for found in ranked)
    return tuple(found.symptom for found in ranked if found.error.level is not Level.GENERAL or not has_better)


def _without_overlaps(candidates: Iterable[_Found]) -> list[_Found]:
    """Of symptoms that were found in the same characters, only the one that explains most of them."""
    kept: list[_Found] = []
    for found in sorted(candidates, key=lambda found: found.weight):
        if not any(found.start < other.end and other.start < found.end for other in kept):
            kept.append(found)
    return kept


@cache
def error_texts() -> tuple[ErrorText, ...]:
    """All symptoms, in the order of the tables."""
    areas = tomllib.loads(_TABLE.read_text(encoding="utf-8")).values()
    return (*(_error_text(name, entry) for area in areas for name, entry in area.items()), *_defects())


def _error_text(symptom: str, entry: Mapping[str, Any]) -> ErrorText:
    return ErrorText(
        symptom,
        tuple(entry["codes"]),
        tuple(entry["texts"]),
        Level[entry.get("level", "cause").upper()],
        _certainty(entry),
        tuple(Near(tuple(near["literals"]), tuple(near["codes"]), _certainty(near)) for near in entry.get("near", ())),
        tuple(entry.get("needs", ())),
        tuple(entry.get("below", ())),
    )


def _certainty(entry: Mapping[str, Any]) -> Certainty | None:
    return Certainty(entry["certainty"]) if "certainty" in entry else None


def _defects() -> Iterator[ErrorText]:
    for defect in known():
        if defect.texts:
            yield ErrorText(
                f"defect-{defect.issue.lower()}",
                ("VER-06",),
                defect.texts,
                certainty=Certainty.LIKELY,
                needs=defect.needs,
                says=f"{defect.issue}: {defect.what}; {defect.advice}",
            )


@cache
def _templates() -> tuple[tuple[Template, ErrorText], ...]:
    return tuple((compile_template(text), error) for error in error_texts() for text in error.texts)


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


def _found_in(part: _Part) -> Iterator[_Found]:
    joined = part.text.replace("\n", " ")
    for template, error in _templates():
        if template.literal in joined:
            for place in template.places(part.text, joined, _PLACES_MAX):
                around = part.text[max(0, place.start - _NEAR_CHARACTERS) : place.end + _NEAR_CHARACTERS]
                is_near = not error.needs or any(literal in around for literal in error.needs)
                if is_near and _is_below(error, place):
                    yield _judged(error, place, around, part)


def _is_below(error: ErrorText, place: Place) -> bool:
    """Whether the values of the message are as the text has them; True for values that are unknown."""
    smaller, larger = (place.params.get(name, "") for name in error.below or ("", ""))
    return not (smaller.isdecimal() and larger.isdecimal()) or int(smaller) < int(larger)


def _judged(error: ErrorText, place: Place, around: str, part: _Part) -> _Found:
    codes, certainty = error.codes, error.certainty
    for near in error.near:
        if any(literal in around for literal in near.literals):
            codes = tuple(dict.fromkeys((*near.codes, *codes)))
            certainty = near.certainty or certainty
            break
    if certainty is None:
        certainty = Certainty.CERTAIN if len(codes) == 1 else Certainty.LIKELY
    symptom = Symptom(
        symptom=error.symptom,
        codes=codes,
        line=_line(part.text, place),
        where=part.line_number(place.start),
        certainty=certainty,
        level=error.level,
        params={name: one_line(mask(value)) for name, value in place.params.items()},
        says=error.says,
    )
    return _Found(error, codes, certainty, part.position + place.start, part.position + place.end, symptom)


def _line(text: str, place: Place) -> str:
    """The matched text up to the end of its line, in one line."""
    stop = place.end + 4 * _LINE_CHARACTERS
    ends = [end for mark in "\n\v" if (end := text.find(mark, place.end, stop)) >= 0]
    return one_line(brief(" ".join(text[place.start : min(ends, default=stop)].split()), _LINE_CHARACTERS))


@dataclass(frozen=True, slots=True)
class _Part:
    """A cleaned part of a log. ``position`` and ``lines`` count the characters and line ends before it."""

    text: str
    position: int
    lines: int

    def line_number(self, at: int) -> int:
        """The number of the line in the input, from 1, that the character ``at`` of the part is in."""
        return self.lines + self.text.count("\n", 0, at) + 1


def _parts(pieces: Iterable[str]) -> Iterator[_Part]:
    """Cleaned parts of a log that is given in pieces of any size. Each begins with the end of the part before it."""
    position = lines = 0
    text = ""
    for piece in _cut(pieces):
        text += _cleaned(piece)
        yield _Part(text, position, lines)
        seen = max(0, len(text) - _OVERLAP_CHARACTERS)
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
