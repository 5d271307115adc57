"""The document ``slackwater.demo/1``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from slackwater.demo.result import DemoResult, StreamMarks

SCHEMA = "slackwater.demo/1"


def demo_document(result: DemoResult) -> dict[str, Any]:
    """The same facts as on the page."""
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
        "comparisons": [{**asdict(line), "equal": line.equal} for line in result.comparisons],
        "manual_restart": asdict(result.manual_restart),
        "seconds": round(result.seconds, 1),
        "folder": result.folder,
    }


def _marks_as_json(lines: tuple[StreamMarks, ...]) -> dict[str, dict[str, int | None]]:
    return {line.stream: {**asdict(line.marks), "next_batch": line.marks.next_batch} for line in lines}
