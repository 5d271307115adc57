"""The type of a rule: one finding, with what declares it and the function that looks for it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Literal, TypedDict, Unpack

from slackwater.core.finding import Finding, Risk, Severity
from slackwater.core.snapshot import Snapshot

DAMAGED = 3
REFUSED = 5
FAILED = 7

HEADINGS = (
    "What it finds",
    "Why it matters",
    "How to confirm",
    "What to do",
    "Is the remedy safe",
    "References",
)
"""What the docstring of a check has after its first paragraph, each at the start of a line and with a colon."""

_HEADING = re.compile(rf"^({'|'.join(HEADINGS)}): ", re.MULTILINE)

About = Literal["operation", "identity", "marker", "stream", "last-run", "query"]
"""What a finding is about, for those who refuse or leave out only findings of one subject."""


class When(Enum):
    """Whether what a rule compares can be compared.

    ``ALWAYS``: it compares no marks. ``COMPARABLE``: it compares marks or files, which change while a process writes,
    and which are wrong where the sink's marker was lost. ``IN_ORDER``: it reports how the stream continues, where no
    other rule has found a stop or a failure.
    """

    ALWAYS = auto()
    COMPARABLE = auto()
    IN_ORDER = auto()


class Details(TypedDict, total=False):
    """The fields of a finding that a rule sets by what it found."""

    risk: Risk
    goal: str | None
    next: str | None
    advice: str | None
    where: str | None
    expected: str | None
    found: str | None


@dataclass(frozen=True, slots=True)
class Rule:
    """One finding. ``order`` is its place among the findings of a stream: the most urgent has the lowest.

    The docstring of its function has the headings of ``HEADINGS``. ``from_plan``: it rests on the query's plan as the
    last run recorded it; all others rest on files and ids alone. ``covers`` are the codes of the catalogue of failures
    that it finds. ``on_output``: it compares what the output shows.
    """

    code: str
    severity: Severity
    order: int
    risk: Risk = "none"
    exit_code: int = 0
    when: When = When.COMPARABLE
    about: About = "stream"
    from_plan: bool = False
    covers: tuple[str, ...] = ()
    on_output: bool = False
    find: Callable[[Snapshot], Iterator[Finding]] = lambda _: iter(())

    def __call__(self, find: Callable[[Snapshot], Iterator[Finding]]) -> Rule:
        """As a decorator: the rule with the function that looks for it, whose docstring is its page."""
        return replace(self, find=find)

    @property
    def sections(self) -> dict[str, str]:
        """The docstring's text by heading, each as one paragraph."""
        return sections_of(self.find)

    @property
    def meaning(self) -> str:
        """The first paragraph of the docstring."""
        return meaning_of(self.find)

    def finding(self, text: str, *, code: str | None = None, **details: Unpack[Details]) -> Finding:
        """The finding with what the rule declares; ``code`` and ``risk`` where they depend on what was found."""
        fields: Details = {"risk": self.risk, **details}
        return Finding(code or self.code, self.severity, text, exit_code=self.exit_code, **fields)


def meaning_of(find: Callable[..., object]) -> str:
    """The first paragraph of a docstring."""
    return " ".join((inspect.getdoc(find) or "").partition("\n\n")[0].split())


def sections_of(find: Callable[..., object]) -> dict[str, str]:
    """The text of a docstring by heading, each as one paragraph."""
    parts = _HEADING.split(inspect.getdoc(find) or "")[1:]
    return {heading: " ".join(text.split()) for heading, text in zip(parts[::2], parts[1::2], strict=True)}
