"""Gathers a stream's facts; its checkpoint is listed once."""

from collections.abc import Iterable

from slackwater.checkpoint.layout import SST_FOLDERS, STATE, parse_state_file
from slackwater.checkpoint.listing import bytes_if_cheap
from slackwater.checkpoint.logs import loadable_batches
from slackwater.checkpoint.opened import OpenedCheckpoint
from slackwater.checkpoint.reader import collector_off
from slackwater.core.checkpoint import Depth
from slackwater.core.errors import DataError
from slackwater.core.facts import Unknown
from slackwater.core.program import Program, program_of_batch
from slackwater.core.records import StreamRecord
from slackwater.core.sink import Cut
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.number_line import findings_about
from slackwater.facts.sources import tried
from slackwater.ledger.recording.history import executed, history_of, readers_of
from slackwater.ledger.recording.log_copier import copy_new
from slackwater.ledger.recording.snapshot import look_at_stream
from slackwater.ledger.workspace import Workspace
from slackwater.operations.apply.operation import QueryRuntime
from slackwater.operations.checkpoint_path import checkpoint_path
from slackwater.operations.plan.context import StreamFacts
from slackwater.sinks.common.registry import open_output
from slackwater.storage.open import open_read_store


# A history is hundreds of thousands of objects without cycles, which the garbage collector would search in vain.
@collector_off()
def gather(
    workspace: Workspace,
    stream: StreamRecord,
    reader: QueryRuntime | None = None,
    depth: Depth = "start",
    *,
    with_executed: bool = False,
    own_lease: bool = False,
) -> StreamFacts:
    """The ledger is updated first, unless checkpoint or output is foreign or unreadable. ``own_lease``: the caller
    holds the lease. Without a ``reader`` the pipeline file is not read.
    """
    ledger, name, file = workspace.ledger, stream.full_name, stream.pipeline_file
    place = tried(lambda: checkpoint_path(ledger, stream), "its path cannot be read")

    def look() -> tuple[Snapshot, frozenset[int], int | None]:
        seen, opened = look_at_stream(ledger, workspace.home, stream, depth, own_lease=own_lease)
        return seen, _states(seen, opened), bytes_if_cheap(opened.store, opened.listing)

    def read() -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        if reader is None or not file:
            return "", (), ()
        changed = _environment_changes(workspace, stream, reader)
        return reader.digest(file), reader.environment_read(file), changed

    looked = tried(look, "checkpoint or output cannot be read")
    seen, states, size_bytes = (looked, frozenset[int](), None) if isinstance(looked, Unknown) else looked
    if isinstance(seen, Snapshot) and seen.output.unreadable is None and not findings_about(seen, "identity"):
        reconcile(workspace, stream)
    code = tried(read, "the pipeline file cannot be read")
    digest, environment, changed = (code, (), ()) if isinstance(code, Unknown) else code
    generations = [generation.number for generation in ledger.generations(name)]
    return StreamFacts(
        stream=stream,
        seen=seen,
        recorded=tried(lambda: history_of(ledger, stream), "the history cannot be read"),
        place=place,
        # Also above folders that no record names: after a lost ledger one of them may be the checkpoint in use.
        next_generation=max([*generations, *workspace.home.generation_numbers(stream.pipeline, stream.name)]) + 1,
        states=states,
        size_bytes=size_bytes,
        digest=digest,
        environment=environment,
        environment_changed=changed,
        executed=tuple(executed(ledger, stream)) if with_executed else (),
    )


def _environment_changes(workspace: Workspace, stream: StreamRecord, reader: QueryRuntime) -> tuple[str, ...]:
    ledger, name = workspace.ledger, stream.full_name
    programs = next((one.programs for one in ledger.generations(name) if one.number == stream.current_generation), None)
    newest = program_of_batch(programs, ledger.newest_entry(name, "commits"))
    return () if newest is None else reader.environment_changes(workspace, name, Program.from_json(newest))


def _states(snapshot: Snapshot, opened: OpenedCheckpoint) -> frozenset[int]:
    found = frozenset(loadable_batches(opened.logs, opened.inventory))
    paths = (damage.path for damage in snapshot.damage if damage.path.startswith(f"{STATE}/"))
    if any(f"/{folder}/" in damage.path for damage in snapshot.damage for folder in SST_FOLDERS):
        # Any version may list the table.
        return frozenset()
    versions = [file.version for path in paths if (file := parse_state_file(path.rpartition("/")[2])) is not None]
    # Version N + 1 is the state after batch N, and each later version may need the damaged file.
    return frozenset(batch for batch in found if batch + 1 < min(versions, default=batch + 2))


def reconcile(workspace: Workspace, stream: StreamRecord) -> None:
    """Copy missing records into the ledger, if this user may write to it."""
    if not workspace.can_refresh(stream.full_name):
        return
    if stream.is_watched and workspace.ledger.open_operation(stream.full_name) is not None:
        # Until it has ended, the directory at the path may be the checkpoint of another generation than recorded.
        return
    generation = workspace.ledger.generation(stream.full_name, stream.current_generation)
    checkpoint, output = open_read_store(generation.location), open_output(stream.sink)
    copy_new(workspace.ledger, stream.full_name, generation.number, checkpoint, output)


def update_ledger(workspace: Workspace, streams: Iterable[StreamRecord], updated: set[str]) -> None:
    for stream in streams:
        if stream.full_name not in updated:
            reconcile(workspace, stream)
            updated.add(stream.full_name)


def readers_now(workspace: Workspace, stream: StreamRecord, cut: Cut, updated: set[str]) -> list[str]:
    """Finds readers of a cut, also with logs not copied yet. ``updated``: see ``update_ledger``."""
    others = (one for one in workspace.ledger.streams() if one.full_name != stream.full_name)
    update_ledger(workspace, others, updated)
    return readers_of(workspace.ledger, stream, cut)


def refuse_unreadable(snapshot: Snapshot) -> None:
    problem = snapshot.output.unreadable
    if problem is not None:
        raise DataError(
            problem.code,
            problem.message,
            where=problem.where,
            expected=problem.expected,
            found=problem.found,
            hint=problem.hint or "restore the file from a backup; nothing was changed",
        )
