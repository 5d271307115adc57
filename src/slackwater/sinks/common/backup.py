"""What all cuts share: the record that a cut makes durable before it changes anything, and refusals of a backup."""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from slackwater.core.errors import Refused
from slackwater.core.sink import after_batch
from slackwater.storage.open import local_path_of
from slackwater.storage.protocols import LEFTOVER, ReadStore, WriteStore

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

R = TypeVar("R", bound="DataclassInstance")


@dataclass(frozen=True, slots=True)
class RecordFile(Generic[R]):
    """The file of an operation's backup with the record of its cut, a dataclass of type ``kind``.

    ``alone``: the backup has nothing else, so that other files show that the record was lost.
    """

    name: str
    schema: str
    kind: type[R]
    alone: bool = False

    def write(self, backup: WriteStore, record: R) -> None:
        """Make the record durable."""
        document = {"schema": self.schema, **asdict(record)}
        backup.write(self.name, json.dumps(document, indent=1, ensure_ascii=False).encode())

    def read(self, backup: ReadStore) -> R | None:
        """The record of a cut that was started, ``None`` if none was. Raises Refused (``backup-damaged``)."""
        try:
            data = backup.read(self.name)
        except FileNotFoundError:
            if self.alone and any(not entry.name.startswith(".") for entry in backup.list()):
                raise self._damaged(backup, "no file") from None
            return None
        from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - heavy; only apply and undo pay for it

        try:
            fields = json.loads(data)
            if not isinstance(fields, dict) or fields.pop("schema", None) != self.schema:
                raise self._damaged(backup, "another document")
            # From JSON and not from the fields: in strict mode pydantic takes a list for a tuple only there.
            return TypeAdapter(self.kind).validate_json(json.dumps(fields), strict=True)
        except (ValueError, RecursionError, ValidationError) as error:
            raise self._damaged(backup, repr(data[:60])) from error

    def _damaged(self, backup: ReadStore, found: str) -> Refused:
        return damaged(f"{backup.location}/{self.name}", self.schema, found)


def damaged(where: str, expected: str, found: str) -> Refused:
    """The refusal of a backup; ``where`` is the file or table of it that is not as the cut left it."""
    return Refused(
        "backup-damaged",
        "A part of the operation's backup is missing or damaged; nothing was changed",
        where=where,
        expected=expected,
        found=found,
        hint="restore it from a copy and run the command again",
    )


def is_at(recorded: str, location: str) -> bool:
    """Whether an output that was recorded at a place is the one at ``location``: it may be behind a link by now."""
    local = local_path_of(recorded)
    return location in {recorded, os.path.realpath(local) if local is not None else None}


def check_writable(store: WriteStore, *folders: str) -> None:
    """Raises Refused (``folder-read-only``) unless this user can create and remove files in folders of an output.

    On a local disk nothing is written: the system is asked. Where a folder does not exist, its parent counts.
    """
    root = store.local_path("")
    if root is None:
        # Spark ignores this name, also where a kill leaves the file behind.
        probe = f".{uuid.uuid4()}{LEFTOVER}"
        try:
            store.write(probe, b"")
            store.delete(probe)
        except PermissionError as error:
            raise read_only(store.location, str(error)) from error
    else:
        check_folders_writable(*(Path(root, folder) for folder in folders))


def check_removable(store: ReadStore) -> None:
    """Raises Refused (``folder-read-only``) unless this user can remove the folder of a store, if it is there.

    Other stores than local disks are not asked: there is no right to write but that of the whole.
    """
    root = store.local_path("")
    if root is not None and Path(root).is_dir():
        check_folders_writable(Path(root).parent, *(Path(one) for one, _, _ in os.walk(root)))


def check_folders_writable(*folders: Path) -> None:
    """Check directories of this machine for write access."""
    for folder in folders:
        existing = next((one for one in (folder, *folder.parents) if one.is_dir()), folder)
        # With the rights that the process has now, as far as the system can tell.
        effective = os.access in os.supports_effective_ids
        if not os.access(existing, os.W_OK | os.X_OK, effective_ids=effective):
            raise read_only(str(existing), "no write permission, or a file system that is read-only")


def read_only(where: str, found: str) -> Refused:
    """The refusal of a folder that would have to be changed and cannot be."""
    return Refused(
        "folder-read-only",
        "A folder that has to be changed cannot be written to; nothing was changed",
        where=where,
        expected="a folder that this user can write to",
        found=found,
        hint="give this user write permission, or use the account that the stream runs as, and run the command again",
    )


def foreign(location: str, expected: str, found: str) -> Refused:
    """The refusal of a backup that another operation made, or this one from another output than ``location``."""
    return Refused(
        "backup-foreign",
        "The backup was made by another operation or from another output",
        where=location,
        expected=expected,
        found=found,
        hint="nothing was changed; restore the operation's own backup folder, then run the command again",
    )


def foreign_cut(location: str, after: int, found: str) -> Refused:
    """The refusal of a backup of another cut than the one of the output at ``location`` after batch ``after``."""
    return foreign(location, f"a cut of {location} {after_batch(after)}", found)
