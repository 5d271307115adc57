"""What all cuts share: the record that a cut makes durable before it changes anything, and refusals of a backup."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from slackwater.errors import Refused
from slackwater.storage.protocols import ReadStore, WriteStore

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


def foreign(location: str, after: int, found: str) -> Refused:
    """The refusal of a backup that is not that of the cut after batch ``after`` of the output at ``location``."""
    return Refused(
        "backup-foreign",
        "The backup was made by another cut or from another output",
        where=location,
        expected=f"a cut of {location} after batch {after}",
        found=found,
        hint="nothing was changed; restore the operation's own backup folder, then run the command again",
    )
