"""Streams by their name or by the location of their checkpoint, also of one that is not there any more."""

from __future__ import annotations

from pathlib import Path

from slackwater.core.commands import command
from slackwater.core.errors import NotFound, Refused
from slackwater.core.records import StreamRecord
from slackwater.ledger.ledger import Ledger
from slackwater.storage.local import exists
from slackwater.storage.open import is_uri, local_path_of


def find_stream(ledger: Ledger, name: str) -> StreamRecord:
    """The stream with this name, or with its checkpoint in use at this location.

    Raises NotFound (``stream-unknown``, ``location-unknown``), UsageError (``stream-ambiguous``).
    """
    if not _is_location(name):
        try:
            return ledger.find_stream(name)
        except NotFound:
            # A relative path looks as pipeline/stream does, also that of a checkpoint which was deleted.
            if not exists(name) and stream_at(ledger, name) is None:
                raise
    found = stream_at(ledger, name)
    if found is not None:
        return found
    raise NotFound(
        "location-unknown",
        "The ledger has no stream whose checkpoint in use is at this location",
        where=name,
        found=", ".join(stream.full_name for stream in ledger.streams()) or "no stream",
        hint=f"record it: {command('adopt', 'LOCATION')}; what it holds is shown by {command('inspect', 'LOCATION')}",
    )


def stream_at(ledger: Ledger, location: str) -> StreamRecord | None:
    """The stream with its checkpoint in use at this location."""
    wanted = _comparable(location)
    for stream in ledger.streams():
        current = ledger.generation(stream.full_name, stream.current_generation)
        if _comparable(current.location) == wanted:
            return stream
    return None


def stream_with(ledger: Ledger, name: str, location: str) -> StreamRecord | None:
    """The stream that a query of the user's program with this checkpoint is, whatever ``name`` the program gives it.

    Raises Refused (``query-checkpoint``) where a pipeline file has a stream with this checkpoint.
    """
    found = stream_at(ledger, location)
    if found is None or found.is_watched:
        return found
    raise Refused(
        "query-checkpoint",
        f"The checkpoint of query {name} is that of a stream of a pipeline file",
        where=location,
        expected="a checkpoint that no other stream has",
        found=f"stream {found.full_name} of {found.pipeline_file}",
        hint="give the query another checkpoint, or run the application with a home of its own: --home",
    )


def _is_location(name: str) -> bool:
    return is_uri(name) or name.startswith(("/", "./", "../", "~")) or name.count("/") > 1


def _comparable(location: str) -> str:
    local = local_path_of(location)
    return location.rstrip("/") if local is None else str(Path(local).expanduser().resolve())
