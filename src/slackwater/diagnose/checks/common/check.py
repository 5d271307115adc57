"""The type of a check: one finding of the catalogue, with what declares it and the function that looks for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from slackwater.core.facts import Facts, Judged, SourceFacts, Unknown
from slackwater.core.finding import Finding, Risk, Severity
from slackwater.diagnose.checks.common.rule import REFUSED, meaning_of, sections_of
from slackwater.diagnose.checks.common.snapshot import as_possible

Certainty = Literal["certain", "likely", "possible"]
Need = Literal[
    "sink", "history", "code", "source-files", "read-files", "source-shapes", "positions", "renames", "settings"
]
Goal = Literal["resume", "rebuild", "replay", "backfill", "reset"]

_SHAPES = Unknown("the query's sources are recorded by a run only, and none has recorded them")

CODE = re.compile(r"SW-([A-Z]+)-([0-9]{3})")


class Diagnosed(NamedTuple):
    """A finding with how sure it is, what is at stake, and the facts that it was made of.

    ``covers`` are the codes of the catalogue of failures that the finding may be. ``damage`` are the paths of the
    checkpoint's damage that it says more exactly.
    """

    finding: Finding
    certainty: Certainty
    at_stake: str | None
    facts: dict[str, Any]
    covers: tuple[str, ...]
    damage: frozenset[str] = frozenset()


class NotChecked(NamedTuple):
    """A check whose facts are missing: nothing is known, neither good nor bad."""

    code: str
    meaning: str
    reason: str
    how: str | None


@dataclass(frozen=True, slots=True)
class Check:
    """One finding of the catalogue. ``find`` yields a case for each place where it applies.

    ``text``, ``where``, ``expected``, ``found``, ``at_stake`` and ``advice`` are formatted with the case as ``it`` and
    the facts as ``facts``. ``next`` is the command to type, built in ``core/commands``. ``needs`` are the facts without
    which nothing can be said. ``also`` are further codes of the catalogue that it finds, and ``explains`` the codes of
    the number line's findings that it says more exactly. ``damage`` gives the paths of the checkpoint's damage that a
    case is: where all damage is said so, ``checkpoint-damaged`` is left out. ``at_start``: a start looks for
    it, and is refused if it is a stop; ``find`` then needs nothing that ``facts_of_start`` does not gather.
    """

    code: str
    severity: Severity
    text: str
    risk: Risk
    goal: Goal | None = None
    certainty: Certainty = "certain"
    where: str | None = None
    expected: str | None = None
    found: str | None = None
    at_stake: str | None = None
    next: Callable[[Facts, Any], str | None] | None = None
    advice: str | None = None
    needs: tuple[Need, ...] = ()
    also: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()
    damage: Callable[[Any], Iterable[str]] | None = None
    at_start: bool = False
    find: Callable[[Facts], Iterator[Any]] = lambda _: iter(())

    def __call__(self, find: Callable[[Facts], Iterator[Any]]) -> Check:
        """As a decorator: the check with the function that looks for it, whose docstring is its page."""
        return replace(self, find=find)

    @property
    def covers(self) -> tuple[str, ...]:
        """The codes of the catalogue of failures: ``LOG-06`` of ``SW-LOG-006``, and the others."""
        match = CODE.fullmatch(self.code)
        if match is None:
            raise ValueError(f"{self.code} is no code of the form {CODE.pattern}")
        return (f"{match[1]}-{int(match[2]):02}", *self.also)

    @property
    def meaning(self) -> str:
        """The first paragraph of the docstring."""
        return meaning_of(self.find)

    @property
    def sections(self) -> dict[str, str]:
        """The docstring's text by heading, each as one paragraph."""
        return sections_of(self.find)

    def missing(self, facts: Facts) -> Unknown | None:
        """The first of the facts it needs that could not be gathered."""
        for need in self.needs:
            unknown = _missing(need, facts)
            if unknown is not None:
                return unknown
        return None

    def diagnose(self, facts: Facts) -> Iterator[Diagnosed]:
        """What it finds. Only where nothing is ``missing``."""
        for case in self.find(facts):
            yield Diagnosed(
                self._finding(facts, case),
                self.certainty,
                _formatted(self.at_stake, facts, case),
                case._asdict(),
                self.covers,
                frozenset(self.damage(case)) if self.damage is not None else frozenset(),
            )

    def _finding(self, facts: Facts, case: Any) -> Finding:
        command = self.next(facts, case) if self.next is not None and facts.recorded else None
        finding = Finding(
            self.code,
            self.severity,
            self.text.format(it=case, facts=facts),
            risk=self.risk,
            goal=self.goal,
            next=command,
            advice=_formatted(self.advice, facts, case),
            where=_formatted(self.where, facts, case),
            expected=_formatted(self.expected, facts, case),
            found=_formatted(self.found, facts, case),
            exit_code=REFUSED if self.severity is Severity.STOP else 0,
        )
        return as_possible(finding, facts.snapshot)


def _formatted(template: str | None, facts: Facts, case: Any) -> str | None:
    """The text, ``None`` where the case leaves it empty."""
    return None if template is None else template.format(it=case, facts=facts) or None


def _missing(need: Need, facts: Facts) -> Unknown | None:
    match need:
        case "sink":
            return _if_unknown(facts.sink)
        case "history":
            return _if_unknown(facts.history)
        case "code":
            return _if_unknown(facts.code)
        case "source-files" | "read-files" | "positions":
            of_sources = map(_OF_A_SOURCE[need], facts.sources)
            return next((one for fact in of_sources if (one := _if_unknown(fact))), None)
        case "settings":
            return None if isinstance(facts.code, Judged) else _if_unknown(facts.history)
        case "renames":
            return None if facts.checkpoint.atomic_rename else _if_unknown(facts.history)
        case "source-shapes":
            return _SHAPES if any(source.shape is None for source in facts.sources) else None


_OF_A_SOURCE: Mapping[str, Callable[[SourceFacts], object]] = {
    "source-files": lambda source: source.missing_files,
    "read-files": lambda source: source.removed_files,
    "positions": lambda source: source.unserved,
}


def _if_unknown(fact: object) -> Unknown | None:
    return fact if isinstance(fact, Unknown) else None
