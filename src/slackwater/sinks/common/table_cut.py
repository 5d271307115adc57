"""The cut of a table that keeps its older versions, and its undo: one state machine for every format of tables.

A cut is one commit, recorded in the backup before it is made. The table then shows what has become of it (see
``TableState``). So a cut or an undo that was interrupted at any point finds out where it was, and one that would
overwrite changes of others is refused. No data file is deleted: until the format's own cleaning deletes them, the
version before the cut can be the newest one again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, Literal, TypeVar

from slackwater.core.commands import command
from slackwater.core.errors import Refused
from slackwater.core.sink import Cut, after_batch
from slackwater.core.strict import STRICT
from slackwater.sinks.common.backup import RecordFile, foreign_cut, is_at
from slackwater.storage.protocols import WriteStore

TableState = Literal["whole", "cut", "uncut", "cut-changed", "other"]
"""``whole`` as before the cut, ``cut`` as after it; ``uncut`` and ``cut-changed`` with changes of others since.

``other``: the stream itself has written since the cut, or what the table is cannot be determined.
"""


@dataclass(frozen=True, slots=True)
class CutRecord(ABC):
    """A cut of the table at ``output`` that is about to start: back to batch ``after``, from ``last``, the newest."""

    __pydantic_config__: ClassVar = STRICT

    output: str
    after: int
    last: int

    @property
    @abstractmethod
    def planned_version(self) -> str:
        """The version of the table that the cut was worked out from, as in ``Cut.version``."""


R = TypeVar("R", bound=CutRecord)
V = TypeVar("V")


class CutTable(ABC, Generic[R, V]):
    """The part of an output that cuts its table. ``V`` is what a commit has to follow: the version that was checked."""

    cut_records: RecordFile[R]
    version_noun: ClassVar[str] = "version"

    @property
    @abstractmethod
    def location(self) -> str:
        """Where the table is."""

    @abstractmethod
    def _planned_cut(self, after: int) -> tuple[Cut, R | None]:
        """What the batches after one wrote, with the record of their cut; ``None`` where there is nothing to cut.

        Raises Refused where the table cannot be cut there.
        """

    @abstractmethod
    def _newest_version(self, record: R) -> V:
        """The version that the table has now. Raises Refused where no commit can follow it."""

    @abstractmethod
    def _state(self, record: R, version: V) -> TableState:
        """What this version is."""

    @abstractmethod
    def _delete_batches(self, record: R, version: V) -> None:
        """Commit the cut after this version. Raises Refused (``output-changed``) where another writer was faster."""

    @abstractmethod
    def _restore(self, record: R, version: V) -> None:
        """Commit the rows of before the cut after this version. Raises Refused."""

    @abstractmethod
    def _check_restorable(self, record: R, version: V) -> None:
        """Raises Refused if ``_restore`` would: files were deleted, or the table cannot be written to."""

    @abstractmethod
    def _changed(self, record: R, code: str) -> Refused:
        """The refusal of a table that something else has changed since the cut was planned."""

    def cut_after(self, batch: int, _recorded: Mapping[int, str]) -> Cut:
        return self._planned_cut(batch)[0]

    def cut(self, cut: Cut, _recorded: Mapping[int, str], backup: WriteStore) -> None:
        found = self._recorded_cut(cut, backup)
        if found is None or found[2] == "uncut":
            # Where another writer was faster than a cut that was recorded, nothing was cut: it is checked again.
            found = self._start_cut(cut, backup)
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

    def _start_cut(self, cut: Cut, backup: WriteStore) -> tuple[R, V, TableState] | None:
        """Record the cut, for the version that the table has now; ``None`` where there is nothing to cut."""
        expected, record = self._planned_cut(cut.after)
        if cut != expected:
            raise self._mismatch(cut, expected)
        if record is None:
            return None
        self.cut_records.write(backup, record)
        # The state is determined again, as another writer may have committed since the cut was worked out.
        return self._recorded_cut(cut, backup)

    def _recorded_cut(self, cut: Cut, backup: WriteStore) -> tuple[R, V, TableState] | None:
        """The record, the newest version and what that is. ``None``: the cut has recorded and removed nothing."""
        record = self.cut_records.read(backup)
        if record is None:
            return None
        self._check_own(record, cut)
        version = self._newest_version(record)
        return record, version, self._state(record, version)

    def _cut_to_restore(self, cut: Cut, backup: WriteStore) -> tuple[R, V] | None:
        """The record of a cut that the table shows, and its newest version; ``None``: not made, or restored."""
        found = self._recorded_cut(cut, backup)
        if found is None or found[2] in {"whole", "uncut"}:
            return None
        record, version, state = found
        if state != "cut":
            raise self._changed(record, "restore-conflict")
        return record, version

    def _check_own(self, record: R, cut: Cut) -> None:
        """Raises Refused (``backup-foreign``) if the record belongs to another cut or to another output."""
        last = cut.batches[-1] if cut.batches else None
        same = (record.after, record.last, record.planned_version) == (cut.after, last, cut.version)
        if not same or not is_at(record.output, self.location):
            raise foreign_cut(self.location, cut.after, f"a cut of {record.output} {after_batch(record.after)}")

    def _mismatch(self, cut: Cut, expected: Cut) -> Refused:
        return Refused(
            "cut-mismatch",
            f"The table does not have the same files and {self.version_noun} {after_batch(cut.after)} as the cut",
            where=self.location,
            expected=f"{len(expected.files)} files, {self.version_noun} {expected.version}",
            found=f"{len(cut.files)} files, {self.version_noun} {cut.version}",
            hint=f"make a new plan: {command('plan', 'rebuild', 'STREAM')}",
        )
