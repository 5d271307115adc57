"""The Delta sink, and its table as a stream's output.

Always a batch function, never Spark's native sink, which numbers transactions by query id. The query id is lost with
the checkpoint, so the next query would write batch 0 again and double its rows (docs/decisions/0110). Here the number
line is the stream's: the newest batch is from transactions under the stream's id, which the owner file records.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from slackwater.core.checkpoint import NONE_YET, Damage, Depth
from slackwater.core.errors import FormatError, Refused, SinkUnreadable
from slackwater.core.sink import CatalogueEntry, Cut, Identity, Owner, Swap, Traits, WriteContext, newest_batch
from slackwater.sinks.common import staging
from slackwater.sinks.common.batch_function import WriteBatch
from slackwater.sinks.common.changes import (
    CutRecord,
    CutTable,
    TableState,
    check_swap,
    check_unmoved,
    check_writable,
    damaged,
    incomplete,
    start,
    started,
    unsupported,
)
from slackwater.sinks.common.contract import LogEntries, LostMarker, Sink, SwapPart
from slackwater.sinks.common.directory import OWNER_FILE, DirectoryOutput, absolute, directory, marked_traits, path_of
from slackwater.sinks.common.problem import key_columns, not_readable_yet, option_strings, refuse_with_keys
from slackwater.sinks.common.staging import Place, staging_of
from slackwater.sinks.delta import changes
from slackwater.sinks.delta.changes import base_after, state_of
from slackwater.sinks.delta.log import FOLDER, DeltaLog, DeltaSpan, backwards, entry_path, written_by
from slackwater.sinks.delta.table import DeltaVersion, damaged_files, require_library
from slackwater.storage.protocols import WriteStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from slackwater.sinks.delta.writer import DeltaSparkTable


DELTA_TRAITS = marked_traits(
    "a batch's rows and number are one commit, and a batch whose number is in the log is skipped", cuts=True, swaps=True
)
APP_PREFIX = "slackwater-"
"""Prefix of streams' application ids."""


ENTRIES = (
    CatalogueEntry("delta", "delta(path)", DELTA_TRAITS, ("append", "complete"), rank=20),
    CatalogueEntry("delta", "delta(path, keys=...)", DELTA_TRAITS, ("append", "update"), rank=21),
)


def app_of(stream_id: str) -> str:
    return APP_PREFIX + stream_id


def _version(record: CutRecord) -> int:
    return -1 if record.version is None else record.version


def open_delta_output(identity: Identity) -> DeltaOutput:
    return DeltaOutput(path_of("delta", identity))


class DeltaOutput(DirectoryOutput, CutTable[int]):
    traits = DELTA_TRAITS
    cut_records = changes.RECORD

    @cached_property
    def _log(self) -> DeltaLog:
        return DeltaLog(self._store)

    @property
    def exists(self) -> bool:
        return self._log.versions().newest >= 0

    def last_written(self) -> int:
        app = self._app()
        if app is None:
            return -1
        versions = self._log.versions()
        for version in reversed(versions.commits):
            if version <= versions.checkpoint:
                break
            batches = self._batches(version)
            if app in batches:
                return batches[app]
        # A checkpoint repeats the transactions of all versions before it.
        return DeltaVersion(self.location).newest_batch(app) if versions.checkpoint >= 0 else -1

    def transactions(self, application: str) -> Mapping[str, int]:
        found: dict[str, int] = {}
        versions = self._log.versions()
        for version in versions.commits:
            # The newest commit counts, also where a cut has lowered the number in it.
            found |= self._batches(version)
        if application not in found and versions.checkpoint >= 0:
            newest = DeltaVersion(self.location).newest_batch(application)
            found |= {application: newest} if newest >= 0 else {}
        return found

    def lost_marker(self, marked: int) -> LostMarker | None:
        # Copies lack transactions, and a log may forget old ones.
        has_rows = marked < 0 and self.exists and DeltaVersion(self.location).sizes()
        return LostMarker("delete all rows of the table") if has_rows else None

    def relative_path(self, uri: str) -> str | None:
        name = self._place.relative_path(uri)
        return None if name is None or name.split("/")[0] in {FOLDER, OWNER_FILE, staging.MARK} else name

    def staged(self, operation: str) -> DeltaOutput:
        return DeltaOutput(str(self._staging(operation).folder))

    def stage(self, operation: str, after: int, _recorded: LogEntries) -> None:
        """The sink creates a staged table that starts empty, with the query's columns."""
        place = self._staging(operation)
        if place.start():
            if after >= 0 or self.exists:
                last, app = self.last_written(), self._app()
                if after >= 0 and (app is None or last < after):
                    raise incomplete(self.location, f"batches up to {after}", f"{newest_batch(last)} as the newest")
                table, files, _ = base_after(self.location, self._log, app, last, after)
                if after >= 0 or files:
                    changes.fill(place, app or "", after, table, files)
                elif self.is_filled_by_spark:
                    changes.fill(place, app or "", after, DeltaVersion(self.location), files)
            place.mark("staged")

    def swap_of(self, operation: str, stream_id: str, after: int = NONE_YET) -> Swap:
        written = self.last_written()
        if not self.exists:
            return Swap(operation, stream_id, written)
        _, _, others = base_after(self.location, self._log, self._app(), written, after)
        return Swap(operation, stream_id, written, version=state_of(self._log), others=others)

    def whole(self, _recorded: LogEntries) -> Cut:
        """All rows of the table, regardless of their writer and of the log."""
        if not self.exists:
            return Cut(NONE_YET, ())
        newest = DeltaVersion(self.location)
        sizes = newest.sizes()
        batches = tuple(range(self.last_written() + 1))
        return Cut(NONE_YET, batches, tuple(sizes), sum(sizes.values()), version=str(newest.number))

    def check_swap(self, swap: Swap, backup: WriteStore) -> None:
        record = started(backup, self.location, swap)
        if record is not None and changes.since_swap(self._log, record):
            return
        place, staged = self._staging(swap.operation), self.staged(swap.operation)
        if not self.exists:
            raise unsupported(self.location, "a Delta table", "none")
        state = "no table" if place.state == "staged" and not staged.exists else place.state
        check_swap(self, swap, state, "no folder", damage=staged.damage(), by_program=self.is_filled_by_spark)
        changes.check(place)
        check_unmoved(self.location, swap, state_of(self._log))

    def swap(self, swap: Swap, backup: WriteStore) -> None:
        # Read before the checks: a commit of another writer during them makes the commit of the swap fail.
        newest = self._log.versions().newest
        self.check_swap(swap, backup)
        record = start(backup, self.location, swap, newest)
        place, staged = self._staging(swap.operation), self.staged(swap.operation)
        if not changes.since_swap(self._log, record):
            changes.swap_in(place, self._app_of(swap), staged.last_written(), newest)
        if place.state == "staged":
            place.mark("replaced")

    def check_swap_back(self, swap: Swap, backup: WriteStore) -> None:
        record = started(backup, self.location, swap)
        commits = changes.since_swap(self._log, record) if record is not None else []
        if record is not None and not self.exists:
            raise damaged(self.location, f"a Delta table with version {record.version}", "no table")
        if commits:
            changes.check_own(self.location, commits, self._app_of(swap))
            changes.check_version_kept(self.location, commits[-1].version - 1, self._log.versions().newest)
            check_writable(self._store, FOLDER, "..")

    def swap_back(self, swap: Swap, backup: WriteStore) -> None:
        record = started(backup, self.location, swap)
        if record is None:
            return  # The swap was interrupted before it recorded anything, so that nothing was changed.
        newest = self._log.versions().newest
        place, commits = self._staging(swap.operation), changes.since_swap(self._log, record, newest)
        if commits:
            app = self._app_of(swap)
            changes.check_own(self.location, commits, app)
            changes.swap_back(place, commits[-1].version - 1, app, swap.replaced, newest)
        if place.state == "replaced":
            place.mark("staged")

    def filled_by(self, query_id: str, /) -> DeltaQueryTable:
        return DeltaQueryTable(self._path, query_id)

    def discard(self, operation: str, part: SwapPart) -> None:
        """Remove the folder; the table's earlier versions are kept until VACUUM."""
        self._staging(operation).discard(part)

    def was_read(self, offsets: Iterable[str], cut: Cut) -> bool:
        places = list[tuple[str, int]]()
        for offset in offsets:
            with suppress(ValueError, KeyError, TypeError):
                fields = json.loads(offset)
                table, version = str(fields["reservoirId"]), int(fields["reservoirVersion"])
                # A source that has read all of a version is at the next one with its lowest index (``DeltaSource``).
                has_read = int(fields["index"]) >= 0 or bool(fields["isStartingVersion"])
                places.append((table, version if has_read else version - 1))
        app = self._app()
        if not places or app is None:
            return False
        table_id = DeltaVersion(self.location).table_id
        versions = [version for table, version in places if table == table_id]
        if cut.after == NONE_YET or not versions:
            return bool(versions)
        return max(versions) > DeltaSpan(self._log, app, cut.after).target

    def reader_path(self) -> str:
        if not self.exists:
            raise not_readable_yet("Delta", self._path)
        return self._path

    def _newest_version(self, _record: CutRecord) -> int:
        return self._log.versions().newest

    def _state(self, record: CutRecord, version: int) -> TableState:
        # Compaction and VACUUM do not change it.
        newest, by_stream, by_others = version, False, False
        while newest > _version(record):
            try:
                commit = self._log.commit(newest)
            # Commits have been cleaned up (``delta.logRetentionDuration``): what they have changed is unknown.
            except FileNotFoundError:
                return "other"
            if (commit.note.get("cut"), commit.note.get("after")) == (_version(record), record.after):
                return "other" if by_stream else "cut-changed" if by_others else "cut"
            if commit.restores is None:
                by_stream = by_stream or record.writer in commit.batches
                by_others = by_others or commit.changes_table
            newest = newest - 1 if commit.restores is None else commit.restores
        if newest < _version(record):
            return "other"
        return "uncut" if by_stream or by_others else "whole"

    def _delete_batches(self, record: CutRecord, version: int) -> None:
        table, note = DeltaVersion(record.output, version), {"cut": _version(record), "after": record.after}
        try:
            if record.target is not None:
                table.restore(record.target, record.writer, record.after, note)
            else:
                # Again for the version that the commit follows: compaction since may have replaced these files.
                span = DeltaSpan(self._log, record.writer, record.after, version)
                changes.check_files_removable(record.output, span)
                files = (file for commit in span.own for file in commit.adds)
                table.commit(record.writer, record.after, note, remove=files)
        except FileExistsError as error:
            raise self._changed(record, "output-changed") from error

    def _restore(self, record: CutRecord, version: int) -> None:
        try:
            DeltaVersion(record.output, version).restore(_version(record), record.writer, record.last)
        except FileExistsError as error:
            raise self._changed(record, "output-changed") from error

    def _check_restorable(self, record: CutRecord, version: int) -> None:
        DeltaVersion(record.output, version).check_restorable(_version(record))
        for damage in damaged_files(self._store, DeltaVersion(record.output, _version(record)).sizes()):
            raise Refused(
                "delta-restore",
                f"The Delta table cannot be restored to version {_version(record)}: a file of it is missing or damaged",
                where=f"{record.output}/{damage.path}",
                expected=damage.expected,
                found=damage.found,
                hint="restore the file from a backup; if VACUUM has removed it, rebuild at the last written batch, "
                "which removes nothing",
            )
        check_writable(self._store, FOLDER)

    def _changed(self, record: CutRecord, code: str) -> Refused:
        since = (one for one in backwards(self._log, self._log.versions().newest) if one.version > _version(record))
        others = [commit for commit in since if record.writer not in commit.batches]
        return Refused(
            code,
            "The Delta table was changed after the cut was planned; to continue would undo those changes",
            where=record.output,
            expected=f"version {_version(record)}, or the one that the cut made of it",
            found=f"{written_by(others).text} of others since" if others else "batches of the stream since",
            hint="find out with DESCRIBE HISTORY what has written to the table, then make a new plan",
        )

    def _staging(self, operation: str) -> Place:
        return staging_of(self._path, operation)

    def _app_of(self, swap: Swap) -> str:
        return app_of(swap.stream_id)

    def _app(self) -> str | None:
        known = self.owner()
        if known is not None:
            return app_of(known.stream_id)
        # The mark was deleted, or no stream has claimed the table: its newest commits show which stream wrote them.
        for version in reversed(self._log.versions().commits):
            found = [app for app in self._batches(version) if app.startswith(APP_PREFIX)]
            if found:
                return found[0]
        return None

    def _batches(self, version: int) -> Mapping[str, int]:
        try:
            return self._log.batches(version)
        except FormatError as error:
            raise self._unreadable(error.where or FOLDER, error.found or error.message) from error
        except FileNotFoundError as error:
            raise self._unreadable(entry_path(version), "no file") from error

    def _unreadable(self, where: str, found: str) -> SinkUnreadable:
        return SinkUnreadable(
            "delta-log-unreadable",
            "The newest commit of the Delta table is malformed",
            where=f"{self.location}/{where}",
            expected="one JSON action in each line",
            found=found,
            hint="restore the file from a backup; Spark cannot read the table either",
        )

    def _planned_cut(self, after: int) -> tuple[Cut, CutRecord | None]:
        last, app = self.last_written(), self._app()
        if app is None or last <= after:
            return Cut(after, ()), None
        try:
            span = DeltaSpan(self._log, app, after)
        except FormatError as error:
            raise self._unreadable(error.where or FOLDER, error.found or error.message) from error
        if not span.by_restore:
            changes.check_files_removable(self.location, span)
        changes.check_writable(self.location, span)
        files = span.files()
        names = tuple(file.path for file in files)
        size = sum(file.size for file in files)
        cut = Cut(after, tuple(range(after + 1, last + 1)), names, size, span.rows(), str(span.newest))
        target = span.target if span.by_restore else None
        return cut, CutRecord(self.location, after, last, app, span.newest, target)

    def _damage(self, depth: Depth) -> Iterator[Damage]:
        versions = self._log.versions()
        for version in versions.missing():
            yield Damage(entry_path(version), "missing", f"the commit of version {version}", "no file")
        if versions.newest < 0 or versions.newest not in versions.commits:
            return
        try:
            commit = self._log.commit(versions.newest)
        except (OSError, FormatError) as error:
            kind, found = (error.code, error.found) if isinstance(error, FormatError) else ("unreadable", str(error))
            yield Damage(entry_path(versions.newest), kind, "one JSON action in each line", found or "")
            return
        newest = {file.path: file.size for file in commit.adds}
        yield from damaged_files(self._store, newest)
        if depth == "all" and not versions.missing():
            sizes = DeltaVersion(self.location).sizes()
            yield from damaged_files(self._store, {path: sizes[path] for path in sizes.keys() - newest.keys()})


class DeltaQueryTable(DeltaOutput):
    """A table filled by Spark's own streaming writer, with a query's batches.

    Spark skips a batch if the query id's newest transaction is not older (``DeltaSink``), so commits of cuts and swaps
    carry this id. The table is the program's: it has no owner file.
    """

    is_filled_by_spark = True

    def __init__(self, path: str, query_id: str) -> None:
        super().__init__(path)
        self._query = query_id

    def claim(self, owner: Owner) -> None: ...

    def staged(self, operation: str) -> DeltaQueryTable:
        return DeltaQueryTable(self.staged_path(operation), self._query)

    def staged_path(self, operation: str, /) -> str:
        return str(self._staging(operation).folder)

    def _app_of(self, _swap: Swap) -> str:
        return self._query

    def _app(self) -> str:
        return self._query


RESERVED_OPTIONS = frozenset({"path", "checkpointlocation", "txnappid", "txnversion", "replacewhere"})


@dataclass(frozen=True, slots=True)
class DeltaSink(Sink):
    """With ``keys``, rows replace equal keys; ``options`` are Delta's own."""

    path: str
    keys: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    kind = "delta"
    creates_output = True
    connectors = ("delta",)

    @property
    def traits(self) -> Traits:
        return DELTA_TRAITS

    @property
    def output_modes(self) -> tuple[str, ...]:
        """The supported modes: without keys an update has no target row."""
        return ("append", "update") if self.keys else ("append", "complete")

    @property
    def location(self) -> str:
        return absolute(self.path)

    def identity(self) -> Identity:
        return {"kind": self.kind, "path": self.location}

    def staged(self, operation: str, /) -> DeltaSink:
        return replace(self, path=str(staging_of(self.location, operation).folder))

    def create_output(self, frame: DataFrame, partition_by: tuple[str, ...], /) -> None:
        if not DeltaOutput(self.location).exists:
            self._spark_table.create(frame, partition_by)

    def check(self, frame: DataFrame, context: WriteContext, /) -> None:
        """Raises PipelineError if rows do not fit, EnvironmentMissing without ``deltalake``."""
        require_library()
        self.create_output(frame, context.partition_by)
        self._spark_table.check(frame, context.partition_by)

    def batch_writer(self, context: WriteContext, /) -> WriteBatch:
        return partial(self._spark_table.write, context)

    @property
    def _spark_table(self) -> DeltaSparkTable:
        from slackwater.sinks.delta.writer import DeltaSparkTable  # noqa: PLC0415 - heavy; only a run pays for it

        return DeltaSparkTable(self)


def delta(path: str | os.PathLike[str], *, keys: str | Iterable[str] = (), **options: object) -> DeltaSink:
    """A Delta table, written exactly once: append and complete, or, with ``keys``, append and update by MERGE.

    ``options`` are those of Delta's writer. Raises PipelineError for a path, key or option that cannot be used.
    """
    named = key_columns(keys)
    folder = directory(path, 'sinks.delta("gold/hourly")')
    chosen = option_strings(options, RESERVED_OPTIONS)
    refuse_with_keys(named, chosen, "Delta")
    return DeltaSink(folder, named, chosen)
