from __future__ import annotations

from typing import Any

from rich.table import Table

from slackwater.cli.common.console import iso
from slackwater.core.records import OperationRecord

WIDE = 1000
"""Tables in files and pipes are as wide as their longest line."""


def table_of(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for index, column in enumerate(columns):
        table.add_column(f"  {column}" if index == 0 else column)
    return table


def operation_fields(record: OperationRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "goal": record.goal,
        "status": record.status,
        "started": iso(record.started_ms),
        "ended": iso(record.ended_ms),
        "summary": record.summary,
    }
