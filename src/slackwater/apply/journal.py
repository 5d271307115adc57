"""The journal of one operation: a line before each step and one after it, on disk before anything happens."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Literal

from slackwater.errors import FormatError

State = Literal["begun", "done"]
JOURNAL = "journal.jsonl"


class Journal:
    """``journal.jsonl`` in an operation's folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / JOURNAL
        self._states = self._read()

    def state(self, step: str) -> State | None:
        """How far a step came in this or an earlier, killed apply."""
        return self._states.get(step)

    def write(self, step: str, state: State, at_ms: int) -> None:
        """Record a step. It is on the disk when this returns."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, "state": state, "at_ms": at_ms}) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._states[step] = state

    def _read(self) -> dict[str, State]:
        if not self._path.exists():
            return {}
        lines = self._path.read_text(encoding="utf-8").split("\n")
        # Killed while it wrote: what follows the last line break was never acted on.
        return dict(self._parse(line) for line in lines[:-1])

    def _parse(self, line: str) -> tuple[str, State]:
        try:
            record = json.loads(line)
            return record["step"], record["state"]
        except (ValueError, KeyError, TypeError) as error:
            raise FormatError(
                "journal-damaged", "An operation's journal does not read", where=str(self._path)
            ) from error
