"""Cuts batches out of a Delta table and restores them, each by a recorded commit.

The commit also lowers the recorded batch, so no batch is skipped later. No data file is deleted: until VACUUM the old
version can be restored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slackwater.core.errors import Refused
from slackwater.core.sink import Cut
from slackwater.sinks.common.changes import CutRecord, RecordFile, TableState
from slackwater.sinks.delta.log import DeltaLog
from slackwater.sinks.delta.span import Span, backwards, span_after, written_by
from slackwater.sinks.delta.table import CommitMark, DeltaVersion, damaged_files
from slackwater.storage.protocols import ReadStore


@dataclass(frozen=True, slots=True)
class Record(CutRecord):
    """The cut from ``version`` to the rows of ``target``; -1: files are removed instead."""

    app: str
    version: int
    target: int

    @property
    def planned_version(self) -> str:
        return str(self.version)


RECORD = RecordFile("delta.json", "slackwater.delta-backup/1", Record, alone=True)


def record_of(location: str, app: str, cut: Cut, span: Span) -> Record:
    return Record(location, cut.after, cut.batches[-1], app, span.newest, span.target if span.by_restore else -1)


def delete_batches(log: DeltaLog, record: Record, newest: int) -> None:
    table, note = DeltaVersion(record.output, newest), {"cut": record.version, "after": record.after}
    try:
        if record.target >= 0:
            table.restore(record.target, _mark(record, record.after, {**note, "restores": record.target}))
        else:
            # Again for the version that the commit follows: compaction since the plan may have replaced these files.
            span = span_after(log, record.app, record.after, newest)
            check_files_removable(record.output, span)
            files = (file for commit in span.own for file in commit.adds)
            table.commit(_mark(record, record.after, note), remove=files)
    except FileExistsError as error:
        raise changed(record, "output-changed", log) from error


def restore(log: DeltaLog, record: Record, newest: int) -> None:
    """Commit the version before the cut after ``newest``. Raises Refused after VACUUM."""
    mark = _mark(record, record.last, {"restores": record.version})
    try:
        DeltaVersion(record.output, newest).restore(record.version, mark)
    except FileExistsError as error:
        raise changed(record, "output-changed", log) from error


def check_kept(store: ReadStore, record: Record, newest: int) -> None:
    """Raises Refused unless the old files exist and can replace the newest."""
    DeltaVersion(record.output, newest).check_restorable(record.version)
    for damage in damaged_files(store, DeltaVersion(record.output, record.version).sizes()):
        raise Refused(
            "delta-restore",
            f"The Delta table cannot be restored to version {record.version}: a file of it is missing or damaged",
            where=f"{record.output}/{damage.path}",
            expected=damage.expected,
            found=damage.found,
            hint="restore the file from a backup; if VACUUM has removed it, rebuild at the last written batch, "
            "which removes nothing",
        )


def state_of(log: DeltaLog, record: Record, newest: int) -> TableState:
    """The table's state; compaction and VACUUM do not change it."""
    version, by_stream, by_others = newest, False, False
    while version > record.version:
        try:
            commit = log.commit(version)
        # Commits have been cleaned up (``delta.logRetentionDuration``): what they have changed is unknown.
        except FileNotFoundError:
            return "other"
        if (commit.note.get("cut"), commit.note.get("after")) == (record.version, record.after):
            return "other" if by_stream else "cut-changed" if by_others else "cut"
        if commit.restores is None:
            by_stream = by_stream or record.app in commit.batches
            by_others = by_others or commit.changes_table
        version = version - 1 if commit.restores is None else commit.restores
    if version < record.version:
        return "other"
    return "uncut" if by_stream or by_others else "whole"


def changed(record: Record, code: str, log: DeltaLog) -> Refused:
    since = (commit for commit in backwards(log, log.versions().newest) if commit.version > record.version)
    others = [commit for commit in since if record.app not in commit.batches]
    return Refused(
        code,
        "The Delta table was changed after the cut was planned; to continue would undo those changes",
        where=record.output,
        expected=f"version {record.version}, or the one that the cut made of it",
        found=f"{written_by(others).text} of others since" if others else "batches of the stream since",
        hint="find out with DESCRIBE HISTORY what has written to the table, then make a new plan",
    )


def check_writable(location: str, span: Span) -> None:
    table = DeltaVersion(location, span.newest)
    if table.is_append_only or table.unwritable:
        raise Refused(
            "sink-uncuttable",
            "The batches cannot be cut out of the Delta table: the deltalake library cannot commit that to it",
            where=location,
            expected="a table with features that deltalake writes, and without delta.appendOnly",
            found=table.unwritable or "delta.appendOnly",
            hint="rebuild at the last written batch, which removes nothing",
        )
    table.check_removable(file.path for file in span.files())


def check_files_removable(location: str, span: Span) -> None:
    """Raises Refused unless the batches only added files, and other writers replaced none of them."""
    commit = span.blocking_commit()
    if commit is not None:
        raise Refused(
            "sink-uncuttable",
            "The batches cannot be cut out of the Delta table: another writer has changed it since, and their files "
            "cannot be removed one by one",
            where=location,
            expected="batches that only added files",
            found=f"{len(span.others or (commit,))} commits of others, version {commit.version} replaced files",
            hint="rebuild at the last written batch, which removes nothing",
        )


def _mark(record: Record, batch: int, note: Mapping[str, object]) -> CommitMark:
    return CommitMark(record.app, batch, note)
