"""Checkpoints at paths of the user's code, of queries that Slackwater only records.

They have no lease, and a new checkpoint must end up at the same path. Nothing is changed while the query runs.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path, PurePosixPath

from slackwater.checkpoint.layout import METADATA
from slackwater.checkpoint.writer import is_halted
from slackwater.core.commands import command
from slackwater.core.errors import Refused
from slackwater.core.escaping import quoted
from slackwater.core.records import STREAM_NAME, BatchRecord, OperationRecord, StreamRecord
from slackwater.core.sink import exchange_path, staging_path
from slackwater.core.units import utc_text
from slackwater.ledger.workspace import Workspace
from slackwater.operations.action import PreconditionName
from slackwater.sinks.common.staging import MARK
from slackwater.storage.open import Location, local_path_of, open_read_store

QUIET_MIN_MS = 60_000
"""The least time without writes after which a query counts as stopped."""

RECENT = 10
"""How many of the newest batches show how often the query writes."""

COPIES = "copies.json"
"""Hashes of both checkpoints, if an operation replaces objects, once both are complete."""

_WRITTEN_ONCE = "_metadata"
"""A query writes these folders only with its first batch, an operation may later."""


SETTINGS_UNKNOWN = (
    "the settings of the query's runs are not recorded: batches are run again under those that the checkpoint pins, "
    "and else under those of this session; give others, such as the time zone, with --conf"
)
_UNTIL = (
    "until the plan is wholly applied or undone the program must not be started, also after an apply that was killed: "
)
_OUTPUT_FIRST = (
    f"{_UNTIL}its output has batches that its checkpoint has not, and it would skip its own with the same numbers"
)
RISKS: Mapping[str, str] = {
    "cut-sink": f"{_UNTIL}rows that were cut are missing from its output, and its checkpoint counts their batches as "
    "written",
    "run-backfill": _OUTPUT_FIRST,
    "swap-output": _OUTPUT_FIRST,
}
"""The risk of an action if the program is started before the end of the plan."""
NEEDS: Mapping[str, tuple[PreconditionName, ...]] = {
    "cut-sink": ("planned", "committed", "writer"),
    "run-backfill": ("writer",),
    "swap-output": ("planned", "committed", "writer"),
    "switch-generation": ("planned", "committed", "writer"),
}
"""More preconditions of an action: no lease keeps the program from being started."""
BUILT, KEPT = "checkpoint", "kept"
"""Folders of the operation, on stores without directories."""


def adopted_directory(workspace: Workspace, stream: StreamRecord) -> str | None:
    """The real path or URI. Raises Refused if no other directory can replace it."""
    if not stream.is_watched:
        return None
    _check_name(stream)
    location = workspace.ledger.generation(stream.full_name, stream.current_generation).location
    local = local_path_of(location)
    if local is None:
        return location.rstrip("/")
    real = Path(local).resolve()
    problem = _fixed(real)
    if problem is not None:
        raise Refused(
            "checkpoint-fixed",
            f"The directory of the checkpoint of stream {stream.full_name} cannot change places with another",
            where=str(real),
            expected="a directory of this user that can be renamed, in a parent folder that can be written to",
            found=problem,
            hint="mount it one level higher, or repeat the command as the user who runs the query",
        )
    return str(real)


def check_stopped(workspace: Workspace, stream: StreamRecord, *, since_ms: int, stopped: bool) -> None:
    """Raises Refused (``checkpoint-in-use``) if a watched query seems to run and is not declared ``stopped``.

    Files of an operation, from before ``since_ms``, do not count.
    """
    if stopped or not stream.is_watched:
        return
    newest = newest_file(workspace, stream, since_ms)
    quiet_ms = quiet_time_ms(workspace.ledger.batches(stream.full_name))
    now_ms = round(time.time() * 1000)
    # The store's clock may be ahead: a file of the future counts as just written.
    if newest is None or now_ms - newest[1] >= quiet_ms:
        return
    raise Refused(
        "checkpoint-in-use",
        f"The query of stream {stream.full_name} may be running: its checkpoint has just been written to",
        where=newest[0],
        expected=f"nothing written in the last {quiet_ms // 1000} s",
        found=f"written {max(now_ms - newest[1], 0) // 1000} s ago",
        hint="stop the query and run the command again; if it has stopped already, with --i-stopped-it",
    )


def written_since(workspace: Workspace, stream: StreamRecord, since_ms: int) -> str:
    """A precondition: the newest file written since then, else ``none``."""
    newest = newest_file(workspace, stream, since_ms)
    return "none" if newest is None else f"{newest[0]} at {utc_text(newest[1])}"


def quiet_time_ms(batches: Sequence[BatchRecord]) -> int:
    """Twice the usual interval between batches."""
    # The median: one long stop must not count as the usual interval.
    gaps = sorted(later.timestamp_ms - earlier.timestamp_ms for earlier, later in pairwise(batches[-RECENT:]))
    return max(QUIET_MIN_MS, 2 * gaps[len(gaps) // 2] if gaps else 0)


def newest_file(workspace: Workspace, stream: StreamRecord, since_ms: int) -> tuple[str, int] | None:
    """Files of an operation do not count. Object stores have times in seconds: in the second of an operation's possible
    last write, only other files count.
    """
    location = workspace.ledger.generation(stream.full_name, stream.current_generation).location
    # Those that may have changed the stream, oldest first. Without one, ``metadata`` is the query's own.
    operations = [one for one in workspace.ledger.operations(stream.full_name) if one.status != "refused"]
    placed_ms = _swapped_in_ms(location) if operations else 0
    placed = _placed(workspace, stream, operations[-1]) if placed_ms else None

    def counts(file: str, written_ms: int) -> bool:
        if written_ms <= since_ms or written_ms < placed_ms:
            return False
        path = file[len(location.rstrip("/")) + 1 :]
        return written_ms > placed_ms or (placed is not None and path not in placed)

    return max((one for one in _times_ms(location) if counts(*one)), key=lambda one: one[1], default=None)


def _swapped_in_ms(location: str) -> int:
    """When an operation may have replaced the last file; 0 on other stores. It writes ``metadata`` last, a query first,
    and only once.
    """
    store = open_read_store(location)
    if store.traits.moves_directories:
        return 0
    try:
        return store.modified_ms(METADATA) or 0
    except FileNotFoundError:
        return 0


def _placed(workspace: Workspace, stream: StreamRecord, operation: OperationRecord) -> frozenset[str] | None:
    folder = workspace.home.operation(stream.pipeline, stream.name, operation.id)
    try:
        copies: dict[str, dict[str, str]] = json.loads(open_read_store(str(folder)).read(COPIES))
    except (FileNotFoundError, ValueError, RecursionError):
        return None
    return frozenset(path for files in copies.values() for path in files)


def modified_ms(file: Location) -> int:
    """The last write, by the store's clock; 0 without the file."""
    try:
        return open_read_store(file.parent).modified_ms(file.name) or 0
    except FileNotFoundError:
        return 0


def _times_ms(location: str) -> Iterator[tuple[str, int]]:
    store = open_read_store(location)
    if is_halted(store):
        # An operation that was killed has written these files; the query cannot have started since.
        return
    for path, written_ms in store.written_ms():
        *folders, name = path.split("/")
        # Files with a mark are of an operation, or what one that was killed has left of it.
        if _WRITTEN_ONCE not in folders and MARK not in name:
            yield f"{store.location.rstrip('/')}/{path}", written_ms


def _fixed(real: Path) -> str | None:
    # rename(2) fails on a mount point (EBUSY).
    if real.is_mount():
        return "a mount point"
    if not os.access(next(one for one in (real.parent, *real.parent.parents) if one.exists()), os.W_OK):
        return f"no permission to write to {real.parent}"
    # The new checkpoint belongs to this user; a query of another user could not write to it.
    if real.exists() and real.stat().st_uid != os.geteuid():
        return f"a directory of user {real.stat().st_uid}; this is user {os.geteuid()}"
    return None


def _check_name(stream: StreamRecord) -> None:
    """The name becomes a folder of the home."""
    if STREAM_NAME.fullmatch(stream.name) is None:
        raise Refused(
            "query-name",
            "An operation on this query cannot be recorded: its name cannot be that of a folder",
            where=f"stream {stream.full_name}",
            expected="letters, digits, '.', '_' and '-', beginning with a letter or digit, at most 100",
            found=repr(stream.name),
            hint=f"forget the stream: {command('release', stream.full_name)}; then give the query such a name with "
            ".queryName(...), and start it once more with slackwater.watch",
        )


def is_of_objects(path: str) -> bool:
    """Whether the store cannot exchange directories: the location is a URI."""
    return not path.startswith("/")


def staging_of(path: str, operation: str) -> str:
    """A hidden directory on the same file system as ``path``."""
    place = PurePosixPath(path)
    return str(place.with_name(staging_path(place.name, operation)))


def held_of(path: str, operation: str) -> str:
    """A temporary path if the file system cannot exchange directories atomically."""
    place = PurePosixPath(path)
    return str(place.with_name(exchange_path(place.name, operation)))


def notes_of_adopted(path: str, operation: str) -> tuple[str, ...]:
    if is_of_objects(path):
        how = (
            f"the query's own code names the checkpoint {path}: the new one is built in the folder of the operation, "
            "and a copy of the old one is made there; then the files that differ are replaced"
        )
        return (how, "until all of them are, its metadata is no JSON, so that no query can start on it")
    staging = staging_of(path, operation)
    return (
        f"the query's own code names the checkpoint {path}: the new one is built in {staging}, then they change places",
        *recovery(path, operation),
    )


def recovery(path: str, operation: str) -> tuple[str, ...]:
    """How to finish or undo an interrupted exchange by renames without Slackwater."""
    staging, between = staging_of(path, operation), held_of(path, operation)
    return (
        f"if the machine fails while they change places and {path} does not exist: to go back, {_mv(between, path)}",
        f"to continue instead: {_mv(staging, path)} && {_mv(between, staging)}",
        f"if it exists, and {between} as well: {_mv(between, staging)}",
    )


def recovery_of_objects(location: str, folder: str) -> tuple[str, ...]:
    """How to undo or finish an interrupted replacement of files without Slackwater."""
    back = f"to go back, make the files at {location} those of {folder}/{KEPT}, metadata last"
    return (f"if the machine fails while files are replaced: {back}; to continue instead, those of {folder}/{BUILT}",)


def _mv(source: str, target: str) -> str:
    return f"mv -T {quoted(source)} {quoted(target)}"
