"""An operation as its folder shows it: what a lost ledger is restored from."""

from __future__ import annotations

import json
from pathlib import Path

from slackwater.model.records import UNDOING, OperationRecord

PLAN_FILE = "plan.json"
JOURNAL = "journal.jsonl"


def read_operation(stream: str, folder: Path) -> OperationRecord | None:
    """The operation in a folder; ``None`` where its plan cannot be read.

    One whose journal records no end is unfinished: its status is ``applying`` or ``undoing``.
    """
    try:
        goal = str(json.loads((folder / PLAN_FILE).read_bytes())["goal"])
        lines = [json.loads(line) for line in _whole_lines(folder / JOURNAL)]
        times = [int(line["at_ms"]) for line in lines] or [0]
        end = lines[-1].get("end") if lines else "refused"
        undoing = bool(lines) and lines[-1].get("state") in {"undoing", "undone"}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return OperationRecord(
        folder.name,
        stream,
        goal,
        str(end) if end else UNDOING if undoing else "applying",
        times[0],
        ended_ms=times[-1] if end else None,
        summary=str(folder / PLAN_FILE),
    )


def _whole_lines(file: Path) -> list[bytes]:
    if not file.exists():
        return []
    content = file.read_bytes()
    return content[: content.rfind(b"\n") + 1].splitlines()
