"""What the demo found, as frozen values; the page and the JSON document are two renderings of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from examples.demo.compare import Comparison
from examples.demo.data import Input
from slackwater.core.checkpoint import Marks
from slackwater.operations.plan.plan import Plan


@dataclass(frozen=True, slots=True)
class StreamMarks:
    """The marks of one stream."""

    stream: str
    marks: Marks


Source = Literal["files", "kafka"]


@dataclass(frozen=True, slots=True)
class ManualRestart:
    """The outcome of the manual restart of a copy: ``lost`` rows are missing, ``wrong`` ones are unexpected.

    ``refused`` is the name of the error with which Spark ends the upgraded code on the old checkpoint. ``skipped`` of
    the ``batches`` it ran were dropped by the sink, which already had their ids.
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
    """The story with files as sinks. ``rows_read_again`` and ``rows_read`` are those of the gold stage's input."""

    source: Source
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
    manual_restart: ManualRestart
    seconds: float
    folder: str | None

    @property
    def equal(self) -> bool:
        """Whether every stream wrote what an uninterrupted run writes."""
        return all(comparison.equal for comparison in self.comparisons)

    def marks_of(self, stream: str, lines: tuple[StreamMarks, ...]) -> Marks:
        """The marks of one stream in a list of marks."""
        return next(line.marks for line in lines if line.stream == stream)


@dataclass(frozen=True, slots=True)
class StageKill:
    """A stage that was killed after its sink had written ``batch`` and before Spark had committed it.

    ``verdict`` and ``next`` are what ``slackwater status`` printed then; ``next`` is the command that was typed.
    """

    stream: str
    batch: int
    marks: Marks
    verdict: str
    next: str


@dataclass(frozen=True, slots=True)
class TablesResult:
    """The whole story with tables as sinks. ``rebuilt`` are the marks of the last stage after its rebuild."""

    source: Source
    input: Input
    kills: tuple[StageKill, ...]
    lost: StageKill
    plan: Plan
    plan_text: str
    rebuilt: Marks
    comparisons: tuple[Comparison, ...]
    seconds: float
    folder: str | None

    @property
    def equal(self) -> bool:
        """Whether every stream wrote the rows that plain Python computes from the same lines."""
        return all(comparison.equal for comparison in self.comparisons)


SCHEMA = "slackwater.demo/1"
TABLES_SCHEMA = "slackwater.demo-tables/1"


def demo_document(result: DemoResult | TablesResult) -> dict[str, Any]:
    """All facts that the page shows, as plain JSON values."""
    return _of_tables(result) if isinstance(result, TablesResult) else _of_files(result)


def _of_tables(result: TablesResult) -> dict[str, Any]:
    return {
        "schema": TABLES_SCHEMA,
        "equal": result.equal,
        "source": result.source,
        "input": asdict(result.input),
        "killed": [_kill_as_json(kill) for kill in result.kills],
        "lost": _kill_as_json(result.lost),
        "plan": asdict(result.plan),
        "rebuilt": _marks_fields(result.rebuilt),
        **_end(result),
    }


def _of_files(result: DemoResult) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "equal": result.equal,
        "source": result.source,
        "input": asdict(result.input),
        "killed": {"stream": result.plan.stream, "batch": result.killed_batch},
        "before": _marks_as_json(result.before),
        "plan": asdict(result.plan),
        "restarted": _marks_as_json((result.restarted,)),
        "after": _marks_as_json(result.after),
        "rows_read_again": result.rows_read_again,
        "rows_read": result.rows_read,
        "manual_restart": asdict(result.manual_restart),
        **_end(result),
    }


def _end(result: DemoResult | TablesResult) -> dict[str, Any]:
    return {
        "comparisons": [{**asdict(line), "equal": line.equal} for line in result.comparisons],
        "seconds": round(result.seconds, 1),
        "folder": result.folder,
    }


def _kill_as_json(kill: StageKill) -> dict[str, Any]:
    return {**asdict(kill), "marks": _marks_fields(kill.marks)}


def _marks_as_json(lines: tuple[StreamMarks, ...]) -> dict[str, dict[str, int | None]]:
    return {line.stream: _marks_fields(line.marks) for line in lines}


def _marks_fields(marks: Marks) -> dict[str, int | None]:
    return {**asdict(marks), "next_batch": marks.next_batch}
