"""An operation as its folder shows it: what a lost ledger is restored from."""

from __future__ import annotations

import json

from slackwater.core.records import UNDOING, OperationFiles, OperationRecord
from slackwater.core.unicode import is_unicode
from slackwater.storage.location import AnyLocation, Location
from slackwater.storage.open import open_read_store
from slackwater.storage.protocols import ReadStore

PLAN_FILE = "plan.json"
JOURNAL = "journal.jsonl"
LATEST_MS = 2**53


def read_operation(stream: str, folder: AnyLocation) -> OperationRecord | None:
    """The operation in a folder; ``None`` where its plan cannot be read.

    One whose journal records no end is unfinished: its status is ``applying`` or ``undoing``.
    """
    folder, store = Location(folder), open_read_store(folder)
    try:
        goal = _text(json.loads(store.read(PLAN_FILE))["goal"])
        lines = [json.loads(line) for line in _whole_lines(store)]
        times = [_time(line["at_ms"]) for line in lines] or [0]
        # Killed before its first line, unless it has a backup: then its journal was lost.
        end = lines[-1].get("end") if lines else "unknown" if store.exists("backup") else "refused"
        end = _text(end) if end else None
        undoing = bool(lines) and lines[-1].get("state") in {"undoing", "undone"}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
    return OperationRecord(
        folder.name,
        stream,
        goal,
        end or (UNDOING if undoing else "applying"),
        times[0],
        ended_ms=times[-1] if end else None,
        summary=str(folder / PLAN_FILE),
    )


def _text(value: object) -> str:
    text = str(value)
    if not is_unicode(text):
        raise ValueError(ascii(text))
    return text


def _time(value: float) -> int:
    """Milliseconds that a database can hold."""
    time = int(value)
    if not 0 <= time <= LATEST_MS:
        raise ValueError(time)
    return time


def files_in(folder: AnyLocation, *, home: str, stream_id: str) -> OperationFiles:
    """The files of an operation as they are now, for those of which no copies were recorded."""
    folder, store = Location(folder), open_read_store(folder)
    plan, journal = (_content(store, name).decode("utf-8", "replace") for name in (PLAN_FILE, JOURNAL))
    # What follows the last line break was being written at a kill, and was never acted on.
    return OperationFiles(folder.name, home, stream_id, plan, journal[: journal.rfind("\n") + 1])


def _content(store: ReadStore, name: str) -> bytes:
    try:
        return store.read(name)
    except FileNotFoundError:
        return b""


def _whole_lines(store: ReadStore) -> list[bytes]:
    content = _content(store, JOURNAL)
    return content[: content.rfind(b"\n") + 1].splitlines()
