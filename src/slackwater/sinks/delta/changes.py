"""Rows that a cut of a Delta table may remove, and the swap of a staged table; each is a commit.

A cut also lowers the recorded batch, so no batch is skipped later. Staged files first get hard links, or remote copies,
in the real folder; then a commit removes all files and adds the staged files. It sets the stream's newest batch, and
its note has each batch's files for later cuts. It follows the checked version, or is refused. No data file is deleted:
until VACUUM the old version can be restored.

Files added by others are staged too while no commit mixed the rows. After updates or merges, or if the log forgot a
file's origin, they are indistinguishable.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from slackwater.core.checkpoint import NONE_YET
from slackwater.core.errors import Refused
from slackwater.core.sink import NO_OTHERS, Others
from slackwater.sinks.common.changes import (
    CutRecord,
    RecordFile,
    SwapRecord,
    check_whole,
    damaged,
    incomplete,
    unsupported,
)
from slackwater.sinks.common.contract import uncuttable
from slackwater.sinks.common.staging import Place, bring_files
from slackwater.sinks.delta.log import KEPT, Commit, DeltaLog, DeltaSpan, backwards, kept_below, written_by
from slackwater.sinks.delta.table import COLUMN_MAPPING, TYPES_WITH_FEATURES, DeltaVersion, create_like, damaged_files
from slackwater.storage.open import open_read_store

RECORD = RecordFile("delta.json", "slackwater.delta-backup/1", CutRecord, alone=True)


def check_writable(location: str, span: DeltaSpan) -> None:
    table = DeltaVersion(location, span.newest)
    if table.is_append_only or table.unwritable:
        raise uncuttable(
            location,
            "The batches cannot be cut out of the Delta table: the deltalake library cannot commit that to it",
            "a table with features that deltalake writes, and without delta.appendOnly",
            table.unwritable or "delta.appendOnly",
        )
    table.check_removable(file.path for file in span.files())


def check_files_removable(location: str, span: DeltaSpan) -> None:
    """Raises Refused unless the batches only added files, and other writers replaced none of them."""
    commit = span.blocking_commit()
    if commit is not None:
        raise uncuttable(
            location,
            "The batches cannot be cut out of the Delta table: another writer has changed it since, and their files "
            "cannot be removed one by one",
            "batches that only added files",
            f"{len(span.others or (commit,))} commits of others, version {commit.version} replaced files",
        )


Base = tuple[DeltaVersion, frozenset[str], Others]
"""The start of a staged table: a version with its columns, its files, and what only the real table has of others."""


def base_after(location: str, log: DeltaLog, app: str | None, written: int, after: int) -> Base:
    """The result of a cut after the batch. Raises Refused if unknown.

    Nothing is refused before all batches: lost rows belong to other streams.
    """
    newest = log.versions().newest
    if app is None or written <= after:
        now = DeltaVersion(location, newest)
        return now, frozenset(now.sizes()), NO_OTHERS
    try:
        span = DeltaSpan(log, app, after)
    except Refused:
        if after > NONE_YET:
            raise
        now = DeltaVersion(location, newest)
        own = (commit for commit in backwards(log, newest) if app in commit.batches)
        unknown = len(now.sizes().keys() - {file.path for commit in own for file in commit.adds})
        return now, frozenset(), Others(None if unknown else 0, unknown, sure=False)
    if not span.by_restore and after > NONE_YET:
        check_files_removable(location, span)
    mixed = not span.by_restore and span.blocking_commit() is not None
    others = [commit for commit in span.others if commit.changes_rows]
    if mixed and (others or span.target < 0):
        return DeltaVersion(location, newest), frozenset(), written_by(others)
    if mixed or span.by_restore:
        before = DeltaVersion(location, span.target)
        return before, frozenset(before.sizes()), NO_OTHERS
    now = DeltaVersion(location, span.newest)
    return now, frozenset(now.sizes()) - {file.path for file in span.files()}, NO_OTHERS


def state_of(log: DeltaLog) -> str:
    """The newest version with a change; compactions and undone changes do not count."""
    for commit in backwards(log, log.versions().newest):
        if commit.restores is None and commit.changes_table:
            return f"version {commit.version}"
    return "version -1"


def fill(place: Place, app: str, after: int, table: DeltaVersion, base: Collection[str]) -> None:
    """Fill the staged table with the columns of ``table`` and the files of ``base``."""
    real, folder = str(place.real), str(place.folder)
    check_swappable(real, table)
    elsewhere = [path for path in base if "://" in path or path.startswith("/")]
    if elsewhere:
        raise unsupported(real, "files below the table", elsewhere[0])
    try:
        bring_files(real, folder, base)
    except FileNotFoundError as error:
        raise incomplete(real, str(error.filename or error), "no file") from error
    create_like(folder, table)
    files = table.files()
    staged = DeltaVersion(folder)
    # An attempt that was killed after this commit has made it already.
    if _start_of(DeltaLog(open_read_store(folder))) is None:
        batch = after if after > NONE_YET else None
        staged.commit(app, batch, {"staged": place.operation}, add=[files[path] for path in sorted(base)])


def check(place: Place) -> None:
    """Raises Refused unless a commit can swap, and the staged files exist."""
    real, folder = str(place.real), str(place.folder)
    staged, now = DeltaVersion(folder), DeltaVersion(real)
    check_whole(folder, list(damaged_files(open_read_store(folder), staged.sizes())))
    check_swappable(folder, staged)
    check_swappable(real, now)
    if staged.constraints != now.constraints:
        raise unsupported(folder, f"constraints {dict(now.constraints)}", f"constraints {dict(staged.constraints)}")
    if staged.partition_columns != now.partition_columns:
        raise unsupported(
            folder, f"the partitions of the table: {now.partition_columns}", str(staged.partition_columns)
        )
    for kind, feature in TYPES_WITH_FEATURES.items():
        if feature not in now.features and f'"{kind}"' in staged.schema_json:
            raise unsupported(real, f"a table with the feature for columns of type {kind}", "no such feature")
    now.check_removable(now.sizes().keys() - staged.files().keys())


def check_swappable(location: str, table: DeltaVersion) -> None:
    if table.unwritable:
        raise unsupported(location, "a table with features that the deltalake library writes", table.unwritable)
    if table.is_append_only:
        raise unsupported(location, "a table without delta.appendOnly", "delta.appendOnly=true")
    if table.properties.get(COLUMN_MAPPING, "none").lower() != "none":
        # Each table makes up names of its own for the columns in its files.
        raise unsupported(location, "a table without delta.columnMapping.mode", "one that sets it")
    if table.has_deleted_rows:
        raise unsupported(location, "files without deletion vectors (REORG TABLE ... APPLY (PURGE))", "some with")


def swap_in(place: Place, app: str, batch: int, version: int) -> None:
    real, folder = str(place.real), str(place.folder)
    staged, now = DeltaVersion(folder), DeltaVersion(real, version)
    wanted, present = staged.files(), now.files()
    same = _bare(json.loads(staged.schema_json)) == _bare(json.loads(now.schema_json))
    below = kept_below(place.operation)
    moved = {} if same else {path: f"{below}/{path}" for path in wanted.keys() & present.keys()}
    bring_files(folder, real, wanted.keys() - present.keys())
    bring_files(folder, f"{real}/{below}", moved)
    note = {"swap": place.operation, **_batches(DeltaLog(open_read_store(folder)), app)}
    try:
        if same:
            add = [file for path, file in wanted.items() if path not in present]
            gone = [file for path, file in present.items() if path not in wanted]
            now.commit(app, batch, note, add=add, remove=gone)
        else:
            # Other columns replace all files, and one commit cannot remove a file and add it again.
            files = (replace(file, path=moved.get(path, path)) for path, file in wanted.items())
            note[KEPT] = sorted(moved.values())
            now.commit(app, batch, note, add=files, columns_of=staged)
    except FileExistsError as error:
        raise _overtaken(real, version) from error


def swap_back(place: Place, version: int, app: str, batch: int, newest: int) -> None:
    """Commit an earlier version after ``newest``. Raises Refused. ``backup-damaged``: VACUUM deleted its files."""
    real = str(place.real)
    check_version_kept(real, version, newest)
    try:
        DeltaVersion(real, newest).restore(version, app, batch)
    except FileExistsError as error:
        raise _overtaken(real, newest) from error


def check_version_kept(location: str, version: int, newest: int) -> None:
    """Raises Refused as a restore would, and (``backup-damaged``) after VACUUM."""
    DeltaVersion(location, newest).check_restorable(version)
    for missing in damaged_files(open_read_store(location), DeltaVersion(location, version).sizes()):
        raise damaged(f"{location}/{missing.path}", f"version {version}: {missing.expected}", missing.found)


def since_swap(log: DeltaLog, record: SwapRecord, newest: int | None = None) -> list[Commit]:
    """The commits from ``newest`` back to the swap, included; empty without it."""
    version, seen = log.versions().newest if newest is None else newest, list[Commit]()
    while version > record.version:
        commit = log.commit(version)
        seen.append(commit)
        if commit.note.get("swap") == record.operation:
            return seen
        # What a restore has undone does not count: the walk continues at the version that it has restored.
        version = version - 1 if commit.restores is None else commit.restores
    return []


def check_own(location: str, commits: list[Commit], app: str) -> None:
    """Raises Refused (``restore-conflict``) for foreign changes since the swap."""
    others = [commit for commit in commits if commit.changes_table and app not in commit.batches]
    if others:
        raise Refused(
            "restore-conflict",
            "Another writer has changed the Delta table since the swap; going back would undo that",
            where=location,
            expected="commits of the stream",
            found=f"{written_by(others).text}: version {others[0].version}",
            hint="find out with DESCRIBE HISTORY what has written to the table, and restore a version with RESTORE",
        )


def _overtaken(location: str, version: int) -> Refused:
    return Refused(
        "swap-moved",
        "Another writer has committed to the Delta table meanwhile",
        where=location,
        expected=f"version {version} as the newest",
        hint="find out with DESCRIBE HISTORY what has written to the table, then run the command again",
    )


def _start_of(log: DeltaLog) -> Commit | None:
    commits = (log.commit(version) for version in log.versions().commits)
    return next((commit for commit in commits if "staged" in commit.note), None)


def _batches(log: DeltaLog, app: str) -> dict[str, object]:
    """The start batch, and each later batch's files unless rows were replaced.

    Empty if a starting file was replaced: the new file has older rows, which no cut may remove.
    """
    versions = log.versions().commits
    if not versions or versions[0] != 0:
        return {}
    first = _start_of(log)
    after = first.batches.get(app, -1) if first is not None else -1
    try:
        span = DeltaSpan(log, app, after)
    except Refused:
        return {}
    written = {file.path for commit in span.own for file in commit.adds}
    since = (log.commit(version) for version in versions if first is None or version > first.version)
    if any(path not in written for commit in since for path in commit.removes):
        return {}
    if span.blocking_commit() is not None:
        return {"after": after}
    return {"after": after, "batches": {str(one.batches[app]): [file.path for file in one.adds] for one in span.own}}


def _bare(schema: Any) -> Any:
    if isinstance(schema, Mapping):
        return {key: _bare(value) for key, value in schema.items() if key != "metadata"}
    return [_bare(each) for each in schema] if isinstance(schema, list) else schema
