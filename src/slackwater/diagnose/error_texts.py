"""Recognises Spark's error texts in a trace, log or message.

The texts are data (``error_texts.toml``, and ``defects.toml`` for Spark's known defects). A cause has texts of several
Spark versions, and a text several causes: a symptom names codes of the catalogue, and the stream's files decide
(``diagnose/causes``). Pure: equal texts give equal symptoms.

A template is a message with placeholders such as ``<batch>``. ``batch <batch> doesn't exist`` is found by its longest
literal, ``doesn't exist``; only there the template is compared. A blank matches any white space; a line feed is a blank
at which some version has a line end. ``<any>`` matches within a line, ``<eol>`` up to its end. Other placeholders
return values by name.

A log is read in bounded parts, without colours and carriage returns. A trace in a JSON string gets vertical tabs as
line ends, so that line numbers stay the input's.
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
"""Comparisons of a text in a part of a log; the last places are the newest failure."""
_NEAR_CHARACTERS = 8000
_LINE_CHARACTERS = 300
PART_CHARACTERS = 1 << 20
_OVERLAP_CHARACTERS = 1 << 14
"""Overlap of parts: more than an error text with its neighbourhood."""

_COLOUR = re.compile(r"\x1b\[[0-9;]{0,32}[A-Za-z]")
_MAIL = re.compile(r" (?=\n)|(?<=\n)(?:> ?){1,8}")
"""Mails add a blank before a wrapped line's end, and marks of quotation."""

_ESCAPED_LINE_END = re.compile(r"(?:\\r)?\\n(?=\\t|Caused by|\s|at |=== |Driver stacktrace)")


class Certainty(StrEnum):
    """``CERTAIN``: the text has no other cause. ``LIKELY``: the first code is the usual cause. ``POSSIBLE``: a hint
    only.
    """

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


class Level(IntEnum):
    """The role of a text in a log; an earlier level is reported first.

    ``CAUSE`` names the failed part. ``NAMED`` is known only by the name of a condition or exception. ``WRAPPER``
    surrounds causes, and counts without a known cause. ``GENERAL`` is an exception's class, reported if nothing else is
    recognised. ``NOTE`` is from a query that continues.
    """

    CAUSE = 0
    NAMED = 1
    WRAPPER = 2
    GENERAL = 3
    NOTE = 4


_CERTAINTIES = tuple(Certainty)


@dataclass(frozen=True, slots=True)
class Near:
    """Codes that come first if one of ``literals``, such as a stack frame, is close.

    A ``certainty`` replaces the text's.
    """

    literals: tuple[str, ...]
    codes: tuple[str, ...]
    certainty: Certainty | None = None


@dataclass(frozen=True, slots=True)
class ErrorText:
    """``texts`` are templates, the most informative first; ``codes`` their possible meanings, the most likely first. A
    text counts only close to one of ``needs``, if any, and only if the first value of ``below`` is smaller than the
    second. ``says`` is beyond the first code's catalogue entry.
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
    """``params`` are values such as ``batch`` or ``path``; ``line`` is the matched text up to the line's end; both are
    masked. ``where`` is a line number from 1. ``says`` is beyond the first code's catalogue entry.
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
class TemplateMatch:
    start: int
    end: int
    params: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Template:
    """Each matching text has ``literal``."""

    literal: str
    pattern: re.Pattern[str]

    def places(self, text: str, joined: str, most: int) -> Iterator[TemplateMatch]:
        """Matches, the last first; at most ``most`` places of the literal are compared. ``joined`` has blanks for line
        ends: a page or terminal may have wrapped the text.
        """
        at = len(text)
        for _ in range(most):
            at = joined.rfind(self.literal, 0, at)
            if at < 0:
                return
            for found in self.pattern.finditer(text, max(0, at - _BEFORE_MAX), min(len(text), at + _AFTER_MAX)):
                if found.start() <= at < found.end():
                    params = {name: value.rstrip(".,;:)") for name, value in found.groupdict().items() if value}
                    yield TemplateMatch(found.start(), found.end(), params)


@dataclass(frozen=True, slots=True)
class _Found:
    """``start`` and ``end`` are positions in the whole input."""

    error: ErrorText
    codes: tuple[str, ...]
    certainty: Certainty
    start: int
    end: int
    symptom: Symptom

    @property
    def rank(self) -> tuple[int, bool, int]:
        """The best first: causes, of these hints last, then their surroundings; the inner, later text."""
        is_hint = self.error.level is Level.CAUSE and self.certainty is Certainty.POSSIBLE
        return self.error.level, is_hint, -self.start

    @property
    def weight(self) -> tuple[int, int, int, bool]:
        """Orders overlapping texts, the best first: a longer text says more, and so does a close text."""
        length = self.end - self.start
        return self.error.level, _CERTAINTIES.index(self.certainty), -length, not self.error.needs

    @property
    def quality(self) -> tuple[int, int, int]:
        return -_CERTAINTIES.index(self.certainty), len(self.symptom.params), self.start


def recognise(text: str | Iterable[str]) -> tuple[Symptom, ...]:
    """The symptoms, the best first. A long log can be given in pieces, such as lines."""
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
    kept: list[_Found] = []
    for found in sorted(candidates, key=lambda found: found.weight):
        if not any(found.start < other.end and other.start < found.end for other in kept):
            kept.append(found)
    return kept


@cache
def error_texts() -> tuple[ErrorText, ...]:
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
    """Raises KeyError for an unknown placeholder."""
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


def _is_below(error: ErrorText, place: TemplateMatch) -> bool:
    smaller, larger = (place.params.get(name, "") for name in error.below or ("", ""))
    return not (smaller.isdecimal() and larger.isdecimal()) or int(smaller) < int(larger)


def _judged(error: ErrorText, place: TemplateMatch, around: str, part: _Part) -> _Found:
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


def _line(text: str, place: TemplateMatch) -> str:
    stop = place.end + 4 * _LINE_CHARACTERS
    ends = [end for mark in "\n\v" if (end := text.find(mark, place.end, stop)) >= 0]
    return one_line(brief(" ".join(text[place.start : min(ends, default=stop)].split()), _LINE_CHARACTERS))


@dataclass(frozen=True, slots=True)
class _Part:
    """A cleaned part of a log. ``position`` and ``lines`` count characters and line ends before it."""

    text: str
    position: int
    lines: int

    def line_number(self, at: int) -> int:
        """The line of the input, counted from 1."""
        return self.lines + self.text.count("\n", 0, at) + 1


def _parts(pieces: Iterable[str]) -> Iterator[_Part]:
    """Each part begins with the end of the part before it."""
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
