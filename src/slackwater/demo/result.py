"""What the demo found, as frozen values; the page and the JSON document are two renderings of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from slackwater.demo.compare import Comparison
from slackwater.demo.data import Input
from slackwater.model.marks import Marks
from slackwater.model.plan import Plan

DEMO_SCHEMA = "slackwater.demo/1"


@dataclass(frozen=True, slots=True)
class StreamMarks:
    """The marks of one stream."""

    stream: str
    marks: Marks


@dataclass(frozen=True, slots=True)
class Recipe:
    """What came of the usual recipe on a copy: ``lost`` rows never came, ``wrong`` ones should not have.

    ``refused`` is the name of the error with which Spark ends the upgraded code on the old checkpoint. ``skipped`` of
    the ``batches`` it ran were dropped by the sink, which had seen their ids before.
    """

    refused: str
    rows: int
    expected_rows: int
    lost: int
    wrong: int
    batches: int
    skipped: int


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The whole story. ``rows_read_again`` and ``rows_read`` are those of the gold stage's input."""

    source: str
    input: Input
    killed_batch: int
    before: tuple[StreamMarks, ...]
    plan: Plan
    plan_text: str
    restarted: StreamMarks
    after: tuple[StreamMarks, ...]
    rows_read_again: int
    rows_read: int
    comparisons: tuple[Comparison, ...]
    recipe: Recipe
    seconds: float
    folder: str | None

    @property
    def equal(self) -> bool:
        """Whether every stream wrote what an uninterrupted run writes."""
        return all(comparison.equal for comparison in self.comparisons)

    def marks_of(self, stream: str, moment: tuple[StreamMarks, ...]) -> Marks:
        """The marks of one stream at one moment."""
        return next(line.marks for line in moment if line.stream == stream)

    def as_json(self) -> dict[str, Any]:
        """The document that ``--format json`` prints. Keys are only ever added."""
        return {
            "schema": DEMO_SCHEMA,
            "equal": self.equal,
            "source": self.source,
            "input": asdict(self.input),
            "killed": {"stream": self.plan.stream, "batch": self.killed_batch},
            "before": _marks_as_json(self.before),
            "plan": asdict(self.plan),
            "restarted": _marks_as_json((self.restarted,)),
            "after": _marks_as_json(self.after),
            "rows_read_again": self.rows_read_again,
            "rows_read": self.rows_read,
            "comparisons": [{**asdict(line), "equal": line.equal} for line in self.comparisons],
            "usual_recipe": asdict(self.recipe),
            "seconds": round(self.seconds, 1),
            "folder": self.folder,
        }


def _marks_as_json(lines: tuple[StreamMarks, ...]) -> dict[str, dict[str, int | None]]:
    return {line.stream: {**asdict(line.marks), "next_batch": line.marks.next_batch} for line in lines}
