"""Recognises Spark's error texts in a trace, log or message.

The texts are data (``error_texts.toml``, and ``defects.toml`` for Spark's known defects). A cause has texts of several
Spark versions, and a text several causes: a symptom names codes of the catalogue, and the stream's files decide
(``explained``). Pure: equal texts give equal symptoms.

A template is a message with placeholders such as ``<batch>``. ``batch <batch> doesn't exist`` is found by its longest
literal, ``doesn't exist``; only there the template is compared. A blank matches any white space; a line feed is a blank
at which some version has a line end. ``<any>`` matches within a line, ``<eol>`` up to its end. Other placeholders
return values by name.

A log is read in bounded parts, without colours and carriage returns. A trace in a JSON string gets vertical tabs as
line ends, so that line numbers stay the input's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from functools import cache
from typing import Any, Literal, NamedTuple

from slackwater.core.commands import command
from slackwater.core.escaping import one_line
from slackwater.core.masking import brief, mask
from slackwater.diagnose.catalogue import known, known_failures, table
from slackwater.diagnose.doctor import Diagnosis, documented

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


class ErrorText(NamedTuple):
    """``texts`` are templates, the most informative first; ``codes`` their possible meanings, the most likely first. A
    text counts only close to one of ``needs``, if any, and only if the first value of ``below`` is smaller than the
    second. ``near``: if any of its first strings, such as a stack frame, is close, its codes come first, and its
    certainty, if any, replaces the text's. ``says`` is beyond the first code's catalogue entry.
    """

    symptom: str
    codes: tuple[str, ...]
    texts: tuple[str, ...]
    level: Level = Level.CAUSE
    certainty: Certainty | None = None
    near: tuple[tuple[tuple[str, ...], tuple[str, ...], Certainty | None], ...] = ()
    needs: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    says: str = ""


@dataclass(frozen=True, slots=True)
class Symptom:
    """``params`` are values such as ``batch`` or ``path``; ``line`` is the matched text up to the line's end; both are
    masked. ``where`` is a line number from 1. ``says`` is beyond the first code's catalogue entry. ``causes``, the
    likeliest first, are found by ``explained``.
    """

    symptom: str
    codes: tuple[str, ...]
    line: str
    where: int
    certainty: Certainty
    params: Mapping[str, str] = field(default_factory=dict, hash=False)
    says: str = ""
    causes: tuple[Cause, ...] = ()

    @property
    def cause(self) -> Cause:
        return self.causes[0]


class _Found(NamedTuple):
    """``start`` and ``end`` are positions in the whole input."""

    error: ErrorText
    start: int
    end: int
    symptom: Symptom

    @property
    def rank(self) -> tuple[int, bool, int]:
        """The best first: causes, of these hints last, then their surroundings; the inner, later text."""
        is_hint = self.error.level is Level.CAUSE and self.symptom.certainty is Certainty.POSSIBLE
        return self.error.level, is_hint, -self.start

    @property
    def weight(self) -> tuple[int, int, int, bool]:
        """Orders overlapping texts, the best first: a longer text says more, and so does a close text."""
        length = self.end - self.start
        return self.error.level, _CERTAINTIES.index(self.symptom.certainty), -length, not self.error.needs

    @property
    def quality(self) -> tuple[int, int, int]:
        return -_CERTAINTIES.index(self.symptom.certainty), len(self.symptom.params), self.start


def recognise(text: str | Iterable[str]) -> tuple[Symptom, ...]:
    """The symptoms, the best first. A long log can be given in pieces, such as lines."""
    best: dict[str, _Found] = {}
    for part in _parts((text,) if isinstance(text, str) else text):
        for found in _found_in(*part):
            known = best.get(found.error.symptom)
            if known is None or found.quality >= known.quality:
                best[found.error.symptom] = found
    kept: list[_Found] = []
    for found in sorted(best.values(), key=lambda found: found.weight):
        if not any(found.start < other.end and other.start < found.end for other in kept):
            kept.append(found)
    ranked = sorted(kept, key=lambda found: found.rank)
    has_better = any(found.error.level < Level.GENERAL for found in ranked)
    return tuple(found.symptom for found in ranked if found.error.level is not Level.GENERAL or not has_better)


@cache
def error_texts() -> tuple[ErrorText, ...]:
    areas = table("error_texts").values()
    defects = (
        ErrorText(
            f"defect-{defect.issue.lower()}",
            ("VER-06",),
            defect.texts,
            certainty=Certainty.LIKELY,
            needs=defect.needs,
            says=f"{defect.issue}: {defect.what}; {defect.advice}",
        )
        for defect in known()
        if defect.texts
    )
    listed = (
        ErrorText(
            name,
            tuple(entry["codes"]),
            tuple(entry["texts"]),
            Level[entry.get("level", "cause").upper()],
            _certainty(entry),
            tuple((tuple(near["literals"]), tuple(near["codes"]), _certainty(near)) for near in entry.get("near", ())),
            tuple(entry.get("needs", ())),
            tuple(entry.get("below", ())),
        )
        for area in areas
        for name, entry in area.items()
    )
    return (*listed, *defects)


def _certainty(entry: Mapping[str, Any]) -> Certainty | None:
    return Certainty(entry["certainty"]) if "certainty" in entry else None


@cache
def _templates() -> tuple[tuple[str, re.Pattern[str], ErrorText], ...]:
    return tuple((*compile_template(text), error) for error in error_texts() for text in error.texts)


@cache
def compile_template(template: str) -> tuple[str, re.Pattern[str]]:
    """A literal that each matching text has, and the pattern. Raises KeyError for an unknown placeholder."""
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
    return max(parts, key=len), re.compile(pattern)


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


def _found_in(text: str, position: int, lines: int) -> Iterator[_Found]:
    # A page or terminal may have wrapped a text.
    joined = text.replace("\n", " ")
    for literal, pattern, error in _templates():
        for place in _places(literal, pattern, text, joined):
            around = text[max(0, place.start() - _NEAR_CHARACTERS) : place.end() + _NEAR_CHARACTERS]
            params = {name: value.rstrip(".,;:)") for name, value in place.groupdict().items() if value}
            is_near = not error.needs or any(needed in around for needed in error.needs)
            smaller, larger = (params.get(name, "") for name in error.below or ("", ""))
            is_below = not (smaller.isdecimal() and larger.isdecimal()) or int(smaller) < int(larger)
            if is_near and is_below:
                line_number = lines + text.count("\n", 0, place.start()) + 1
                stop = place.end() + 4 * _LINE_CHARACTERS
                ends = [end for mark in "\n\v" if (end := text.find(mark, place.end(), stop)) >= 0]
                whole = " ".join(text[place.start() : min(ends, default=stop)].split())
                line = one_line(brief(whole, _LINE_CHARACTERS))
                symptom = _judged(error, around, line, line_number, params)
                yield _Found(error, position + place.start(), position + place.end(), symptom)


def _places(literal: str, pattern: re.Pattern[str], text: str, joined: str) -> Iterator[re.Match[str]]:
    """Matches around the last places of the literal, the last first."""
    at = len(text)
    for _ in range(_PLACES_MAX):
        at = joined.rfind(literal, 0, at)
        if at < 0:
            return
        for found in pattern.finditer(text, max(0, at - _BEFORE_MAX), min(len(text), at + _AFTER_MAX)):
            if found.start() <= at < found.end():
                yield found


def _judged(error: ErrorText, around: str, line: str, line_number: int, params: Mapping[str, str]) -> Symptom:
    codes, certainty = error.codes, error.certainty
    for literals, likelier, surer in error.near:
        if any(literal in around for literal in literals):
            codes = tuple(dict.fromkeys((*likelier, *codes)))
            certainty = surer or certainty
            break
    if certainty is None:
        certainty = Certainty.CERTAIN if len(codes) == 1 else Certainty.LIKELY
    return Symptom(
        symptom=error.symptom,
        codes=codes,
        line=line,
        where=line_number,
        certainty=certainty,
        params={name: one_line(mask(value)) for name, value in params.items()},
        says=error.says,
    )


def _parts(pieces: Iterable[str]) -> Iterator[tuple[str, int, int]]:
    """Cleaned parts of a log, with the numbers of characters and line ends before. Each part begins with the end of the
    part before it.
    """
    position = lines = 0
    text = ""
    for piece in _cut(pieces):
        clean = _COLOUR.sub("", piece) if "\x1b" in piece else piece
        clean = clean.replace("\r", " ")
        if " \n" in clean or "\n>" in clean:
            clean = _MAIL.sub("", clean)
        if "\\n" in clean:
            clean = _ESCAPED_LINE_END.sub("\v", clean).replace("\v\\t", "\v\t")
        text += clean.replace('\\"', '"')
        yield text, position, lines
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


State = Literal["confirmed", "known", "not-checked", "not-visible", "excluded"]
_RANKS: Mapping[State, int] = {"confirmed": 0, "known": 1, "not-checked": 1, "not-visible": 1, "excluded": 2}
"""The files come first; the likelihood decides between causes of which they say nothing."""


class Cause(NamedTuple):
    """A failure that a text may mean. ``confirmed``: the finding ``by`` shows it. ``excluded``: the check ``by`` found
    nothing. ``known``: the known defect ``by``. ``not-checked``: ``by`` says which fact is missing. ``not-visible``:
    files do not show it.
    """

    code: str
    title: str
    state: State
    by: str


def explained(symptoms: Sequence[Symptom], diagnosis: Diagnosis | None) -> tuple[Symptom, ...]:
    """The symptoms with causes; ``diagnosis`` is of the failed stream, if given."""
    finders, found = covering(), []
    for symptom in symptoms:
        causes = [_cause(code, diagnosis, finders.get(code, [])) for code in symptom.codes]
        if symptom.says and causes[0].state in ("not-checked", "not-visible"):
            causes[0] = causes[0]._replace(state="known", by=symptom.says)
        found.append(replace(symptom, causes=tuple(sorted(causes, key=lambda cause: _RANKS[cause.state]))))
    return tuple(found)


def _cause(code: str, diagnosis: Diagnosis | None, finders: Sequence[str]) -> Cause:
    failure = known_failures()[code]
    if not finders:
        return Cause(code, failure.title, "not-visible", failure.text)
    if diagnosis is None:
        return Cause(code, failure.title, "not-checked", "no checkpoint and no stream was given")
    found = [one.finding.code for one in diagnosis.found if code in one.covers]
    if found:
        return Cause(code, failure.title, "confirmed", ", ".join(dict.fromkeys(found)))
    if failure.how is not None:
        # Finders see a part of it only: the code, or Spark, shows the rest.
        return Cause(code, failure.title, "not-visible", failure.text)
    missed = next((one for one in diagnosis.not_checked if one.code in finders), None)
    if missed is not None:
        return Cause(code, failure.title, "not-checked", missed.reason)
    return Cause(code, failure.title, "excluded", ", ".join(finders))


def covering() -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in documented():
        for failure in one.covers:
            found.setdefault(failure, []).append(one.code)
    return found


SIGNS: Mapping[str, str] = {
    "LOG-16": "the program has no checkpointLocation, or a new one at each start: the log shows a temporary folder",
    "SRC-01": f"the source's oldest position is newer than the checkpoint's: {command('inspect', 'CHECKPOINT')}",
    "SRC-03": "the connector's own files next to the checkpoint do not have the newest batch",
    "SRC-06": "another application, or an older run of this one, reads with the same consumer group",
    "SINK-07": "another writer committed to the table at that time: DESCRIBE HISTORY NAME",
    "SHARE-01": "a second driver with the same checkpoint is running: list the applications of the cluster",
    "STORE-03": "only one driver uses the checkpoint, and the next start passes",
    "VER-04": "a jar is for a different Spark, Scala or Kafka: ls $SPARK_HOME/jars; spark-submit --verbose",
    "VER-06": "the issue tracker of the code in the first frames has the message, and a different release passes",
}
"""By codes that no file of a checkpoint shows."""


def signs_of(error: Symptom) -> Mapping[str, str]:
    """Signs of the remaining causes, the likeliest first; empty if text or files decided."""
    left = [cause for cause in error.causes if cause.state != "excluded"]
    is_decided = any(cause.state == "confirmed" for cause in left)
    is_alone = len(left) == 1 and error.certainty is not Certainty.POSSIBLE
    if is_decided or is_alone:
        return {}
    return {cause.code: SIGNS[cause.code] for cause in left if cause.code in SIGNS}
