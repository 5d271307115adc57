"""Reversible cuts and swaps of an output, durably recorded first.

``CutTable`` cuts any table format that keeps older versions. Each cut is a commit; the table then shows its
``TableState``, so interrupted cuts and undos can resume, and overwriting others' changes is refused. No data file is
deleted: until the format's own cleaning, the old version can be restored.
"""

import json
import os
import uuid
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, Literal, TypeVar

from slackwater.core.checkpoint import NONE_YET, Damage
from slackwater.core.commands import command
from slackwater.core.errors import Refused
from slackwater.core.sink import STRICT, Cut, Owner, Swap, after_batch, newest_batch
from slackwater.sinks.common.contract import LogEntries, Output
from slackwater.storage.open import local_path_of
from slackwater.storage.protocols import LEFTOVER, ReadStore, WriteStore

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


R = TypeVar("R", bound="DataclassInstance")


@dataclass(frozen=True, slots=True)
class RecordFile(Generic[R]):
    """A cut's record in the backup. ``alone``: any other file in the backup shows that the record was lost."""

    name: str
    schema: str
    kind: type[R]
    alone: bool = False

    def write(self, backup: WriteStore, record: R) -> None:
        document = {"schema": self.schema, **asdict(record)}
        backup.write(self.name, json.dumps(document, indent=1, ensure_ascii=False).encode())

    def read(self, backup: ReadStore) -> R | None:
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
                raise self._damaged(backup, "a different document")
            # From JSON and not from the fields: in strict mode pydantic takes a list for a tuple only there.
            return TypeAdapter(self.kind).validate_json(json.dumps(fields), strict=True)
        except (ValueError, RecursionError, ValidationError) as error:
            raise self._damaged(backup, repr(data[:60])) from error

    def _damaged(self, backup: ReadStore, found: str) -> Refused:
        return damaged(f"{backup.location}/{self.name}", self.schema, found)


def damaged(where: str, expected: str, found: str) -> Refused:
    return Refused(
        "backup-damaged",
        "A part of the operation's backup is missing or damaged; nothing was changed",
        where=where,
        expected=expected,
        found=found,
        hint="restore it from a copy and run the command again",
    )


def is_at(recorded: str, location: str) -> bool:
    """Return whether the output is at the location, possibly through a link."""
    local = local_path_of(recorded)
    return location in {recorded, os.path.realpath(local) if local is not None else None}


def check_writable(store: WriteStore, *folders: str) -> None:
    """Raises Refused (``folder-read-only``) for a folder that cannot be written.

    Asks the system on a local disk, without writing. A missing folder's parent counts.
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
    """Raises Refused (``folder-read-only``) for files that cannot be removed.

    Only local disks are asked: other stores only have rights for the whole.
    """
    root = store.local_path("")
    if root is not None and Path(root).is_dir():
        check_folders_writable(Path(root).parent, *(Path(one) for one, _, _ in os.walk(root)))


def check_folders_writable(*folders: Path) -> None:
    for folder in folders:
        existing = next((one for one in (folder, *folder.parents) if one.is_dir()), folder)
        # With the rights that the process has now, as far as the system can tell.
        effective = os.access in os.supports_effective_ids
        if not os.access(existing, os.W_OK | os.X_OK, effective_ids=effective):
            raise read_only(str(existing), "no write permission, or a file system that is read-only")


def read_only(where: str, found: str) -> Refused:
    return Refused(
        "folder-read-only",
        "A folder that has to be changed cannot be written to; nothing was changed",
        where=where,
        expected="a folder that this user can write to",
        found=found,
        hint="give this user write permission, or use the account that the stream runs as, and run the command again",
    )


def foreign(location: str, expected: str, found: str) -> Refused:
    return Refused(
        "backup-foreign",
        "The backup belongs to a different operation or output",
        where=location,
        expected=expected,
        found=found,
        hint="nothing was changed; restore the operation's own backup folder, then run the command again",
    )


def foreign_cut(location: str, after: int, found: str) -> Refused:
    return foreign(location, f"a cut of {location} {after_batch(after)}", found)


TableState = Literal["whole", "cut", "uncut", "cut-changed", "other"]
"""``whole`` as before the cut, ``cut`` as after it; ``uncut`` and ``cut-changed`` with changes of others since.

``other``: the stream itself has written since the cut, or the table's state cannot be determined.
"""


@dataclass(frozen=True, slots=True)
class CutRecord:
    """A cut about to start, from batch ``last`` (the newest) back to ``after``, of the rows that ``writer`` wrote.

    ``writer`` is the id under which the table knows the stream. The cut goes from ``version``, or snapshot, to the rows
    of ``target``; ``None``: Delta removes files instead, Iceberg goes back to before the first snapshot.
    """

    __pydantic_config__: ClassVar = STRICT

    output: str
    after: int
    last: int
    writer: str
    version: int | None
    target: int | None


V = TypeVar("V")


class CutTable(Output, Generic[V]):
    """Cuts an output's table. ``V`` is the checked version that a commit follows."""

    cut_records: RecordFile[CutRecord]
    version_noun: ClassVar[str] = "version"
    is_filled_by_spark: ClassVar[bool] = False
    """Spark's own writer fills a staged table, which must exist; the program claims no table."""

    @property
    @abstractmethod
    def location(self) -> str: ...

    @abstractmethod
    def _planned_cut(self, after: int) -> tuple[Cut, CutRecord | None]:
        """The cut, or ``None`` without such batches. Raises Refused if the table cannot be cut there."""

    @abstractmethod
    def _newest_version(self, record: CutRecord) -> V:
        """The newest version. Raises Refused if no commit can follow it."""

    @abstractmethod
    def _state(self, record: CutRecord, version: V) -> TableState: ...

    @abstractmethod
    def _delete_batches(self, record: CutRecord, version: V) -> None:
        """Raises Refused (``output-changed``) if a different writer was faster."""

    @abstractmethod
    def _restore(self, record: CutRecord, version: V) -> None:
        """Commit the rows from before the cut. Raises Refused."""

    @abstractmethod
    def _check_restorable(self, record: CutRecord, version: V) -> None:
        """Raises Refused if ``_restore`` would: files were deleted, or the table is read-only."""

    @abstractmethod
    def _changed(self, record: CutRecord, code: str) -> Refused: ...

    def cut_after(self, batch: int, _recorded: LogEntries) -> Cut:
        return self._planned_cut(batch)[0]

    def cut(self, cut: Cut, _recorded: LogEntries, backup: WriteStore) -> None:
        found = self._recorded_cut(cut, backup)
        if found is None or found[2] == "uncut":
            # Where another writer was faster than a cut that was recorded, nothing was cut: it is checked again.
            expected, planned = self._planned_cut(cut.after)
            if cut != expected:
                raise Refused(
                    "cut-mismatch",
                    f"The table does not have the same files and {self.version_noun} {after_batch(cut.after)} as "
                    "the cut",
                    where=self.location,
                    expected=f"{len(expected.files)} files, {self.version_noun} {expected.version}",
                    found=f"{len(cut.files)} files, {self.version_noun} {cut.version}",
                    hint=f"make a new plan: {command('plan', 'rebuild', 'STREAM')}",
                )
            if planned is None:
                return
            self.cut_records.write(backup, planned)
            # The state is determined again, as another writer may have committed since the cut was worked out.
            found = self._recorded_cut(cut, backup)
        if found is None:
            return
        record, version, state = found
        if state in {"other", "uncut"}:
            raise self._changed(record, "output-changed")
        if state == "whole":
            self._delete_batches(record, version)

    def check_restore(self, cut: Cut, backup: WriteStore) -> None:
        found = self._cut_to_restore(cut, backup)
        if found is not None:
            self._check_restorable(*found)

    def restore(self, cut: Cut, backup: WriteStore) -> None:
        found = self._cut_to_restore(cut, backup)
        if found is not None:
            self._restore(*found)

    def _recorded_cut(self, cut: Cut, backup: WriteStore) -> tuple[CutRecord, V, TableState] | None:
        record = self.cut_records.read(backup)
        if record is None:
            return None
        last = cut.batches[-1] if cut.batches else None
        same = (record.after, record.last, str(record.version)) == (cut.after, last, cut.version)
        if not same or not is_at(record.output, self.location):
            raise foreign_cut(self.location, cut.after, f"a cut of {record.output} {after_batch(record.after)}")
        version = self._newest_version(record)
        return record, version, self._state(record, version)

    def _cut_to_restore(self, cut: Cut, backup: WriteStore) -> tuple[CutRecord, V] | None:
        found = self._recorded_cut(cut, backup)
        if found is None or found[2] in {"whole", "uncut"}:
            return None
        record, version, state = found
        if state != "cut":
            raise self._changed(record, "restore-conflict")
        return record, version


_AGAIN = "nothing was changed; undo the operation and make a new plan"


@dataclass(frozen=True, slots=True)
class SwapRecord:
    """A swap about to start; ``version`` is -1 for an output without versions.

    It is Iceberg's snapshot or PostgreSQL's newest batch. ``state`` identifies rows without versions. ``left`` are
    staged files of no batch.
    """

    __pydantic_config__: ClassVar = STRICT

    output: str
    operation: str
    stream_id: str
    replaced: int
    version: int = -1
    state: str = ""
    left: tuple[str, ...] | None = None


RECORD = RecordFile("swap.json", "slackwater.swap/1", SwapRecord)


def start(backup: WriteStore, location: str, swap: Swap, version: int = -1) -> SwapRecord:
    """Record the swap durably unless it is recorded. Raises Refused (``backup-foreign``)."""
    return started(backup, location, swap) or record(backup, location, swap, version)


def record(
    backup: WriteStore,
    location: str,
    swap: Swap,
    version: int = -1,
    *,
    state: str = "",
    left: tuple[str, ...] | None = None,
) -> SwapRecord:
    made = SwapRecord(location, swap.operation, swap.stream_id, swap.replaced, version, state, left)
    RECORD.write(backup, made)
    return made


def started(backup: ReadStore, location: str, swap: Swap) -> SwapRecord | None:
    """The recorded swap, ``None`` if not started. Raises Refused (``backup-foreign``)."""
    known = RECORD.read(backup)
    expected = (swap.operation, swap.stream_id, swap.replaced)
    same = known is None or (known.operation, known.stream_id, known.replaced) == expected
    if known is None or (same and is_at(known.output, location)):
        return known
    found = f"operation {known.operation} of {known.output}"
    raise foreign(location, f"operation {swap.operation} of {location}", found)


def check_swap(
    output: Output,
    swap: Swap,
    state: str | None,
    nothing: str,
    *,
    damage: Iterable[Damage] | None = None,
    where: str | None = None,
    by_program: bool = False,
) -> None:
    """Raises Refused unless the operation's output is staged and whole, with the expected batches replaced.

    The stream must own both outputs; with ``by_program`` nobody may own the real one, which the program never claims.
    ``where`` is the place of ``damage``, by default of the staged output.
    """
    staged, location = output.staged(swap.operation), str(output.location)
    if state != "staged":
        raise absent(str(staged.location), swap.operation, state or nothing)
    check_whole(where or str(staged.location), list(staged.damage("all") if damage is None else damage))
    program = Owner(swap.stream_id, "", "")
    owners = (output.owner() or program, program) if by_program else (output.owner(), staged.owner())
    for owner in owners:
        if owner is None or owner.stream_id != swap.stream_id:
            raise Refused(
                "swap-foreign",
                "The output or its staged output does not belong to this stream",
                where=location,
                expected=f"the owner {swap.stream_id} of both",
                found="no owner" if owner is None else f"stream {owner.stream} of home {owner.home}",
                hint=_AGAIN,
            )
    newest = output.last_written()
    if newest != swap.replaced:
        raise Refused(
            "swap-moved",
            "Other batches were written to the output or cut since the swap was planned",
            where=location,
            expected=f"{newest_batch(swap.replaced)} as the newest",
            found=newest_batch(NONE_YET if newest is None else newest),
            hint=_AGAIN,
        )


def check_unmoved(location: str, swap: Swap, version: str) -> None:
    if swap.version not in {None, version}:
        raise Refused(
            "swap-moved",
            "Other writers changed the output after the swap was planned: their rows would be lost",
            where=location,
            expected=swap.version,
            found=version,
            hint=_AGAIN,
        )


def check_whole(location: str, damage: Sequence[Damage]) -> None:
    if damage:
        raise Refused(
            "staged-damaged",
            "The staged output is damaged",
            where=f"{location}/{damage[0].path}",
            expected=damage[0].expected,
            found=damage[0].found,
            hint=_AGAIN,
        )


def absent(location: str, operation: str, found: str) -> Refused:
    return Refused(
        "staged-absent",
        "The operation has no staged output that is ready",
        where=location,
        expected=f"the staged output of operation {operation}",
        found=found,
        hint=_AGAIN,
    )


def occupied(location: str, operation: str, found: str) -> Refused:
    return Refused(
        "staged-foreign",
        "The path of the staged output is occupied by something that the operation did not make",
        where=location,
        expected=f"the staged output of operation {operation}, or nothing",
        found=found,
        hint="move it away and run the command again; nothing was changed",
    )


def incomplete(location: str, expected: str, found: str) -> Refused:
    return Refused(
        "stage-incomplete",
        "The output lacks rows that the staged output must start with",
        where=location,
        expected=expected,
        found=found,
        hint="replay from an older batch, or from batch 0, which does not need the output",
    )


def unsupported(location: str, expected: str, found: str) -> Refused:
    return Refused(
        "swap-unsupported",
        "This output cannot be replaced by a staged one",
        where=location,
        expected=expected,
        found=found,
        hint="change the output as expected, or make a plan that cuts it instead",
    )
