"""The type of a check: a known problem, and the function that looks for it and explains it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from slackwater.core.facts import Facts, Judged, SourceFacts, Unknown
from slackwater.core.finding import Finding, Risk, Severity
from slackwater.diagnose.checks.common.snapshot import as_possible

DAMAGED = 3
REFUSED = 5
FAILED = 7

HEADINGS = (
    "Condition",
    "Effect",
    "How to confirm",
    "Remedy",
    "Safety",
    "References",
)
"""The page of a check has them after its first paragraph, each at the start of a line and with a colon."""

_HEADING = re.compile(rf"^({'|'.join(HEADINGS)}): ", re.MULTILINE)

Certainty = Literal["certain", "likely", "possible"]
Need = Literal[
    "sink", "history", "code", "source-files", "read-files", "source-shapes", "positions", "renames", "settings"
]
Goal = Literal["resume", "rebuild", "replay", "backfill", "reset"]
About = Literal["operation", "identity", "marker", "stream", "last-run", "query"]
"""The subject of a finding, for callers that refuse or leave out only one subject."""

_SHAPES = Unknown("the query's sources are recorded by a run only, and none has recorded them")

CODE = re.compile(r"SW-([A-Z]+)-([0-9]{3})")

Subject = TypeVar("Subject")


class When(Enum):
    """Whether a number line check can compare.

    ``ALWAYS``: it compares no marks. ``COMPARABLE``: it compares marks or files, which change while a process writes,
    and are wrong after a lost marker. ``IN_ORDER``: it reports how the stream continues, if no check found a stop or
    failure.
    """

    ALWAYS = auto()
    COMPARABLE = auto()
    IN_ORDER = auto()


class Found(NamedTuple):
    """What a check yields, without empty fields.

    ``next`` is a command of ``core/commands``. ``damage`` has paths that the finding explains: if it has all,
    ``checkpoint-damaged`` is left out. ``facts`` are for JSON. ``code``, ``risk`` and ``goal`` are set if they depend
    on what was found.
    """

    text: str
    next: str | None = None
    advice: str | None = None
    where: str | None = None
    expected: str | None = None
    found: str | None = None
    at_stake: str | None = None
    damage: Iterable[str] = ()
    facts: Mapping[str, Any] | None = None
    code: str | None = None
    risk: Risk | None = None
    goal: str | None = None


class Diagnosed(NamedTuple):
    finding: Finding
    certainty: Certainty
    at_stake: str | None
    facts: dict[str, Any]
    covers: tuple[str, ...]
    damage: frozenset[str] = frozenset()


class NotChecked(NamedTuple):
    """A check without its facts: nothing is known, neither good nor bad."""

    code: str
    meaning: str
    reason: str
    how: str | None


def _nothing(_: object) -> Iterator[Found]:
    return iter(())


@dataclass(frozen=True)
class Check(Generic[Subject]):
    """A known problem, and the decorator of its function on a snapshot or all facts.

    ``also`` are further codes of failures. ``ends_with`` is the exit code of ``status``, by default ``REFUSED`` for a
    stop.

    Of the number line: ``order`` is lowest for the most urgent. ``from_plan``: it rests on the last run's recorded
    plan; others rest on files and ids. ``on_output``: it compares the output.

    Of all facts: without ``needs`` nothing can be said. ``explains``: codes of the number line's findings that it says
    more exactly. ``at_start``: a start looks for it, and is refused by a stop; it needs only facts of
    ``facts_of_start``.
    """

    code: str
    severity: Severity
    risk: Risk = "none"
    goal: Goal | None = None
    certainty: Certainty = "certain"
    also: tuple[str, ...] = ()
    ends_with: int | None = None
    order: int = 0
    when: When = When.COMPARABLE
    about: About = "stream"
    from_plan: bool = False
    on_output: bool = False
    needs: tuple[Need, ...] = ()
    explains: tuple[str, ...] = ()
    at_start: bool = False
    find: Callable[[Subject], Iterator[Found]] = _nothing
    page: str = ""

    def __call__(self, find: Callable[[Subject], Iterator[Found]]) -> Check[Subject]:
        """The function's docstring is the page."""
        return replace(self, find=find, page=inspect.getdoc(find) or "")

    @property
    def exit_code(self) -> int:
        if self.ends_with is not None:
            return self.ends_with
        return REFUSED if self.severity is Severity.STOP else 0

    @property
    def covers(self) -> tuple[str, ...]:
        """Codes of failures: ``LOG-06`` of ``SW-LOG-006``, and others."""
        match = CODE.fullmatch(self.code)
        return self.also if match is None else (f"{match[1]}-{int(match[2]):02}", *self.also)

    @property
    def meaning(self) -> str:
        return " ".join(self.page.partition("\n\n")[0].split())

    @property
    def sections(self) -> dict[str, str]:
        """The sections by heading, each as one paragraph."""
        parts = _HEADING.split(self.page)[1:]
        return {heading: " ".join(text.split()) for heading, text in zip(parts[::2], parts[1::2], strict=True)}

    def finding(self, found: Found) -> Finding:
        return Finding(
            found.code or self.code,
            self.severity,
            found.text,
            risk=found.risk or self.risk,
            goal=found.goal or self.goal,
            next=found.next or None,
            advice=found.advice or None,
            where=found.where or None,
            expected=found.expected or None,
            found=found.found or None,
            exit_code=self.exit_code,
        )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        return map(self.finding, self.find(subject))


def diagnosed(check: Check[Facts], facts: Facts) -> Iterator[Diagnosed]:
    """Findings of a check with no ``missing`` facts."""
    for found in check.find(facts):
        finding = check.finding(found if facts.recorded else found._replace(next=None))
        yield Diagnosed(
            as_possible(finding, facts.snapshot),
            check.certainty,
            found.at_stake or None,
            dict(found.facts or {}),
            check.covers,
            frozenset(found.damage),
        )


def missing(check: Check[Facts], facts: Facts) -> Unknown | None:
    return next((unknown for need in check.needs if (unknown := _missing(need, facts))), None)


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
