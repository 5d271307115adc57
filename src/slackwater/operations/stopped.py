"""Whether a query that Slackwater only records has stopped: it has no lease, and its files show when it wrote."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise

from slackwater.checkpoint.layout import METADATA
from slackwater.checkpoint.writer import is_halted
from slackwater.core.errors import Refused
from slackwater.core.records import BatchRecord, OperationRecord, StreamRecord
from slackwater.core.units import utc_text
from slackwater.ledger.workspace import Workspace
from slackwater.operations.checkpoint_path import COPIES
from slackwater.sinks.common.staging import MARK
from slackwater.storage.open import Location, open_read_store

QUIET_MIN_MS = 60_000
"""The least time without writes after which a query counts as stopped."""

RECENT = 10
"""How many of the newest batches show how often the query writes."""

_WRITTEN_ONCE = "_metadata"
"""A query writes these folders only with its first batch, an operation may later."""


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
