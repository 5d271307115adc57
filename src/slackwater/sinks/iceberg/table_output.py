"""An Iceberg table as a stream's output: newest batch, damage, cuts, swaps.

Directories and catalogs differ only in ``IcebergTable``, which keeps the newest version.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial

from slackwater.core.checkpoint import NONE_YET, Damage, Depth
from slackwater.core.errors import FormatError, Refused, SinkUnreadable
from slackwater.core.sink import NO_OTHERS, Cut, Owner, Swap, newest_batch
from slackwater.sinks.common.changes import (
    CutRecord,
    CutTable,
    TableState,
    check_swap,
    check_unmoved,
    incomplete,
    record,
    started,
    unsupported,
)
from slackwater.sinks.common.contract import LogEntries, LostMarker, SwapPart, uncuttable
from slackwater.sinks.common.directory import size_damage
from slackwater.sinks.common.problem import not_readable_yet
from slackwater.sinks.iceberg import changes
from slackwater.sinks.iceberg.changes import (
    branch_state,
    check_alone,
    epoch_of,
    others_in,
    replaced_branch,
    snapshots_after,
    span_after,
    staged_branch,
    state_of,
)
from slackwater.sinks.iceberg.metadata import (
    FOLDER,
    MAIN,
    IcebergFile,
    IcebergTable,
    Metadata,
    MetadataChange,
    TableMark,
    change_of,
    epochs,
    lineage,
    written,
)
from slackwater.storage.protocols import WriteStore

ATTEMPTS = 20
"""How many commits of other writers an independent commit tries to follow before it fails."""


class IcebergTableOutput(CutTable[Metadata]):
    """A table's main branch, or an operation's staged branch."""

    cut_records = changes.RECORD
    version_noun = "snapshot"

    def __init__(self, branch: str, where: str, reader_path: str) -> None:
        self._branch = branch
        self._where = where
        self._reader_path = reader_path

    @property
    @abstractmethod
    def _table(self) -> IcebergTable:
        """The open table; reaches store or catalog only on reading."""

    @abstractmethod
    def _owner_in(self, metadata: Metadata) -> Owner | None: ...

    @abstractmethod
    def staged(self, operation: str) -> IcebergTableOutput: ...

    @property
    def location(self) -> str:
        return self._where if self._branch == MAIN else f"{self._where} (branch {self._branch})"

    @property
    def exists(self) -> bool:
        return self._newest() is not None

    def last_written(self) -> int:
        newest = self._newest()
        return -1 if newest is None else self._written(newest)

    def transactions(self, application: str) -> Mapping[str, int]:
        """The batches written by Iceberg's own sink for queries not run by Slackwater."""
        newest = self._newest()
        return {} if newest is None else epochs(newest, self._table.older(newest), application)

    def lost_marker(self, marked: int) -> LostMarker | None:
        # Copies lack marks, and properties can be removed, though a file has both.
        newest = self._newest()
        current = None if newest is None else newest.snapshots.get(newest.current or -1)
        has_rows = marked < 0 and current is not None and current.summary.get("total-records") != "0"
        return LostMarker("delete all rows of the table") if has_rows else None

    def stage(self, operation: str, after: int, _recorded: LogEntries) -> None:
        metadata = self._for_swap()
        if branch_state(metadata, operation) is not None:
            return
        stream = self._stream(metadata)
        if stream is None:
            raise unsupported(self.location, "a table that belongs to a stream", "no owner")
        last = self._written(metadata)
        if last < after:
            raise incomplete(self.location, f"batches up to {after}", f"{newest_batch(last)} as the newest")
        target = None
        if after >= 0:
            span = span_after(metadata, self._table.older(metadata), stream, after)
            check_alone(metadata.location, span)
            target = span.target
        mark = TableMark(stream, epoch_of(metadata), after, target)
        self._commit(metadata, changes.start(metadata, staged_branch(operation), mark))

    def swap_of(self, operation: str, stream_id: str, after: int = NONE_YET) -> Swap:
        metadata = self._newest()
        if metadata is None:
            return Swap(operation, stream_id, NONE_YET)
        older = self._table.older
        # With older batches an output is staged only where nobody else has written since.
        others = others_in(metadata, older(metadata), self._stream(metadata)) if after == NONE_YET else NO_OTHERS
        state = state_of(metadata, older(metadata))
        return Swap(operation, stream_id, self._written(metadata), version=state, others=others)

    def whole(self, _recorded: LogEntries) -> Cut:
        """All rows; works even if snapshots before the first batch have expired, unlike a cut."""
        metadata = self._newest()
        if metadata is None or metadata.current is None:
            return Cut(NONE_YET, ())
        files, rows = self._files(metadata, metadata.current)
        batches = tuple(range(self._written(metadata) + 1))
        return Cut(NONE_YET, batches, tuple(file.path for file in files), sum(file.size for file in files), rows)

    def check_swap(self, swap: Swap, backup: WriteStore) -> None:
        self._check_swap(swap, backup, self._for_swap())

    def swap(self, swap: Swap, backup: WriteStore) -> None:
        metadata = self._for_swap()
        self._check_swap(swap, backup, metadata)
        if branch_state(metadata, swap.operation) == "staged":
            # Written again, as the branch may have other snapshots since a swap that was undone.
            record(backup, self.location, swap, metadata.branches[staged_branch(swap.operation)])
            older = self._table.older(metadata)
            self._commit(metadata, changes.swap_in(metadata, older, swap.operation, swap.stream_id))

    def check_swap_back(self, swap: Swap, backup: WriteStore) -> None:
        known = started(backup, self.location, swap)
        if known is not None and self._check_swap_back(swap, known.version, self._for_swap()):
            self._table.check_writable()

    def swap_back(self, swap: Swap, backup: WriteStore) -> None:
        known = started(backup, self.location, swap)
        if known is None:
            return  # The swap was interrupted before it recorded anything, so that nothing was changed.
        metadata = self._for_swap()
        if self._check_swap_back(swap, known.version, metadata):
            older = self._table.older(metadata)
            self._commit(metadata, changes.swap_back(metadata, older, swap.operation, swap.stream_id))

    def discard(self, operation: str, part: SwapPart) -> None:
        """Drop the branch; ``expire_snapshots`` deletes the files."""
        branch = staged_branch(operation) if part == "staged" else replaced_branch(operation)
        # The stream may be running when what it replaced is removed.
        self._follow(lambda newest: change_of({branch: None}) if branch_state(newest, operation) == part else None)

    def was_read(self, offsets: Iterable[str], cut: Cut) -> bool:
        places = set[int]()
        for offset in offsets:
            with suppress(ValueError, KeyError, TypeError):
                places.add(int(json.loads(offset)["snapshot_id"]))
        metadata = self._newest() if places else None
        if metadata is None:
            return False
        older = self._table.older(metadata)
        return not places.isdisjoint(snapshots_after(metadata, older, self._stream(metadata) or "", cut.after))

    def reader_path(self) -> str:
        if not self.exists:
            raise not_readable_yet("Iceberg", self._reader_path)
        return self._reader_path

    def _newest(self) -> Metadata | None:
        try:
            found = self._table.newest()
            metadata = None if found is None else found.on(self._branch)
        except FormatError as error:
            raise SinkUnreadable(
                "iceberg-unreadable",
                "The newest metadata of the Iceberg table is malformed",
                where=f"{self._where}/{error.where}",
                expected="table metadata of the Iceberg specification",
                found=error.found or error.message,
                hint="restore the file from a backup; Spark cannot read the table either",
            ) from error
        return metadata if metadata is not None and self._branch in {MAIN, *metadata.branches} else None

    def _for_swap(self) -> Metadata:
        """Raises Refused without a table, or if it is read-only."""
        metadata = self._newest()
        if metadata is None:
            raise unsupported(self.location, "an Iceberg table", "none")
        lack = self._table.lack(metadata)
        if lack is not None:
            raise unsupported(self.location, *lack)
        return metadata

    def _phase(self, metadata: Metadata, operation: str) -> SwapPart | None:
        return branch_state(metadata, operation)

    def _check_swap(self, swap: Swap, backup: WriteStore, metadata: Metadata) -> None:
        known, state = started(backup, self.location, swap), self._phase(metadata, swap.operation)
        if known is None or state != "replaced":
            by_program = self.is_filled_by_spark
            where, nothing = (None, "no table") if by_program else (self.location, "no such branch")
            check_swap(self, swap, state, nothing, where=where, by_program=by_program)
            check_unmoved(self.location, swap, state_of(metadata, self._table.older(metadata)))

    def _check_swap_back(self, swap: Swap, swapped: int, metadata: Metadata) -> bool:
        state = branch_state(metadata, swap.operation)
        if state == "replaced":
            changes.check_own(metadata, self._table.older(metadata), swap.stream_id, swapped)
            changes.check_kept(self.location, metadata, changes.replaced_mark(metadata, swap.operation).snapshot)
        elif state is None and self._written(metadata) != swap.replaced:
            raise changes.conflict(self.location, f"the branch {replaced_branch(swap.operation)}", "no such branch")
        return state == "replaced"

    def _follow(self, change_after: Callable[[Metadata], MetadataChange | None]) -> None:
        """Commit an independent change after the commits of other writers; ``None``: there is nothing to change."""
        for _ in range(ATTEMPTS):
            newest = self._newest()
            change = None if newest is None else change_after(newest)
            if newest is None or change is None:
                return
            with suppress(FileExistsError):
                self._table.commit(newest, change)
                return
        raise changes.moved(self.location)

    def _commit(self, base: Metadata, change: MetadataChange) -> None:
        try:
            self._table.commit(base, change)
        except FileExistsError as error:
            raise changes.moved(self.location) from error

    def _stream(self, metadata: Metadata) -> str | None:
        known = self._owner_in(metadata)
        if known is not None:
            return known.stream_id
        # The owner was deleted, or no stream has claimed the table: its property shows which stream wrote to it.
        return metadata.mark.stream if metadata.mark is not None else None

    def _written(self, metadata: Metadata) -> int:
        stream = self._stream(metadata)
        return -1 if stream is None else written(metadata, self._table.older(metadata), stream)

    def _newest_version(self, record: CutRecord) -> Metadata:
        metadata = self._newest()
        if metadata is None:
            raise self._changed(record, "output-changed")
        self._check_cuttable(metadata)
        return metadata

    def _check_cuttable(self, metadata: Metadata) -> None:
        lack = self._table.lack(metadata)
        if lack is not None:
            message = "The batches cannot be cut out of the Iceberg table: nothing can be committed to it without Spark"
            raise uncuttable(self.location, message, *lack)

    def _state(self, record: CutRecord, version: Metadata) -> TableState:
        older = self._table.older
        batch = written(version, older(version), record.writer)
        if (version.current, batch) == (record.version, record.last):
            return "whole"
        if (version.current, batch) == (record.target, record.after):
            return "cut"
        history = {identifier for identifier, _ in lineage(version, older(version))}
        # ``None``, the table before its first snapshot, is in every complete history and shows nothing.
        if record.version in history - {None}:
            return "uncut" if batch == record.last else "other"
        return "cut-changed" if batch == record.after and record.target in history else "other"

    def _delete_batches(self, record: CutRecord, version: Metadata) -> None:
        self._move(record, version, record.after, record.target)

    def _restore(self, record: CutRecord, version: Metadata) -> None:
        changes.check_kept(record.output, version, record.version)
        self._move(record, version, record.last, record.version)

    def _move(self, record: CutRecord, version: Metadata, batch: int, snapshot: int | None) -> None:
        # The next epoch refuses an earlier run that may be about to publish.
        mark = TableMark(record.writer, epoch_of(version) + 1, batch, snapshot)
        try:
            self._table.commit(version, change_of({version.branch: mark}))
        except FileExistsError as error:
            raise self._changed(record, "output-changed") from error

    def _check_restorable(self, record: CutRecord, version: Metadata) -> None:
        changes.check_kept(self.location, version, record.version)
        self._table.check_writable()

    def _changed(self, record: CutRecord, code: str) -> Refused:
        return Refused(
            code,
            "The Iceberg table was changed after the cut was planned; to continue would undo those changes",
            where=record.output,
            expected=f"snapshot {record.version} with batch {record.last}, or {record.target} with "
            f"{newest_batch(record.after)}",
            hint="find out in the table's history what has written to it (in Spark: SELECT * FROM TABLE.history), then "
            "make a new plan",
        )

    def _files(
        self, metadata: Metadata, one: int | None, other: int | None = None
    ) -> tuple[tuple[IcebergFile, ...], int | None]:
        """The files that one snapshot has and another lacks, and their rows; ``None`` if rows were replaced, too."""
        known = metadata.snapshots
        head, target = (None if number is None else known[number] for number in (one, other))
        added, removed = self._table.difference(metadata, head, target)
        replaced = removed or any(file.deletes for file in added)
        return added, None if replaced else sum(file.rows for file in added)

    def _planned_cut(self, after: int) -> tuple[Cut, CutRecord | None]:
        metadata = self._newest()
        stream = self._stream(metadata) if metadata is not None else None
        last = self._written(metadata) if metadata is not None else -1
        if metadata is None or stream is None or last <= after:
            return Cut(after, ()), None
        self._check_cuttable(metadata)
        span = span_after(metadata, self._table.older(metadata), stream, after)
        check_alone(self.location, span)
        files, rows = self._files(metadata, span.head, span.target)
        names, size = tuple(file.path for file in files), sum(file.size for file in files)
        cut = Cut(after, tuple(range(after + 1, last + 1)), names, size, rows, str(span.head))
        return cut, CutRecord(self.location, after, last, stream, span.head, span.target)

    def _damage(self, depth: Depth) -> Iterator[Damage]:
        try:
            found = self._table.newest()
        except FormatError as error:
            yield Damage(error.where or FOLDER, error.code, error.expected or "", error.found or "")
            return
        except OSError as error:
            yield Damage(FOLDER, "unreadable", "table metadata of the Iceberg specification", str(error))
            return
        metadata = found.on(self._branch) if found is not None else None
        current = next((one for _, one in lineage(metadata, iter(()))), None) if metadata is not None else None
        if metadata is None or current is None:
            return
        name = current.manifest_list.removeprefix(metadata.location.rstrip("/") + "/")
        try:
            self._table.size(metadata, name)
        except FileNotFoundError:
            yield Damage(name, "missing", f"the manifest list of snapshot {current.id}", "no file")
        else:
            if depth == "all":
                for file in self._files(metadata, current.id)[0]:
                    # Not a file elsewhere that was added to the table, nor one of a table that was moved.
                    if "://" not in file.path and not file.path.startswith(("/", "file:")):
                        yield from size_damage(partial(self._table.size, metadata), file.path, file.size)
