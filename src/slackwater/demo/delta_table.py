"""A Delta table as its log describes it (Delta's PROTOCOL.md), read without a library and without the sink's code."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from slackwater.demo.compare import Row, rows_in

LOG = "_delta_log"


def rows_of_table(table: Path) -> Counter[Row]:
    """All rows of the newest version. The tables of the demo are too young for a log without its first entries."""
    live: set[str] = set()
    for entry in _entries(table):
        for action in _actions(entry):
            if "remove" in action:
                live.discard(unquote(action["remove"]["path"]))
            if "add" in action:
                live.add(unquote(action["add"]["path"]))
    return rows_in(table / name for name in sorted(live))


def newest_batch(table: Path) -> int:
    """The newest batch that the table has, by the transaction of its newest version; -1 for none."""
    entries = _entries(table)
    written = (action["txn"]["version"] for action in _actions(entries[-1]) if "txn" in action) if entries else iter(())
    return max(written, default=-1)


def _entries(table: Path) -> list[Path]:
    try:
        return sorted(path for path in (table / LOG).iterdir() if path.name.endswith(".json") and path.stem.isdigit())
    except FileNotFoundError:
        return []


def _actions(entry: Path) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in entry.read_text(encoding="utf-8").splitlines())
