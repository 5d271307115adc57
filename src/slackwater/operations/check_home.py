"""The first checks of every command that changes something: a moved home, a lost ledger."""

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from slackwater.core.commands import copy_again_command
from slackwater.core.errors import Refused
from slackwater.core.records import StreamRecord
from slackwater.core.sink import Owner
from slackwater.diagnose.checks.stream import misplaced
from slackwater.diagnose.refusal import refusal
from slackwater.ledger.home import (
    ensure_identity,
    files_in,
    place_of,
    read_identity,
    read_stream_file,
    shared_path,
    write_identity,
    write_stream_file,
)
from slackwater.ledger.lease import delete_lease_file
from slackwater.ledger.recording.stream_files import restore_lost, write_stream_file_of
from slackwater.ledger.workspace import Workspace
from slackwater.sinks.common.registry import open_each
from slackwater.storage.open import Location


def check_home(workspace: Workspace, say: Callable[[str], None]) -> None:
    """Raises Refused (``home-moved``, ``home-copied``) unless the user has accepted it."""
    place, was = place_of(workspace.home, workspace.in_home)
    if place != "here":
        raise refusal(misplaced(place, was), "all")
    ensure_identity(workspace.home, workspace.ledger.home_of_operations())
    _restore(workspace, say)


def accept_home(workspace: Workspace, consent: Literal["moved", "copied"], say: Callable[[str], None]) -> bool:
    """Returns whether it was moved or copied so. Raises as ``check_home`` if it was the other."""
    place, was = place_of(workspace.home, workspace.in_home)
    if place == consent:
        if place == "copied":
            _refuse_links(workspace, str(was))
        # Also the ids and places of streams that only stream.json has are those of the original.
        _restore(workspace, say)
        _accept(workspace, str(was), copied=place == "copied")
    check_home(workspace, say)
    return place == consent


def _refuse_links(workspace: Workspace, was: str) -> None:
    """Raises Refused (``home-shares-files``) for a copy with links (cp -l, rsync --link-dest, a linked folder)."""
    home, original = workspace.home.location.local, Location(was).local
    if home is None or original is None:
        # A store of objects has no links.
        return
    shared = shared_path(home, original)
    if shared is not None:
        raise Refused(
            "home-shares-files",
            "The copied home shares a file or folder with the original by a link; a change would be in both",
            where=str(shared),
            expected="files of its own",
            found=f"a link to {original / shared.relative_to(home)}",
            hint=copy_again_command(str(original), str(home.resolve())),
        )


def _restore(workspace: Workspace, say: Callable[[str], None]) -> None:
    restored = restore_lost(workspace.home, workspace.ledger, workspace.in_home)
    if restored:
        say(
            f"the ledger had no record of {', '.join(restored)}: restored from stream.json and the checkpoints; "
            "what only the ledger had recorded is lost"
        )


def _accept(workspace: Workspace, was: str, *, copied: bool) -> None:
    home, ledger = workspace.home, workspace.ledger
    streams = ledger.streams()
    if copied:
        if workspace.settings.ledger is not None:
            raise Refused(
                "home-shares-ledger",
                "A copied home needs a ledger of its own; this home still uses the original's ledger",
                where=str(home.location),
                hint="set a different ledger in slackwater.toml, or leave it out to use one in the home",
            )
        # Before the new ids: an output without an owner file has to get the id that ``stream.json`` still has.
        _leave_outputs_to_the_original(workspace, streams, was)
        ledger.replace_ids({stream.full_name: _new_id(workspace, stream) for stream in streams})
        for stream in streams:
            # It names a process of the original, which may still run and does not write to this copy.
            delete_lease_file(home.stream_folder(stream.pipeline, stream.name))
    ledger.relocate(was, home.resolved)
    if copied:
        _end_operations_of_the_original(workspace, streams, was)
        identifier = str(uuid.uuid4())
    else:
        identifier = ensure_identity(home, ledger.home_of_operations())
    write_identity(home, identifier)
    for stream in streams:
        write_stream_file_of(home, ledger, stream.full_name)


def _leave_outputs_to_the_original(workspace: Workspace, streams: list[StreamRecord], was: str) -> None:
    for stream in streams:
        known = read_stream_file(workspace.home, stream.pipeline, stream.name)
        if known is None:
            continue
        for output in open_each(stream.sink):
            if output.owner() is None and (output.last_written() or 0) >= 0:
                output.claim(Owner(known.id, stream.full_name, was))


def _end_operations_of_the_original(workspace: Workspace, streams: list[StreamRecord], was: str) -> None:
    """The original finishes or undoes its operations, also those without copies in the ledger."""
    ledger = workspace.ledger
    for stream in streams:
        for operation in ledger.operations(stream.full_name):
            if ledger.operation_files(operation.id) is None:
                folder = workspace.home.operation(stream.pipeline, stream.name, operation.id)
                # A path is never the id of a home, so that the operation counts as one of another home.
                ledger.record_operation_files(files_in(folder, home=was, stream_id=stream.id or ""))
            if operation.ended_ms is None:
                ledger.end_operation(operation.id, "refused", f"started in {was}, and not in this copy")


def is_own(workspace: Workspace, operation: str) -> bool:
    known, identity = workspace.ledger.operation_files(operation), read_identity(workspace.home.location)
    return known is None or identity is None or known.home == identity[0]


def check_own(workspace: Workspace, operation: str) -> None:
    """Raises Refused (``operation-foreign``) for an operation of the original home."""
    if not is_own(workspace, operation):
        raise Refused(
            "operation-foreign",
            f"Operation {operation} was started in the original of this copied home, and changes its outputs; "
            "nothing was changed",
            where=str(workspace.home.location),
            hint="undo it in the original home; here, give the stream an output of its own, and run it",
        )


def _new_id(workspace: Workspace, stream: StreamRecord) -> str:
    identifier = str(uuid.uuid4())
    known = read_stream_file(workspace.home, stream.pipeline, stream.name)
    if known is not None:
        content = replace(known, id=identifier, generations=())
        write_stream_file(workspace.home, stream.pipeline, stream.name, content)
    return identifier
