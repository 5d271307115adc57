"""Recognises Spark's error texts in a stack trace, a driver log or the message of a failed query.

One cause has the text of several Spark versions, and one text has several causes: a symptom names the catalogue's codes
that it may mean, and the stream's files decide (``diagnose/causes``). Pure: the same text gives the same symptoms.

A text is read in parts of bounded size. Colours and carriage returns are removed. A trace inside a JSON string gets its
line ends back as vertical tabs, so that the numbers of lines stay those of the input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from slackwater.core.escaping import one_line
from slackwater.core.masking import brief, mask
from slackwater.core.registry import Registry
from slackwater.diagnose.errors.common.complaints import complaint_places
from slackwater.diagnose.errors.common.names import keys_of, named_places
from slackwater.diagnose.errors.common.paths import missing_places
from slackwater.diagnose.errors.common.symptom import Certainty, ErrorText, Level, Symptom
from slackwater.diagnose.errors.common.template import Place, Template, compile_template
from slackwater.diagnose.errors.common.thrown import thrown_places

ERRORS: Registry[tuple[ErrorText, ...]] = Registry("slackwater.diagnose.errors", "GROUP", "slackwater.errors")

_PLACES_MAX = 8
"""How often one text is compared in one part of a log; the last places are the newest failure."""
_NEAR_CHARACTERS = 8000
_LINE_CHARACTERS = 300
_CERTAINTIES = tuple(Certainty)
_FALLBACKS = (Level.GENERAL, Level.COMPLAINT, Level.WORDS, Level.CATCH_ALL)
"""Levels that count only where no better one is recognised."""
_WEAKEST = {Level.COMPLAINT: 1, Level.WORDS: 2, Level.CATCH_ALL: 3}
"""Levels that yield to any other text of the same characters, whatever their certainty is."""
PART_CHARACTERS = 1 << 20
_OVERLAP_CHARACTERS = 1 << 14
"""How much of a part is seen again in the next: more than an error text with what is close to it."""

_COLOUR = re.compile(r"\x1b\[[0-9;]{0,32}[A-Za-z]")
_MAIL = re.compile(r" (?=\n)|(?<=\n)(?:> ?){1,8}")
"""What mails add: a blank before the end of a line that was wrapped, and marks of a quotation."""

_ESCAPED_LINE_END = re.compile(r"(?:\\r)?\\n(?=\\t|Caused by|\s|at |=== |Driver stacktrace)")


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
    def weight(self) -> tuple[int, int, int, int, bool]:
        """Sorts the best first of texts that overlap: the longer text says more, and so does what is close to it.

        The words of a message that is known mean what the message means.
        """
        length = self.end - self.start
        return (
            _WEAKEST.get(self.error.level, 0),
            self.error.level,
            _CERTAINTIES.index(self.certainty),
            -length,
            not self.error.needs,
        )

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
    explained = {found.codes[0] for found in kept if found.error.level <= Level.WRAPPER and not found.error.follows}
    ranked = sorted(kept, key=lambda found: (not explained.isdisjoint(found.error.follows), *found.rank))
    best_level = min((found.error.level for found in ranked), default=Level.NOTE)
    return tuple(
        found.symptom for found in ranked if found.error.level not in _FALLBACKS or _is_best(found, best_level)
    )


def _is_best(found: _Found, best_level: Level) -> bool:
    return found.error.level is best_level


def _without_overlaps(candidates: Iterable[_Found]) -> list[_Found]:
    """Of symptoms that were found in the same characters, only the one that explains most of them."""
    kept: list[_Found] = []
    for found in sorted(candidates, key=lambda found: found.weight):
        if not any(found.start < other.end and other.start < found.end for other in kept):
            kept.append(found)
    return kept


@cache
def _templates(groups: tuple[tuple[ErrorText, ...], ...]) -> tuple[tuple[Template, ErrorText], ...]:
    return tuple((compile_template(text), error) for group in groups for error in group for text in error.texts)


@cache
def _names(groups: tuple[tuple[ErrorText, ...], ...]) -> Mapping[str, ErrorText]:
    return {name: error for group in groups for error in group for name in error.names}


def _found_in(part: _Part) -> Iterator[_Found]:
    joined = part.text.replace("\n", " ")
    for template, error in _templates(ERRORS.all()):
        if template.literal in joined:
            for place in template.places(part.text, joined, _PLACES_MAX):
                around = part.text[max(0, place.start - _NEAR_CHARACTERS) : place.end + _NEAR_CHARACTERS]
                is_near = not error.needs or any(literal in around for literal in error.needs)
                if is_near and _is_below(error, place):
                    yield _judged(error, place, around, part)
    table = _names(ERRORS.all())
    for name, place in _named_in(part.text):
        named = next((table[key] for key in keys_of(name) if key in table), None)
        if named is not None:
            around = part.text[max(0, place.start - _NEAR_CHARACTERS) : place.end + _NEAR_CHARACTERS]
            yield _judged(named, place, around, part)


def _named_in(text: str) -> Iterator[tuple[str, Place]]:
    """Every name that tables may have for something in a text."""
    for reader in (named_places, thrown_places, missing_places, complaint_places):
        yield from reader(text)


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
