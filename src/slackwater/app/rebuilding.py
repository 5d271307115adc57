"""Derives the plan of a rebuild: once to show it, and again before it is applied, to see that it is still the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from slackwater.app.workspace import Workspace
from slackwater.diagnose.identity import identity_findings
from slackwater.diagnose.number_line import operation_findings
from slackwater.diagnose.refusal import refusal
from slackwater.errors import DataError, Refused, UsageError
from slackwater.model.history import History
from slackwater.model.plan import Plan, Request
from slackwater.model.profile import QueryProfile
from slackwater.model.records import StreamRecord
from slackwater.model.sink import Cut
from slackwater.model.snapshot import Snapshot
from slackwater.plan.contributing import Code
from slackwater.plan.rebuild import BEFORE_ALL, Rebuild, Scope, is_cut, plan_of, scope_of
from slackwater.plan.words import plan_command
from slackwater.recording.history import history_of, readers_of
from slackwater.recording.log_copier import copy_new
from slackwater.recording.reach import StoreReach
from slackwater.recording.snapshot import SnapshotContext, read_snapshot
from slackwater.runtime.loader import digest, environment_read
from slackwater.sinks.registry import open_output
from slackwater.storage.open import open_read_store

SHOWN = 3
LAST_WRITTEN = "last-written"
EARLIEST = "earliest"
BATCH = "batch:"
LARGEST_BATCH = 2**63 - 1
DIGITS_MAX = 19
"""Batch ids are 64 bits wide."""

QueryReader = Callable[[], QueryProfile | None]
"""Reads the present query's plan with Spark; ``None`` where Spark is not to be had."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user asked for. ``pipeline_file``: the upgraded file, ``None`` for the one of the last run."""

    request: Request
    pipeline_file: str | None = None


@dataclass(frozen=True, slots=True)
class Derived:
    """A plan with what it was derived from."""

    plan: Plan
    snapshot: Snapshot
    history: History


def target_of(request: Request) -> int | None:
    """The batch that a request's target names, -1 for ``earliest``, ``None`` for ``last-written``.

    Raises UsageError (``target``) for anything else.
    """
    if request.target == LAST_WRITTEN:
        return None
    if request.target == EARLIEST:
        return BEFORE_ALL
    number = request.target.removeprefix(BATCH)
    if number == request.target or not _is_batch(number):
        raise UsageError(
            "target",
            "A rebuild cannot be planned for this target",
            expected=f"{LAST_WRITTEN}, {EARLIEST} or {BATCH}N",
            found=request.target[:60],
            hint="slackwater plan rebuild --help",
        )
    return int(number)


def _is_batch(number: str) -> bool:
    return number.isascii() and number.isdigit() and len(number) <= DIGITS_MAX and int(number) <= LARGEST_BATCH


def derive(
    workspace: Workspace,
    stream: StreamRecord,
    asked: Asked,
    read_query: QueryReader,
    *,
    identity: tuple[str, str],
    own_lease: bool = False,
) -> Derived:
    """The plan for a stream as it is now. ``identity`` is the plan's id and the time at which it was made.

    ``read_query`` is called only where the recorded batches ran with other code. Raises Refused where no exact and safe
    way exists, DataError where something that is needed cannot be read.
    """
    reference = asked.pipeline_file or stream.pipeline_file
    snapshot = read_snapshot(
        SnapshotContext(workspace.ledger, workspace.home, own_lease=own_lease), replace(stream, pipeline_file=reference)
    )
    _refuse(snapshot, operation=identity[0])
    reconcile(workspace, stream)
    history = history_of(workspace.ledger, stream)
    rebuild = _rebuild(workspace, snapshot, history, asked, read_query)
    scope = scope_of(rebuild)
    cut = _cut(workspace, rebuild, scope)
    _refuse_missing(rebuild, scope)
    return Derived(plan_of(rebuild, scope, cut, *identity), snapshot, history)


def reconcile(workspace: Workspace, stream: StreamRecord) -> None:
    """Copy into the ledger what the checkpoint and the sink have and it lacks, if this user may write to it."""
    if not workspace.can_refresh(stream.full_name):
        return
    generation = workspace.ledger.generation(stream.full_name, stream.current_generation)
    checkpoint, output = open_read_store(generation.location), open_output(stream.sink)
    copy_new(workspace.ledger, stream.full_name, generation.number, checkpoint, output)


def _refuse(snapshot: Snapshot, operation: str) -> None:
    """Stops that no rebuild removes: a foreign home or output, an unreadable sink, an unfinished operation."""
    for finding in identity_findings(snapshot):
        raise refusal(finding, snapshot.stream.name)
    if snapshot.operation is not None and snapshot.operation.id != operation:
        for finding in operation_findings(snapshot):
            raise refusal(finding, snapshot.stream.name)
    refuse_unreadable(snapshot)


def refuse_unreadable(snapshot: Snapshot) -> None:
    """Raises DataError where the output should show which batch was written last, and cannot be parsed."""
    problem = snapshot.output.unreadable
    if problem is not None:
        raise DataError(
            problem.code,
            problem.text,
            where=problem.where,
            expected=problem.expected,
            found=problem.found,
            hint="restore the file from a backup; nothing was changed",
        )


def _rebuild(
    workspace: Workspace, snapshot: Snapshot, history: History, asked: Asked, read_query: QueryReader
) -> Rebuild:
    stream = snapshot.stream
    reference = asked.pipeline_file or stream.pipeline_file
    code = Code(digest(reference))
    generations = [generation.number for generation in workspace.ledger.generations(stream.full_name)]
    folders = workspace.home.generation_numbers(stream.pipeline, stream.name)
    rebuild = Rebuild(
        snapshot=snapshot,
        history=history,
        request=asked.request,
        target=target_of(asked.request),
        code=code,
        number=max([*generations, *folders]) + 1,
        environment=environment_read(reference),
    )
    if not snapshot.stateful or all(code.reads_as(history.runs.get(batch)) for batch in history.offsets):
        return rebuild
    query = read_query()
    if query is None:
        return replace(rebuild, request=replace(asked.request, query_read=False))
    return replace(rebuild, query=query, code=Code(code.digest, query.rows_digest))


def _cut(workspace: Workspace, rebuild: Rebuild, scope: Scope) -> Cut:
    """What is in the sink after the target. Raises Refused where another stream has read it already."""
    stream, history = rebuild.snapshot.stream, rebuild.history
    output = open_output(stream.sink)
    if not is_cut(rebuild, scope.target, scope.pending):
        return Cut(scope.target, ())
    cut = output.cut_after(scope.target, history.written)
    for other in workspace.ledger.streams():
        if other.full_name != stream.full_name:
            reconcile(workspace, other)
    readers = readers_of(workspace.ledger, stream, cut)
    if readers:
        raise Refused(
            "cut-was-read",
            f"The sink would have to be cut back to batch {cut.after}, but other streams have read what would be cut",
            where=output.location,
            found=", ".join(readers),
            hint=_hint_for_read(workspace, rebuild, cut, readers),
        )
    return cut


def _hint_for_read(workspace: Workspace, rebuild: Rebuild, cut: Cut, readers: list[str]) -> str:
    """The oldest batch after which nothing was read yet; if the sink's last batch was read, only readers can change."""
    stream, history = rebuild.snapshot.stream, rebuild.history
    output = open_output(stream.sink)
    for batch in (one for one in cut.batches if rebuild.batches.is_whole(one)):
        if not readers_of(workspace.ledger, stream, output.cut_after(batch, history.written)):
            at = plan_command(stream.full_name, rebuild.request, at=f"{BATCH}{batch}")
            return f"rebuild at a batch that the readers have not passed: {at}"
    return (
        "nothing can be cut that was not read: give this stream a new name and a new output, and have "
        f"{', '.join(readers)} read that one, each under a new name, too"
    )


def _refuse_missing(rebuild: Rebuild, scope: Scope) -> None:
    missing = rebuild.batches.missing_for(scope.first, scope.target, StoreReach())
    if missing:
        more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        raise Refused(
            "source-files-lost",
            f"The source no longer has {len(missing)} files that have to be read again",
            where=f"stream {rebuild.snapshot.stream.full_name}",
            found=", ".join(missing[:SHOWN]) + more,
            hint="restore the files; nothing was changed",
        )
