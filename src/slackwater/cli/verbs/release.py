"""``slackwater release`` forgets a stream of the user's own program, ``slackwater home`` accepts a moved home."""

from typing import Literal

from slackwater.cli.common.arguments import Format
from slackwater.cli.common.console import confirm, err, prepare, say
from slackwater.cli.common.pages import show
from slackwater.core.commands import command
from slackwater.core.errors import Refused
from slackwater.core.records import StreamRecord
from slackwater.diagnose.checks.stream import unfinished
from slackwater.diagnose.refusal import refusal
from slackwater.ledger.lease_keeper import LeaseKeeper
from slackwater.ledger.recording.snapshot import stream_id
from slackwater.ledger.recording.stream_files import forget
from slackwater.ledger.workspace import Workspace, find_stream, open_workspace
from slackwater.operations.check_home import accept_home, check_home
from slackwater.operations.stopped import check_stopped
from slackwater.sinks.common.registry import open_each
from slackwater.storage.open import open_read_store

SCHEMA = "slackwater.release/1"
HOME_SCHEMA = "slackwater.home/1"
_KEEPS_GENERATION = "applied"


def released(workspace: Workspace, name: str) -> StreamRecord:
    """Raises NotFound or Refused."""
    check_home(workspace, workspace.say)
    stream = find_stream(workspace.ledger, name)
    if not stream.is_watched:
        raise Refused(
            "release-pipeline",
            f"Stream {stream.full_name} is run from a pipeline file: its checkpoint is a part of the home",
            expected="a stream of a program that starts its own queries",
            found=stream.full_name,
            hint=f"to start again, plan a reset: {command('plan', 'reset', stream.full_name, '--from', 'earliest')}",
        )
    for finding in unfinished(workspace.ledger.open_operation(stream.full_name), None, stream.session):
        raise refusal(finding, stream.name)
    kept = [one.id for one in workspace.ledger.operations(stream.full_name) if one.status == _KEEPS_GENERATION]
    if kept:
        raise Refused(
            "release-kept",
            f"Operations on stream {stream.full_name} keep the checkpoint that they replaced",
            expected="no operation that keeps a checkpoint",
            found=", ".join(kept),
            hint=f"delete these checkpoints: {command('prune', stream.full_name, '--keep', '0')}",
        )
    return stream


def release_stream(workspace: Workspace, name: str, *, stopped: bool) -> StreamRecord:
    """Raises as ``released``, LeaseHeld and Refused (``checkpoint-in-use``)."""
    stream = released(workspace, name)
    check_stopped(workspace, stream, since_ms=0, stopped=stopped)
    if "/" in stream.name or stream.name in {".", ".."}:
        # No run records such a name; a ledger that was edited can have one, and its folder would be of other streams.
        workspace.ledger.forget_stream(stream.full_name)
        return stream
    identifier = stream_id(workspace.home, stream)
    with LeaseKeeper([stream.full_name], workspace.home, workspace.ledger, "release", workspace.say):
        # What may have happened until the lease was taken.
        released(workspace, stream.full_name)
        if identifier is not None:
            for output in open_each(stream.sink):
                output.release(identifier)
        forget(workspace.home, workspace.ledger, stream)
    return stream


def release(*, stream: str, yes: bool, home: str | None, stopped: bool, shown_as: Format) -> int:
    settings = prepare(home, shown_as)
    with open_workspace(settings, restore=True, say=say) as workspace:
        found = released(workspace, stream)
        location = workspace.ledger.generation(found.full_name, found.current_generation).location
        is_there = open_read_store(location).exists("")
        if not yes:
            then = "stays as it is" if is_there else "no longer exists"
            err().print(f"{found.full_name}: the record of its batches will be deleted; {location} {then}")
            confirm(found.full_name, "forget it")
        release_stream(workspace, found.full_name, stopped=stopped)
    then = "was not changed" if is_there else "did not exist any more"
    document = {"schema": SCHEMA, "stream": found.full_name, "checkpoint": location}
    show(shown_as, document, lambda: f"{found.full_name}: forgotten; {location} {then}")
    return 0


def accept(*, consent: Literal["moved", "copied"], home: str | None, shown_as: Format) -> int:
    settings = prepare(home, shown_as)
    with open_workspace(settings, restore=True, say=say) as workspace:
        accepted = accept_home(workspace, consent, workspace.say)
        location = str(workspace.home.location)
    document = {"schema": HOME_SCHEMA, "home": location, "accepted": consent if accepted else None}
    own = ", with ids of its own" if consent == "copied" else ""
    text = f"the home is now at {location}{own}" if accepted else f"nothing to accept: {location} is in its place"
    show(shown_as, document, lambda: text)
    say(f"next: {command('status')}")
    return 0
