"""What the stories of the demo share: steps with their progress, and how the input is laid down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from examples.demo.compare import Comparison
from examples.demo.data import Input, Line

FillTopic = Callable[[tuple[Line, ...]], Input]
"""Sends the lines to a Kafka topic."""

T = TypeVar("T")


class Progress(Protocol):
    """Receives the progress of the demo."""

    def begin(self, what: str) -> None:
        """A step starts."""

    def end(self, outcome: str) -> None:
        """The step that started last has ended."""


def step(progress: Progress, what: str, action: Callable[[], T], summary: Callable[[T], str]) -> T:
    """Report the step, take it, and report its outcome."""
    progress.begin(what)
    outcome = action()
    progress.end(summary(outcome))
    return outcome


def after_input(laid_down: Input) -> str:
    """The summary of the first step."""
    return f"{laid_down.rows:,} readings, {laid_down.late} late, {laid_down.malformed} malformed"


def after_comparison(comparisons: tuple[Comparison, ...]) -> str:
    """The summary of the last step."""
    return "equal" if all(comparison.equal for comparison in comparisons) else "NOT equal"
