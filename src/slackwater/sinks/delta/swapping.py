"""Builds a Delta table aside and puts its rows in place: one commit removes all files and adds the staged ones.

The files of the staged table get second names in the real table's folder before the commit; until then no reader of
the table sees them. The commit sets the stream's newest batch to that of the staged table. All rows are replaced, also
those of other writers. The version before it can be committed again until VACUUM deletes its files.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from slackwater.errors import Refused
from slackwater.model.damage import Damage
from slackwater.sinks.aside import Aside, link_files
from slackwater.sinks.backup import damaged
from slackwater.sinks.delta.contents import Action, Contents, contents_of, newest_contents, removes
from slackwater.sinks.delta.cutting import PLAIN_WRITER
from slackwater.sinks.delta.log import NOTE, Commit, DeltaLog, write_version
from slackwater.sinks.delta.span import Span
from slackwater.sinks.swapping import Record, check_whole, unsupported
from slackwater.storage.local import LocalStore

_APPEND_ONLY = "delta.appendOnly"
_MAPPING = "delta.columnMapping.mode"
_CONSTRAINT = "delta.constraints."


def fill(aside: Aside, app: str, after: int, span: Span) -> None:
    """Create the staged table with the files of the batches up to ``after``. Raises Refused."""
    store = LocalStore(aside.real)
    now = contents_of(store, span.target if span.by_restore else span.newest)
    check_plain(str(aside.real), now)
    written = set() if span.by_restore else {file.path for file in span.files()}
    files = [file for path, file in now.files.items() if unquote(path) not in written]
    elsewhere = [file["path"] for file in files if "://" in file["path"] or file["path"].startswith("/")]
    if elsewhere:
        raise unsupported(str(aside.real), "files below the table", elsewhere[0])
    link_files(aside.real, aside.folder, (unquote(file["path"]) for file in files))
    actions: list[Mapping[str, object]] = [
        _info({"staged": aside.operation}),
        {"protocol": now.protocol},
        {"metaData": {**now.metadata, "id": str(uuid.uuid4())}},
        {"txn": {"appId": app, "version": after, "lastUpdated": _now_ms()}},
        *({"add": file} for file in files),
    ]
    if DeltaLog(LocalStore(aside.folder)).versions().newest < 0:
        write_version(LocalStore(aside.folder), 0, actions)


def check(aside: Aside) -> None:
    """Raises Refused unless one commit can replace the files of the table by the staged ones, which must be there."""
    staged, now = (newest_contents(LocalStore(folder)) for folder in (aside.folder, aside.real))
    check_whole(str(aside.folder), list(_missing(aside.folder, staged)))
    check_plain(str(aside.folder), staged)
    check_plain(str(aside.real), now)
    if _constraints(staged) != _constraints(now):
        raise unsupported(str(aside.folder), _constraints(now) or "no constraints", _constraints(staged) or "none")


def check_plain(location: str, contents: Contents) -> None:
    """Raises Refused for a table with features, mapped columns, or whose files may not be removed."""
    version = int(contents.protocol["minWriterVersion"])
    if version > PLAIN_WRITER:
        raise unsupported(location, "a table without table features", f"writer version {version}")
    if contents.setting(_MAPPING) not in {None, "none"} or contents.setting(_APPEND_ONLY) == "true":
        raise unsupported(location, f"a table without {_MAPPING} and {_APPEND_ONLY}", "one that sets it")


def put_in_place(aside: Aside, app: str, batch: int) -> None:
    """Commit the staged files in place of those that the table has. Raises Refused."""
    staged, now = (newest_contents(LocalStore(folder)) for folder in (aside.folder, aside.real))
    link_files(aside.folder, aside.real, (unquote(path) for path in staged.files))
    wanted = replace(staged, metadata=_metadata(now, staged))
    _commit(aside, now, wanted, (app, batch), {"swap": aside.operation})


def put_back(aside: Aside, version: int, app: str, batch: int) -> None:
    """Commit an earlier version again. Raises Refused (``backup-damaged``) where VACUUM has deleted files of it."""
    store = LocalStore(aside.real)
    before = contents_of(store, version)
    for missing in _missing(aside.real, before):
        raise damaged(f"{aside.real}/{missing.path}", f"version {version}: {missing.expected}", missing.found)
    _commit(aside, newest_contents(store), before, (app, batch), {"restores": version})


def since_swap(log: DeltaLog, record: Record) -> list[Commit]:
    """The commits since the swap, newest first, with that of the swap as the last; none if it was not made."""
    version, seen = log.versions().newest, list[Commit]()
    while version > record.version:
        commit = log.commit(version)
        seen.append(commit)
        if commit.note.get("swap") == record.operation:
            return seen
        version = version - 1 if commit.restores is None else commit.restores
    return []


def check_own(location: str, commits: list[Commit], app: str) -> None:
    """Raises Refused (``restore-conflict``) if another writer has changed the table since the swap."""
    for commit in commits:
        if commit.changes_table and app not in commit.batches:
            raise Refused(
                "restore-conflict",
                "Another writer has changed the Delta table since the swap; going back would undo that",
                where=location,
                expected="commits of the stream",
                found=f"version {commit.version}",
                hint="find out with DESCRIBE HISTORY what has written to the table, and restore a version with RESTORE",
            )


def _missing(folder: Path, contents: Contents) -> Iterator[Damage]:
    """The files of a version that are not there, or not whole."""
    for path, file in contents.files.items():
        found = folder / unquote(path)
        size = found.stat().st_size if found.is_file() else None
        if size != file["size"]:
            yield Damage(unquote(path), "torn", f"{file['size']} bytes", "no file" if size is None else f"{size} bytes")


def _commit(aside: Aside, now: Contents, wanted: Contents, batch: tuple[str, int], note: Mapping[str, object]) -> None:
    now_ms = _now_ms()
    adds = [file for path, file in wanted.files.items() if path not in now.files]
    actions: list[Mapping[str, object]] = [
        _info(note),
        *_protocol(now, wanted),
        *([] if wanted.metadata == now.metadata else [{"metaData": wanted.metadata}]),
        {"txn": {"appId": batch[0], "version": batch[1], "lastUpdated": now_ms}},
        *removes((file for path, file in now.files.items() if path not in wanted.files), now_ms),
        *({"add": {**file, "dataChange": True}} for file in adds),
    ]
    try:
        write_version(LocalStore(aside.real), now.version + 1, actions)
    except FileExistsError as error:
        raise Refused(
            "swap-moved",
            "Another writer has committed to the Delta table meanwhile",
            where=str(aside.real),
            expected=f"version {now.version} as the newest",
            hint="find out with DESCRIBE HISTORY what has written to the table, then run the command again",
        ) from error


def _protocol(now: Contents, wanted: Contents) -> Iterator[Mapping[str, Action]]:
    """The higher protocol, where the wanted version needs one."""
    names = ("minReaderVersion", "minWriterVersion")
    higher = {name: max(int(now.protocol[name]), int(wanted.protocol[name])) for name in names}
    if any(higher[name] > int(now.protocol[name]) for name in names):
        yield {"protocol": higher}


def _metadata(now: Contents, staged: Contents) -> Action:
    """The table's metadata, with the columns and partitions of the staged table where they are others."""
    columns = ("schemaString", "partitionColumns")
    same = _bare(json.loads(now.metadata["schemaString"])) == _bare(json.loads(staged.metadata["schemaString"]))
    if same and list(now.metadata["partitionColumns"]) == list(staged.metadata["partitionColumns"]):
        return now.metadata
    return {**now.metadata, **{name: staged.metadata[name] for name in columns}}


def _bare(schema: Any) -> Any:
    """A schema without the metadata of its columns, such as comments."""
    if isinstance(schema, Mapping):
        return {key: _bare(value) for key, value in schema.items() if key != "metadata"}
    return [_bare(each) for each in schema] if isinstance(schema, list) else schema


def _constraints(contents: Contents) -> str:
    settings = contents.metadata.get("configuration", {})
    return ", ".join(f"{name}={value}" for name, value in sorted(settings.items()) if name.startswith(_CONSTRAINT))


def _info(note: Mapping[str, object]) -> Mapping[str, object]:
    parameters = {"mode": "Overwrite", "partitionBy": "[]"}
    info = {"timestamp": _now_ms(), "operation": "WRITE", "operationParameters": parameters, NOTE: json.dumps(note)}
    return {"commitInfo": info}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
