"""The journal of one operation: a line before each action and one after it, on the disk before anything happens.

Lines are keyed by the action's index in the plan, so that a plan can hold several actions of one kind. ``facts`` of a
line are what later actions need of this one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from slackwater.errors import FormatError, Refused

State = Literal["started", "done", "undoing", "undone"]
End = Literal["applied", "pruned", "refused", "undone"]
STATES: tuple[State, ...] = ("started", "done", "undoing", "undone")
ENDS: tuple[End, ...] = ("applied", "pruned", "refused", "undone")
PRUNED: Literal["pruned"] = "pruned"
"""The end of an operation that was applied and can no longer be undone: what that needs was deleted."""
JOURNAL = "journal.jsonl"


class Journal:
    """``journal.jsonl`` in an operation's folder. Raises FormatError (``journal-damaged``) if it cannot be parsed."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / JOURNAL
        self._states: dict[int, State] = {}
        self._facts: dict[int, Mapping[str, Any]] = {}
        self.end: End | None = None
        self.started_ms: int | None = None
        self._whole = 0
        self._read()

    def state(self, index: int) -> State | None:
        """How far an action came in this or an earlier, killed attempt; ``None``: not started, or undone."""
        state = self._states.get(index)
        return None if state == "undone" else state

    @property
    def being_undone(self) -> bool:
        """Whether an undo of the operation was started and has not ended."""
        return self.end is None and not {"undoing", "undone"}.isdisjoint(self._states.values())

    @property
    def in_progress(self) -> bool:
        """Whether an action was started by an attempt that has not ended."""
        return bool(self._states) and self.end is None

    def facts(self, index: int) -> Mapping[str, Any]:
        """What the action recorded when it was done."""
        return self._facts.get(index, {})

    def write(self, index: int, kind: str, state: State, at_ms: int, facts: Mapping[str, Any] | None = None) -> None:
        """Record an action's state. It is on the disk when this returns."""
        self._append({"index": index, "kind": kind, "state": state, "at_ms": at_ms, "facts": dict(facts or {})})
        self._states[index] = state
        if facts:
            self._facts[index] = facts
        self.end = None

    def write_end(self, end: End, at_ms: int) -> None:
        """Record how the operation ended."""
        self._append({"end": end, "at_ms": at_ms})
        self._end(end)

    def _end(self, end: End) -> None:
        self.end = end
        if end not in {"applied", PRUNED}:
            # Nothing of the operation is left, also of those actions that have no inverse of their own.
            self._states.clear()
            self._facts.clear()

    def _append(self, record: Mapping[str, Any]) -> None:
        line = (json.dumps(record, sort_keys=True) + "\n").encode()
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+b") as file:
            # What follows the last line break was being written when the process was killed, and was never acted on.
            file.truncate(self._whole)
            file.seek(self._whole)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self._whole += len(line)

    def _read(self) -> None:
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return
        self._whole = content.rfind(b"\n") + 1
        for line in content[: self._whole].splitlines():
            self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            record = json.loads(line)
            if "step" in record:
                raise self._of_another_release()
            self.started_ms = int(record["at_ms"]) if self.started_ms is None else self.started_ms
            if "end" in record:
                self._end(ENDS[ENDS.index(record["end"])])
                return
            index, state = int(record["index"]), STATES[STATES.index(record["state"])]
            facts = dict(record.get("facts") or {})
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise FormatError(
                "journal-damaged",
                "The journal of an operation cannot be parsed",
                where=str(self._path),
                expected="a line of JSON for each step",
                found=repr(line[:80]),
                hint="restore the file from a backup; nothing was changed",
            ) from error
        self._states[index] = state
        self.end = None
        if facts:
            self._facts[index] = facts

    def _of_another_release(self) -> Refused:
        return Refused(
            "journal-version",
            "The operation was started by an earlier release, whose journal this one cannot continue",
            where=str(self._path),
            expected="a line for each action by its index",
            found="a line for each kind of step",
            hint="finish or undo it with the release that started it; nothing was changed",
        )
