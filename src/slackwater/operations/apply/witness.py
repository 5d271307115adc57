"""The backup of an operation, with the hashes of its records in the journal.

A cut or a swap makes its record durable before it changes anything (``sinks/common/changes``). Each record's hash is
journaled before the call that writes it returns. So a record without a journaled hash was never used, and a journaled
record must be there unchanged before anything is undone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from slackwater.operations.action import Action
from slackwater.operations.apply.operation import BACKUP, Operation
from slackwater.sinks.common.changes import damaged
from slackwater.storage.below import Below
from slackwater.storage.protocols import WriteStore

BACKUP_FACT = "backup"
"""The last record counts, but a kill may have left the record before it."""

_Hashes = Mapping[str, list[str]]


class WitnessedBackup(Below):
    def __init__(self, operation: Operation, action: Action) -> None:
        super().__init__(operation.files, BACKUP)
        self._operation = operation
        self._action = action
        self._index = operation.index_of(action)

    def write(self, path: str, data: bytes) -> None:
        """Copies of files, hashed in records, come in pieces."""
        known = hashes_of(self._operation, self._index).get(path, [])
        digest = hashlib.sha256(data).hexdigest()
        if known:
            # It is replaced: until it is durable, the one before counts.
            self._journal(path, [*known, digest])
            self.write_pieces(path, (data,))
        else:
            self.write_pieces(path, (data,))
            self._journal(path, [digest])

    def _journal(self, path: str, hashes: list[str]) -> None:
        operation = self._operation
        facts = operation.journal.facts(self._index)
        backup = {**hashes_of(operation, self._index), path: hashes}
        facts = {**facts, BACKUP_FACT: backup}
        operation.journal.write(self._index, self._action.kind, "started", operation.ledger.now_ms(), facts)


def hashes_of(operation: Operation, index: int) -> _Hashes:
    found: _Hashes = operation.journal.facts(index).get(BACKUP_FACT, {})
    return found


def backup_for(operation: Operation, action: Action) -> WriteStore:
    """Raises Refused (``backup-damaged``) if it was changed. Leftovers without a journaled hash are written again."""
    index = operation.index_of(action)
    if operation.is_recorded and not hashes_of(operation, index):
        backup = operation.backup
        for folder in list(backup.folders()):
            for name in folder.files:
                backup.delete(f"{folder.path}/{name}".lstrip("/"))
    check_records(operation, index)
    return WitnessedBackup(operation, action)


def changed_nothing(operation: Operation, index: int) -> bool:
    return operation.is_recorded and not hashes_of(operation, index)


def check_started(operation: Operation, action: Action) -> None:
    """Raises Refused (``backup-damaged``) if a record has changed."""
    index = operation.index_of(action)
    if operation.journal.state(index) == "started":
        check_records(operation, index)


def check_records(operation: Operation, index: int) -> None:
    backup = operation.backup
    for path, hashes in hashes_of(operation, index).items():
        try:
            found = hashlib.sha256(backup.read(path)).hexdigest()
        except (OSError, ValueError):
            found = "no file"
        if found not in hashes:
            raise damaged(f"{backup.location}/{path}", f"sha256 {hashes[-1]}", found)
