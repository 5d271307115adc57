"""Use case: delete old generations of streams, and the backups of the operations that cannot be undone without them.

Nothing else deletes them. What may not happen: a generation in use is deleted; an undo that finds half a generation.
So an operation is first recorded as ``pruned``, then a folder gets a name that is no generation's, then it is removed:
a prune that was killed is finished by the next one.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from slackwater.app.acting import Consent, acting
from slackwater.app.undo_operation import plan_of_operation
from slackwater.app.workspace import Workspace
from slackwater.apply.journal import PRUNED, Journal
from slackwater.apply.operation import BACKUP
from slackwater.diagnose.number_line import open_operation
from slackwater.diagnose.refusal import refusal
from slackwater.lease.keeper import LeaseKeeper
from slackwater.lease.lease import RUN
from slackwater.lease.view import view_of
from slackwater.ledger.ledger import Ledger
from slackwater.model.actions import RunAside, SwitchGeneration
from slackwater.model.beside import beside
from slackwater.model.records import OperationRecord, StreamRecord
from slackwater.plan.adopted import KEPT
from slackwater.recording.log_copier import copy_new
from slackwater.sinks.contract import Swappable
from slackwater.sinks.registry import open_output
from slackwater.storage.open import local_path_of, open_read_store

_ASIDE = ".pruned-"
"""Prefix of the name of a folder that is being removed."""

_FINAL = {"applied", PRUNED}
"""Statuses of operations whose effect is in use, or was."""


@dataclass(frozen=True, slots=True)
class Prunable:
    """What a prune removes of one stream.

    ``generations`` are numbers of checkpoint folders; ``operations`` are ids of those that cannot be undone afterwards;
    ``interrupted`` are ids of those that a prune was killed in. ``folders`` are all folders that are removed, those of
    the generations first, ``bytes`` their size.
    """

    stream: str
    generations: tuple[int, ...]
    operations: tuple[str, ...]
    interrupted: tuple[str, ...]
    folders: tuple[Path, ...]
    bytes: int


def prunable(workspace: Workspace, name: str | None, keep: int) -> tuple[Prunable, ...]:
    """What is older than the ``keep`` newest generations beside the one in use, of one stream or of all.

    Streams of which nothing would be removed are left out. Raises NotFound for an unknown stream, Refused
    (``operation-unfinished``) where an operation has not ended, FormatError for a plan that cannot be parsed.
    """
    ledger = workspace.ledger
    streams = ledger.streams() if name is None else [ledger.find_stream(name)]
    found = (_of_stream(workspace, stream, keep) for stream in streams)
    return tuple(one for one in found if one.folders or one.operations)


def prune(
    workspace: Workspace, name: str | None, keep: int, say: Callable[[str], None], consent: Consent = None
) -> tuple[Prunable, ...]:
    """Remove what ``prunable`` lists, and return it. A stream that is running is not interrupted.

    Raises LeaseHeld where another command works on a stream, and what ``prunable`` raises; nothing is changed then.
    """
    acting(workspace, consent, say)
    removed: list[Prunable] = []
    for one in prunable(workspace, name, keep):
        stream = workspace.ledger.find_stream(one.stream)
        with _no_operation_starts(workspace, stream, say):
            # What is in use may have changed until the lease was taken.
            again = _of_stream(workspace, stream, keep)
            say(f"{one.stream}: removing {len(again.folders)} folders")
            _remove(workspace, stream, again)
            removed.append(again)
    return tuple(removed)


def _of_stream(workspace: Workspace, stream: StreamRecord, keep: int) -> Prunable:
    home, name = workspace.home, stream.full_name
    operations = workspace.ledger.operations(name)
    _refuse_unfinished(workspace.ledger, stream)
    current = workspace.ledger.find_stream(name).current_generation
    checkpoints, interrupted = _checkpoints(workspace, stream)
    old = [number for number in sorted(checkpoints) if number != current]
    # No operation goes back to the checkpoint of a side output, and undo does not need it.
    ahead = [number for number in old if number not in _aside(workspace, operations)]
    kept = {current, *ahead[len(ahead) - keep :]} if keep else {current}
    generations = tuple(number for number in old if number not in kept)
    lost = [one for one in operations if one.status in _FINAL and not _switched_from(workspace, one) <= kept]
    ended = [one for one in operations if one.status not in _FINAL] + lost
    backups = {one.id: home.operation(stream.pipeline, stream.name, one.id) / BACKUP for one in ended}
    left = {one: backup for one, backup in backups.items() if backup.is_dir()}
    folders = [checkpoints[number] for number in generations]
    folders += [aside for backup in backups.values() if (aside := backup.with_name(_ASIDE + backup.name)).is_dir()]
    folders += [*interrupted, *left.values()]
    undoable = tuple(one.id for one in lost if one.status != PRUNED)
    half = tuple(one.id for one in lost if one.status == PRUNED and one.id in left)
    return Prunable(name, generations, undoable, half, tuple(folders), sum(map(_size, folders)))


def _checkpoints(workspace: Workspace, stream: StreamRecord) -> tuple[dict[int, Path], list[Path]]:
    """The folders that operations have left, by generation, and those whose removal was interrupted."""
    home, ledger, name = workspace.home, workspace.ledger, stream.full_name
    if not stream.is_watched:
        folders = {
            number: home.checkpoint(stream.pipeline, stream.name, number)
            for number in home.generation_numbers(stream.pipeline, stream.name)
        }
        return folders, sorted(home.checkpoints(stream.pipeline, stream.name).glob(f"{_ASIDE}*"))
    path = local_path_of(ledger.generation(name, stream.current_generation).location)
    operations = ledger.operations(name)
    if path is None:
        owned = [home.operation(stream.pipeline, stream.name, one.id) / KEPT for one in operations]
    else:
        # Beside the checkpoint that the user's code names: nothing there is removed but what an operation owns.
        real = Path(path).resolve()
        owned = [real.with_name(beside(real.name, one.id)) for one in operations]
    known = {one.location: one.number for one in ledger.generations(name)}
    folders = {known[str(one)]: one for one in owned if str(one) in known and one.is_dir()}
    return folders, [aside for one in owned if (aside := one.with_name(_ASIDE + one.name)).is_dir()]


def _refuse_unfinished(ledger: Ledger, stream: StreamRecord) -> None:
    lease = view_of(ledger.lease(stream.full_name), ledger.now_ms())
    holder = lease.record.purpose if lease.state == "held" and lease.record else None
    for finding in open_operation(ledger.open_operation(stream.full_name), holder):
        raise refusal(finding, stream.name)


def _switched_from(workspace: Workspace, operation: OperationRecord) -> set[int]:
    """The generations to which an undo of the operation would switch back."""
    plan = plan_of_operation(workspace, operation)
    return {action.old for action in plan.actions if isinstance(action, SwitchGeneration)}


def _aside(workspace: Workspace, operations: Sequence[OperationRecord]) -> set[int]:
    """The generations that were built to fill side outputs."""
    plans = (plan_of_operation(workspace, one) for one in operations if one.status in _FINAL)
    return {action.number for plan in plans for action in plan.actions if isinstance(action, RunAside)}


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


@contextmanager
def _no_operation_starts(workspace: Workspace, stream: StreamRecord, say: Callable[[str], None]) -> Iterator[None]:
    """A run holds the lease until it ends, and keeps operations away; else the lease is taken here."""
    lease = view_of(workspace.ledger.lease(stream.full_name), workspace.ledger.now_ms())
    if lease.state == "held" and lease.record is not None and lease.record.purpose == RUN:
        yield
        return
    with LeaseKeeper([stream], workspace.home, workspace.ledger, "prune", say):
        yield


def _remove(workspace: Workspace, stream: StreamRecord, what: Prunable) -> None:
    home, ledger = workspace.home, workspace.ledger
    for number, folder in zip(what.generations, what.folders, strict=False):
        # What only the folder has of ranges and watermarks stays in the ledger.
        copy_new(ledger, stream.full_name, number, open_read_store(str(folder)))
    for identifier in what.operations:
        Journal(home.operation(stream.pipeline, stream.name, identifier)).write_end(PRUNED, ledger.now_ms())
        ledger.end_operation(identifier, PRUNED, "applied; can no longer be undone")
    output = open_output(stream.sink)
    if isinstance(output, Swappable) and output.traits.swaps:
        # Before its backup is removed, which shows that a prune was interrupted.
        for identifier in (*what.operations, *what.interrupted):
            output.discard_replaced(identifier)
    for folder in what.folders:
        aside = folder if folder.name.startswith(_ASIDE) else folder.with_name(_ASIDE + folder.name)
        if aside != folder:
            folder.rename(aside)
        shutil.rmtree(aside)
