"""The journal of an operation: a line on the disk before and after each action.

Lines are keyed by the action's index, because a plan can repeat a kind. The ledger's copy gets each line first: a
deleted or short journal is restored from it, and a journal with different lines is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from slackwater.core.errors import FormatError
from slackwater.core.escaping import quoted
from slackwater.core.records import OperationFiles
from slackwater.storage.open import AnyLocation, Location, open_write_store

if TYPE_CHECKING:
    from slackwater.ledger.ledger import Ledger

State = Literal["started", "done", "undoing", "undone"]
End = Literal["applied", "pruned", "refused", "undone"]
STATES: tuple[State, ...] = ("started", "done", "undoing", "undone")
ENDS: tuple[End, ...] = ("applied", "pruned", "refused", "undone")
PRUNED: Literal["pruned"] = "pruned"
"""The operation can no longer be undone, because its backups were deleted."""
JOURNAL = "journal.jsonl"


def _facts(record: Mapping[str, Any]) -> dict[str, Any]:
    facts = dict(record.get("facts") or {})
    if not isinstance(facts.get("layout", {}), dict):
        raise TypeError(facts)
    return facts


class Journal:
    """``check_lease`` runs before each line: a process that lost its lease must neither write nor act. Raises
    FormatError (``journal-damaged``) if the journal cannot be parsed, or the copy has other lines.
    """

    def __init__(
        self, folder: AnyLocation, copies: Ledger | None = None, check_lease: Callable[[], None] | None = None
    ) -> None:
        self._folder = Location(folder)
        self._path = self._folder / JOURNAL
        self._store = open_write_store(self._folder, private=True)
        self._copies = copies
        self._check_lease = check_lease
        self.files = copies.operation_files(self._folder.name) if copies is not None else None
        self._states: dict[int, State] = {}
        self._facts: dict[int, Mapping[str, Any]] = {}
        self.end: End | None = None
        self.started_ms: int | None = None
        file = self._path.local
        if file is not None and file.is_symlink():
            # Lines that are written would be written to the file that it names.
            raise self._damaged("is a link", "a file of its own", f"a link to {file.readlink()}")
        content = self._content()
        self._lines = content[: content.rfind(b"\n") + 1]
        for line in self._lines.splitlines():
            self._take(line)
        known = self._lines if self.files is None else self.files.journal.encode()
        # The ledger has more lines if the file was deleted or cut short, or a kill came in between.
        if not known.startswith(self._lines):
            count = known.count(b"\n")
            raise self._damaged("was changed", f"the {count} lines that the ledger has recorded", "other or more lines")
        for line in known[len(self._lines) :].splitlines():
            self._take(line)
        self._lines = known

    def begin(self, files: OperationFiles) -> None:
        """Records the operation's files; lines of an earlier attempt stay."""
        if self._copies is not None:
            self.files = files._replace(journal=self._lines.decode())
            self._copies.record_operation_files(self.files)

    def state(self, index: int) -> State | None:
        """The action's state; ``None``: not started, or undone."""
        state = self._states.get(index)
        return None if state == "undone" else state

    @property
    def being_undone(self) -> bool:
        return self.end is None and not {"undoing", "undone"}.isdisjoint(self._states.values())

    @property
    def has_effect(self) -> bool:
        return any(state != "undone" for state in self._states.values())

    @property
    def in_progress(self) -> bool:
        return bool(self._states) and self.end is None

    def facts(self, index: int) -> Mapping[str, Any]:
        return self._facts.get(index, {})

    def write(self, index: int, kind: str, state: State, at_ms: int, facts: Mapping[str, Any] | None = None) -> None:
        """Records an action's state, which is on the disk when this returns."""
        self._append({"index": index, "kind": kind, "state": state, "at_ms": at_ms, "facts": dict(facts or {})})
        self._states[index] = state
        if facts:
            self._facts[index] = facts
        # An undo writes lines after the end of the apply, and a plan that was refused can be applied again.
        self.end = None

    def write_end(self, end: End, at_ms: int) -> None:
        self._append({"end": end, "at_ms": at_ms})
        self._end(end)

    def _end(self, end: End) -> None:
        self.end = end
        if end not in {"applied", PRUNED}:
            # Nothing of the operation is left, also of those actions that have no inverse of their own.
            self._states.clear()
            self._facts.clear()

    def _append(self, record: Mapping[str, Any]) -> None:
        if self._check_lease is not None:
            self._check_lease()
        lines = self._lines + (json.dumps(record, sort_keys=True) + "\n").encode()
        if self._copies is not None and self.files is not None:
            # First, so that no file has a line that the copy lacks.
            self._copies.record_journal(self._folder.name, lines.decode())
        if self._store.traits.append:
            # What follows the last line break was being written when the process was killed, and was never acted on.
            known = self._content().rfind(b"\n") + 1
            self._store.append(JOURNAL, lines[known:], known)
        else:
            # Whole: the lease allows one writer, and the ledger has each line before.
            self._store.write(JOURNAL, lines)
        self._lines = lines

    def _content(self) -> bytes:
        try:
            return self._store.read(JOURNAL)
        except FileNotFoundError:
            return b""

    def _take(self, line: bytes) -> None:
        try:
            record = json.loads(line)
            self.started_ms = int(record["at_ms"]) if self.started_ms is None else self.started_ms
            if "end" in record:
                self._end(ENDS[ENDS.index(record["end"])])
                return
            index, state = int(record["index"]), STATES[STATES.index(record["state"])]
            facts = _facts(record)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise self._damaged("cannot be parsed", "a line of JSON for each step", repr(line[:80])) from error
        self._states[index] = state
        self.end = None
        if facts:
            self._facts[index] = facts

    def _damaged(self, what: str, expected: str, found: str) -> FormatError:
        again = (
            "restore the file from a backup"
            if self.files is None
            else "if the ledger was restored from a backup, restore its newest one; else move the journal away, so "
            f"that it is written again from the ledger: {move_away(self._path)}"
        )
        return FormatError(
            "journal-damaged",
            f"The journal of an operation {what}; nothing was changed",
            where=str(self._path),
            expected=expected,
            found=found,
            hint=f"{again}; then run the command again",
        )


def move_away(file: Location) -> str:
    """The command that moves a damaged file away; words if it is not on a local disk."""
    if file.local is None:
        return f"rename {file} to {file.name}.damaged"
    return f"mv {quoted(str(file))} {quoted(f'{file}.damaged')}"
