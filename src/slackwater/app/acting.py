"""The first checks of every command that changes something: the place of the home, and a lost ledger."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Literal

from slackwater.app.workspace import Workspace
from slackwater.diagnose.identity import home_finding
from slackwater.diagnose.refusal import refusal
from slackwater.errors import Refused
from slackwater.home.identity import Place, ensure_identity, place_of, write_identity
from slackwater.home.stream_file import StreamFile, read_stream_file, write_stream_file
from slackwater.model.records import StreamRecord
from slackwater.model.sink import Owner
from slackwater.recording.stream_files import restore_lost, write_stream_file_of
from slackwater.sinks.registry import open_each

Consent = Literal["moved", "copied"] | None
"""What the user declares about a home that was moved or copied."""


def acting(workspace: Workspace, consent: Consent, say: Callable[[str], None]) -> None:
    """Recognise a moved or copied home, and restore what a lost ledger had.

    Raises Refused (``home-moved``, ``home-copied``) unless the user declares it.
    """
    place = place_of(workspace.home)
    if place.place != "here":
        if consent != place.place:
            raise refusal(home_finding(place.place, place.was or "another place"), "all")
        _accept(workspace, place)
        say(f"the home is now at {workspace.home.path}" + (", with ids of its own" if consent == "copied" else ""))
    ensure_identity(workspace.home)
    restored = restore_lost(workspace.home, workspace.ledger)
    if restored:
        say(
            f"the ledger had no record of {', '.join(restored)}: restored from stream.json and the checkpoints; "
            "what only the ledger had recorded is lost"
        )


def _accept(workspace: Workspace, place: Place) -> None:
    home, ledger = workspace.home, workspace.ledger
    streams = ledger.streams()
    if place.place == "copied":
        if workspace.settings.ledger is not None:
            raise Refused(
                "home-shares-ledger",
                "A copied home needs a ledger of its own; this one still uses the ledger of the original",
                where=str(home.path),
                hint="set another ledger in slackwater.toml, or leave it out to use one in the home",
            )
        _leave_outputs_to_the_original(workspace, streams, place)
        ledger.replace_ids({stream.full_name: _new_id(workspace, stream) for stream in streams})
    ledger.relocate(str(place.was), str(home.path.resolve()))
    identifier = ensure_identity(home).id if place.place == "moved" else str(uuid.uuid4())
    write_identity(home, identifier)
    for stream in streams:
        write_stream_file_of(home, ledger, stream.full_name)


def _leave_outputs_to_the_original(workspace: Workspace, streams: list[StreamRecord], place: Place) -> None:
    """An output without an owner's mark was written by the original; from now on the mark names it."""
    for stream in streams:
        known = read_stream_file(workspace.home, stream.pipeline, stream.name)
        if known is None:
            continue
        for output in open_each(stream.sink):
            if output.owner() is None and (output.last_written() or 0) >= 0:
                output.claim(Owner(known.id, stream.full_name, str(place.was)))


def _new_id(workspace: Workspace, stream: StreamRecord) -> str:
    identifier = str(uuid.uuid4())
    known = read_stream_file(workspace.home, stream.pipeline, stream.name)
    if known is not None:
        content = StreamFile(identifier, known.generation, known.sink, known.output_mode, known.pipeline_file)
        write_stream_file(workspace.home, stream.pipeline, stream.name, content)
    return identifier
