"""Cuts batches out of a Delta table and puts them back: one commit each, recorded before it is made.

A cut commits the rows of an earlier version again, or removes the files that the batches added; it lowers the recorded
batch in the same commit, so that no batch is skipped afterwards. No data file is deleted: until VACUUM deletes them
the version before the cut can be restored.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from slackwater.errors import Refused
from slackwater.model.sink import Cut
from slackwater.model.strict import STRICT
from slackwater.sinks.backup import RecordFile, foreign
from slackwater.sinks.delta import table
from slackwater.sinks.delta.contents import Action, removes
from slackwater.sinks.delta.log import NOTE, Commit, DeltaLog, entry_path, write_version
from slackwater.sinks.delta.span import Span
from slackwater.storage.protocols import ReadStore, WriteStore

PLAIN_WRITER = 6
"""Above it a table lists features, of which some put more into a commit than is written here."""

Seen = Literal["whole", "cut", "other"]


@dataclass(frozen=True, slots=True)
class Record:
    """A cut that is about to start: from ``version`` to the rows of ``target``, -1 where files are removed instead.

    ``last`` is the newest batch before the cut.
    """

    __pydantic_config__: ClassVar = STRICT

    output: str
    app: str
    after: int
    last: int
    version: int
    target: int


RECORD = RecordFile("delta.json", "slackwater.delta-backup/1", Record, alone=True)


def record_of(location: str, app: str, cut: Cut, span: Span) -> Record:
    """The record of a cut."""
    return Record(location, app, cut.after, cut.batches[-1], span.newest, span.target if span.by_restore else -1)


def check_record(record: Record, cut: Cut, location: str) -> None:
    """Raises Refused (``backup-foreign``) if the record belongs to another cut or to another output."""
    last = cut.batches[-1] if cut.batches else None
    if (record.output, record.after, record.last, str(record.version)) == (location, cut.after, last, cut.version):
        return
    raise foreign(location, cut.after, f"a cut of {record.output} after batch {record.after}")


def take_out(store: WriteStore, record: Record, span: Span) -> None:
    """Commit the cut. Raises Refused where it cannot be."""
    note = {"cut": record.version, "after": record.after}
    if record.target >= 0:
        table.restore(record.output, record.target, (record.app, record.after), {**note, "restores": record.target})
    else:
        _remove_files(store, record, span, note)


def put_back(record: Record) -> None:
    """Commit the version before the cut again. Raises Refused where VACUUM has deleted files of it."""
    table.restore(record.output, record.version, (record.app, record.last), {"restores": record.version})


def seen_by(log: DeltaLog, record: Record) -> Seen:
    """What the table is now: as before the cut, as after it, or changed by something else."""
    version = log.versions().newest
    while version > record.version:
        commit = log.commit(version)
        if (commit.note.get("cut"), commit.note.get("after")) == (record.version, record.after):
            return "cut"
        if commit.restores is None:
            return "other"
        version = commit.restores
    return "whole" if version == record.version else "other"


def changed(record: Record, code: str) -> Refused:
    """The refusal of a table that something else has changed since the cut."""
    return Refused(
        code,
        "The Delta table was changed after the cut was planned; to continue would undo those changes",
        where=record.output,
        expected=f"version {record.version}, or the one that the cut made of it",
        hint="find out with DESCRIBE HISTORY what has written to the table, then make a new plan",
    )


def check_files_removable(location: str, span: Span) -> None:
    """Raises Refused unless the batches only added files, and no other writer has replaced one of them."""
    commit = span.in_the_way()
    if commit is None and table.writer_version(location) <= PLAIN_WRITER:
        return
    other = span.others[0].version if span.others else 0
    raise Refused(
        "sink-uncuttable",
        "The batches cannot be cut out of the Delta table: another writer has changed it since, and their files cannot "
        "be removed one by one",
        where=location,
        expected="batches that only added files, in a table without table features",
        found=f"version {other} of another writer" + (f", version {commit.version} replaced files" if commit else ""),
        hint="rebuild at the last written batch, which removes nothing",
    )


def _remove_files(store: WriteStore, record: Record, span: Span, note: Mapping[str, object]) -> None:
    now_ms = time.time_ns() // 1_000_000
    info = {"timestamp": now_ms, "operation": "DELETE", "operationParameters": {}, NOTE: json.dumps(note)}
    actions: list[Mapping[str, object]] = [
        {"commitInfo": info},
        {"txn": {"appId": record.app, "version": record.after, "lastUpdated": now_ms}},
        *(action for commit in span.own for action in _removes(store, commit, now_ms)),
    ]
    if not store.traits.atomic_rename:
        raise _no_commit(record)
    try:
        write_version(store, record.version + 1, actions)
    except FileExistsError as error:
        raise changed(record, "output-changed") from error


def _no_commit(record: Record) -> Refused:
    return Refused(
        "delta-store",
        "The batches cannot be cut out of the Delta table: its store cannot commit a version without replacing another",
        where=record.output,
        hint="rebuild at the last written batch, which removes nothing",
    )


def _removes(store: ReadStore, commit: Commit, now_ms: int) -> Iterator[Action]:
    """The actions that remove what one commit added, with the paths as they are written there."""
    lines = (json.loads(line) for line in store.read(entry_path(commit.version)).split(b"\n") if line.strip())
    return removes((line["add"] for line in lines if "add" in line), now_ms)
