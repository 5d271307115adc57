"""The documents ``slackwater.demo/1`` and, with tables as sinks, ``slackwater.demo-tables/1``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from slackwater.demo.result import DemoResult, StageKill, StreamMarks, TablesResult
from slackwater.model.marks import Marks

SCHEMA = "slackwater.demo/1"
TABLES_SCHEMA = "slackwater.demo-tables/1"


def demo_document(result: DemoResult | TablesResult) -> dict[str, Any]:
    """The same facts as on the page."""
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
