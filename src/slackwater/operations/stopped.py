"""Whether a query that Slackwater only records has stopped: it has no lease, and its files show when it wrote."""

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise

from slackwater.checkpoint.layout import METADATA
from slackwater.checkpoint.writer import is_halted
from slackwater.core.errors import Refused
from slackwater.core.records import BatchRecord, StreamRecord
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
    store = open_read_store(location)
    if is_halted(store):
        # An operation that was killed has written these files; the query cannot have started since.
        return None
    # Those that may have changed the stream, oldest first. Without one, ``metadata`` is the query's own.
    operations = [one for one in workspace.ledger.operations(stream.full_name) if one.status != "refused"]
    # On stores without directories an operation writes ``metadata`` last, a query first, and only once.
    replaces = operations and not store.traits.moves_directories
    placed_ms, placed = modified_ms(Location(location) / METADATA) if replaces else 0, None
    if placed_ms:
        folder = workspace.home.operation(stream.pipeline, stream.name, operations[-1].id)
        with suppress(FileNotFoundError, ValueError, RecursionError):
            copies: dict[str, dict[str, str]] = json.loads(open_read_store(folder).read(COPIES))
            placed = {path for files in copies.values() for path in files}
    found = []
    for path, written_ms in store.written_ms():
        *folders, name = path.split("/")
        # Files with a mark are of an operation, or what one that was killed has left of it.
        if _WRITTEN_ONCE in folders or MARK in name or written_ms <= since_ms:
            continue
        if written_ms > placed_ms or (written_ms == placed_ms and placed is not None and path not in placed):
            found.append((f"{store.location.rstrip('/')}/{path}", written_ms))
    return max(found, key=lambda one: one[1], default=None)


def modified_ms(file: Location) -> int:
    """The last write, by the store's clock; 0 without the file."""
    try:
        return open_read_store(file.parent).modified_ms(file.name) or 0
    except FileNotFoundError:
        return 0
