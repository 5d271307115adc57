"""``slackwater prune``: deletes old generations of checkpoints, and backups that only their undo needs."""

from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from slackwater.cli.common.arguments import Format
from slackwater.cli.common.console import confirm, copied, err, out, prepare, print_json, say
from slackwater.core.errors import NotFound
from slackwater.core.records import OperationRecord, StreamRecord
from slackwater.core.units import counted
from slackwater.diagnose.checks.stream import in_progress, unfinished
from slackwater.diagnose.refusal import refusal
from slackwater.ledger.lease import RUN, LeaseCheck, view_of
from slackwater.ledger.lease_keeper import LeaseKeeper
from slackwater.ledger.recording.log_copier import copy_new
from slackwater.ledger.recording.snapshot import stream_id
from slackwater.ledger.sqlite import Say
from slackwater.ledger.workspace import Workspace, open_workspace
from slackwater.operations.actions.batches import OneBatch
from slackwater.operations.apply.journal import PRUNED, Journal
from slackwater.operations.apply.operation import BACKUP
from slackwater.operations.apply.undo_operation import ENDED_WITHOUT_EFFECT, plan_of_operation
from slackwater.operations.check_home import check_home, is_own
from slackwater.operations.checkpoint_path import kept_places
from slackwater.operations.plan.plan import Plan
from slackwater.sinks.common.contract import of_any_query
from slackwater.sinks.common.registry import open_each, open_output
from slackwater.storage.open import Location, open_read_store, open_write_store

_BEING_DELETED = ".pruned-"
_FINAL = {"applied", PRUNED}
"""Statuses of operations whose effect is, or was, in use."""
SCHEMA = "slackwater.prune/1"


@dataclass(frozen=True, slots=True)
class Prunable:
    """The folders of a stream that a prune removes.

    ``operations`` can then not be undone; in ``interrupted`` a prune was killed. ``folders`` are removed, generations
    first; ``bytes`` is their size. ``left`` are folders next to the checkpoints without a record; they stay.
    """

    stream: str
    generations: tuple[int, ...]
    operations: tuple[str, ...]
    interrupted: tuple[str, ...]
    folders: tuple[Location, ...]
    bytes: int
    left: tuple[Location, ...] = ()

    @property
    def has_something(self) -> bool:
        return bool(self.folders or self.operations)


def prunable(workspace: Workspace, name: str | None, keep: int) -> tuple[Prunable, ...]:
    """Generations older than the ``keep`` newest next to the generation in use.

    Raises NotFound for an unknown stream, Refused (``operation-unfinished``) if an operation has not ended, FormatError
    for a malformed plan.
    """
    ledger = workspace.ledger
    streams = ledger.streams() if name is None else [ledger.find_stream(name)]
    found = (_of_stream(workspace, stream, keep) for stream in streams)
    return tuple(one for one in found if one.has_something or one.left)


def delete_prunable(workspace: Workspace, name: str | None, keep: int, say: Say) -> tuple[Prunable, ...]:
    """Remove the folders of ``prunable``, and return its result. A running stream is not interrupted. Raises LeaseHeld
    if another command works on a stream, and as ``prunable``; nothing is changed then.
    """
    check_home(workspace, say)
    removed: list[Prunable] = []
    for one in prunable(workspace, name, keep):
        if not one.has_something:
            removed.append(one)
            continue
        stream = workspace.ledger.find_stream(one.stream)
        ledger, name = workspace.ledger, stream.full_name
        with ExitStack() as held:
            lease = view_of(ledger, name)
            if lease.state == "held" and lease.record is not None and lease.record.purpose == RUN:
                # A run's lease keeps operations away. If another process takes it, an operation may use the folders.
                fence = lease.record.fence
            else:
                fence = held.enter_context(LeaseKeeper([name], workspace.home, ledger, "prune", say)).fence(name)
            # What is in use may have changed until the lease was taken.
            again = _of_stream(workspace, stream, keep)
            say(f"{one.stream}: removing {counted(len(again.folders), 'folder')}")
            _remove(workspace, stream, again, LeaseCheck(ledger, name, fence))
            removed.append(again)
    return tuple(removed)


def _of_stream(workspace: Workspace, stream: StreamRecord, keep: int) -> Prunable:
    home, ledger, name = workspace.home, workspace.ledger, stream.full_name
    operations = ledger.operations(name)
    lease = view_of(ledger, name)
    holder = lease.record.purpose if lease.state == "held" and lease.record else None
    operation = ledger.open_operation(name)
    for finding in (*in_progress(operation, holder), *unfinished(operation, holder, stream.session)):
        raise refusal(finding, stream.name)
    current = ledger.find_stream(name).current_generation
    own = (one.id for one in operations if is_own(workspace, one.id))
    recorded, places = kept_places(home, ledger, stream, own)
    checkpoints = {number: one for number, one in recorded.items() if _exists(one)}
    interrupted = [started for one in places if _exists(started := _being_deleted(one))]
    old = [number for number in sorted(checkpoints) if number != current]
    plans = [(one, _plan_or_none(workspace, one)) for one in operations if one.status in _FINAL]
    actions = {one.id: plan.actions if plan is not None else () for one, plan in plans}
    # No operation goes back to the checkpoint of a backfill's batch, which was never in use; undo does not need it.
    of_batches = {one.number for each in actions.values() for one in each if isinstance(one, OneBatch)}
    ahead = [number for number in old if number not in of_batches]
    kept = {current, *ahead[len(ahead) - keep :]} if keep else {current}
    generations = tuple(number for number in old if number not in kept)
    lost = [
        one
        for one, _ in plans
        if any(action.switch is not None and action.switch.old not in kept for action in actions[one.id])
    ]
    ended = [one for one in operations if one.status in ENDED_WITHOUT_EFFECT] + lost
    backups = {one.id: home.operation(stream.pipeline, stream.name, one.id) / BACKUP for one in ended}
    left = {one: backup for one, backup in backups.items() if _exists(backup)}
    folders = [checkpoints[number] for number in generations]
    folders += [one for backup in backups.values() if _exists(one := _being_deleted(backup))]
    folders += [*interrupted, *left.values()]
    undoable = tuple(one.id for one in lost if one.status != PRUNED)
    half = tuple(one.id for one in lost if one.status == PRUNED and one.id in left)
    parent, made = home.checkpoints(stream.pipeline, stream.name), {*checkpoints.values(), *interrupted}
    others = sorted({parent / entry.name for entry in open_read_store(parent).list()} - made)
    return Prunable(name, generations, undoable, half, tuple(folders), sum(map(_size, folders)), tuple(others))


def _being_deleted(folder: Location) -> Location:
    return folder.parent / (_BEING_DELETED + folder.name)


def _exists(folder: Location) -> bool:
    return open_read_store(folder).exists("")


def _plan_or_none(workspace: Workspace, operation: OperationRecord) -> Plan | None:
    try:
        return plan_of_operation(workspace, operation)
    except NotFound as error:
        if error.code != "operation-folder-missing":
            raise
        return None


def _size(location: Location) -> int:
    store, total = open_read_store(location), 0
    for folder in store.folders():
        for index, name in enumerate(folder.files):
            with suppress(FileNotFoundError):
                size = store.size(f"{folder.path}/{name}") if folder.sizes is None else folder.sizes[index]
                total += size
    return total


def _remove(workspace: Workspace, stream: StreamRecord, what: Prunable, check_lease: Callable[[], None]) -> None:
    home, ledger = workspace.home, workspace.ledger
    for number, folder in zip(what.generations, what.folders, strict=False):
        # What only the folder has of ranges and watermarks stays in the ledger.
        copy_new(ledger, stream.full_name, number, open_read_store(str(folder)))
    for identifier in what.operations:
        folder = home.operation(stream.pipeline, stream.name, identifier)
        Journal(folder, ledger, check_lease).write_end(PRUNED, ledger.now_ms())
        ledger.end_operation(identifier, PRUNED, "applied; can no longer be undone")
    output = of_any_query(open_output(stream.sink))
    if output.traits.swaps:
        # Before its backup is removed, which shows that a prune was interrupted.
        for identifier in (*what.operations, *what.interrupted):
            if not is_own(workspace, identifier):
                continue
            # In a copied home, an output can be the original home's.
            owners = [one.owner() for one in open_each(stream.sink)]
            if all(owner is None or owner.stream_id == stream_id(home, stream) for owner in owners):
                check_lease()
                output.discard(identifier, "replaced")
    for folder in what.folders:
        check_lease()
        # A link's target stays. If a store cannot rename folders, a killed prune leaves a part under a generation's
        # name, which the next prune removes.
        store, name = open_write_store(folder.parent), folder.name
        if store.traits.moves_directories and not name.startswith(_BEING_DELETED):
            name = _BEING_DELETED + name
            store.rename_folder(folder.name, name)
        store.delete_tree(name)


def prune(*, stream: str | None, keep: int, yes: bool, home: str | None, shown_as: Format) -> int:
    settings = prepare(home, shown_as, logging=True)
    with open_workspace(settings, restore=True) as workspace:
        found = prunable(workspace, stream, keep)
        doomed = [one for one in found if one.has_something]
        if doomed and not yes:
            for one in doomed:
                err().print(_line(one, "would delete"))
            confirm(doomed[0].stream if len(doomed) == 1 else "all", "delete them")
        removed = delete_prunable(workspace, stream, keep, say)
    if shown_as is Format.JSON:
        streams = [
            copied(one, "stream", "generations", "operations")
            | {"folders": list(map(str, one.folders)), "bytes": one.bytes, "left": list(map(str, one.left))}
            for one in removed
        ]
        print_json({"schema": SCHEMA, "streams": streams})
        return 0
    for one in removed:
        if one.has_something:
            out().print(_line(one, "deleted"))
        for path in one.left:
            err().print(f"{one.stream}: not deleted, as no run or operation has made it: {path}")
    if not any(one.has_something for one in removed):
        out().print("nothing to delete")
    return 0


def _line(one: Prunable, verb: str) -> str:
    generations = ", ".join(map(str, one.generations)) or "none"
    undo = f"; no longer to be undone: {', '.join(one.operations)}" if one.operations else ""
    return f"{one.stream}: {verb} {len(one.folders)} folders, {one.bytes:,} bytes; generations {generations}{undo}"
