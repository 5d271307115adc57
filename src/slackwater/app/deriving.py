"""Derives a plan: once to show it, and again before it is applied, to see that it is still the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from slackwater.app.adopted import adopted_directory, require_code
from slackwater.app.side_place import check_place
from slackwater.app.workspace import Workspace
from slackwater.checkpoint.layout import STATE, parse_state_file
from slackwater.checkpoint.listing import read_listing
from slackwater.checkpoint.logs import loadable_batches, logs_of_listing
from slackwater.checkpoint.state.inventory import read_inventory
from slackwater.diagnose.identity import identity_findings
from slackwater.diagnose.number_line import operation_findings
from slackwater.diagnose.refusal import refusal
from slackwater.diagnose.words import rebuild_command
from slackwater.errors import DataError, Refused, UsageError
from slackwater.model.finding import Goal
from slackwater.model.history import History
from slackwater.model.plan import OutputTreatment, Plan, Request
from slackwater.model.profile import QueryProfile
from slackwater.model.records import StreamRecord
from slackwater.model.sink import Cut, SideOutput, Swap
from slackwater.model.snapshot import Snapshot
from slackwater.plan.assembly import plan_of, plan_of_nothing
from slackwater.plan.backfill import ranges_of, scope_of_backfill
from slackwater.plan.basis import BEFORE_ALL, Basis, Scope, is_cut
from slackwater.plan.contributing import Code
from slackwater.plan.document import HOW_TO_PLAN
from slackwater.plan.rebuild import scope_of_rebuild
from slackwater.plan.replay import kept_scope_of_replay, recomputed_scope_of_replay
from slackwater.plan.reset import scope_of_reset
from slackwater.plan.resume import scope_of_resume
from slackwater.plan.words import BATCH, EARLIEST, LAST_WRITTEN, plan_command
from slackwater.recording.executed import executed
from slackwater.recording.history import history_of, readers_of
from slackwater.recording.log_copier import copy_new
from slackwater.recording.reach import StoreReach
from slackwater.recording.snapshot import SnapshotContext, read_snapshot
from slackwater.runtime.loader import digest, environment_read
from slackwater.sinks.contract import Swappable
from slackwater.sinks.registry import open_output
from slackwater.sinks.side_output import side_output
from slackwater.storage.open import open_read_store

SHOWN = 3
LARGEST_BATCH = 2**63 - 1
OUTPUTS: Mapping[Goal, tuple[OutputTreatment, ...]] = {
    "resume": ("cut",),
    "rebuild": ("cut",),
    "replay": ("cut", "swap", "keep"),
    "backfill": ("keep", "aside"),
    "reset": ("swap", "clear", "keep"),
}
"""The goals that can be planned, with what each can do with the output."""

DIGITS_MAX = 19
"""Batch ids are 64 bits wide."""

QueryReader = Callable[[], QueryProfile | None]
"""Reads the present query's plan with Spark; ``None`` where Spark is not to be had."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user asked for. ``pipeline_file``: the upgraded file, ``None`` for the one of the last run."""

    goal: Goal
    request: Request
    pipeline_file: str | None = None


@dataclass(frozen=True, slots=True)
class Derived:
    """A plan with what it was derived from."""

    plan: Plan
    snapshot: Snapshot
    history: History


def target_of(goal: Goal, request: Request) -> int | None:
    """The batch to continue after, -1 for none, ``None`` for what the goal continues after by itself.

    A replay names the first batch that is processed again, a reset and a backfill no batch at all.
    Raises UsageError (``target``) for anything else.
    """
    if goal == "backfill":
        return None
    if goal == "reset":
        return None if request.output == "keep" else BEFORE_ALL
    if request.target == LAST_WRITTEN:
        return None
    if request.target == EARLIEST:
        return BEFORE_ALL
    number = request.target.removeprefix(BATCH)
    if number == request.target or not _is_batch(number):
        raise UsageError(
            "target",
            "The goal has no such target",
            expected=f"{LAST_WRITTEN}, {EARLIEST} or {BATCH}N",
            found=request.target[:60],
            hint=f"slackwater plan {goal} --help",
        )
    return int(number) - 1 if goal == "replay" else int(number)


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
    _check_request(asked, stream)
    adopted = adopted_directory(workspace, stream)
    reference = asked.pipeline_file or stream.pipeline_file
    snapshot = read_snapshot(
        SnapshotContext(workspace.ledger, workspace.home, own_lease=own_lease), replace(stream, pipeline_file=reference)
    )
    _refuse(snapshot, operation=identity[0])
    reconcile(workspace, stream)
    history = history_of(workspace.ledger, stream)
    side = side_of(workspace, stream, asked.request)
    basis = replace(_basis(workspace, snapshot, history, asked), adopted=adopted, side=side)
    basis, scope = _scoped(basis, read_query)
    if scope is None:
        return Derived(plan_of_nothing(basis, *identity), snapshot, history)
    swaps = asked.request.output == "swap"
    change, readers = _swap(workspace, basis, identity[0]) if swaps else _cut(workspace, basis, scope)
    _refuse_missing(basis, scope)
    plan = plan_of(replace(basis, readers=tuple(readers)), scope, change, *identity)
    return Derived(plan, snapshot, history)


def _check_request(asked: Asked, stream: StreamRecord) -> None:
    """Raises UsageError (``plan-damaged``) for a request that the command line does not make."""
    goal, request = asked.goal, asked.request
    known = request.output in OUTPUTS.get(goal, ())
    if goal not in {"reset", "backfill"}:
        known = known and not request.starts and request.only_source is None
    if goal == "backfill":
        known = known and sorted(one.source for one in request.starts) == sorted(request.ends)
    else:
        known = known and request.to is None and not request.ends
    known = known and (request.into is not None) == (request.output == "aside")
    if goal in {"resume", "reset", "backfill"}:
        known = known and request.retention_ms is None
    if not known:
        raise UsageError(
            "plan-damaged",
            "The plan was changed or damaged: its request is not one of its goal",
            where=f"stream {stream.full_name}",
            expected=f"a request as slackwater plan {goal} makes it",
            found=str(request)[:120],
            hint=f"nothing was changed; plan again: {HOW_TO_PLAN}",
        )


def side_of(workspace: Workspace, stream: StreamRecord, request: Request) -> SideOutput | None:
    """The side output that a request asks for. Raises Refused (``side-output-...``) where there can be none."""
    if request.into is None:
        return None
    output = side_output(stream.sink, request.into)
    check_place(workspace, output)
    return output


def _scoped(basis: Basis, read_query: QueryReader) -> tuple[Basis, Scope | None]:
    """What the goal is about, with the present query where it had to be read; ``None`` where nothing has to be done."""
    match basis.goal:
        case "resume":
            return basis, scope_of_resume(basis)
        case "rebuild":
            _require_code(basis)
            basis = _with_query(basis, read_query)
            return basis, scope_of_rebuild(basis)
        case "replay":
            kept = kept_scope_of_replay(basis)
            if kept is not None:
                return basis, kept
            _require_code(basis)
            basis = _with_query(basis, read_query)
            return basis, recomputed_scope_of_replay(basis)
        case "reset":
            return basis, scope_of_reset(basis)
        case "backfill":
            return basis, scope_of_backfill(basis)
        case _:
            assert_never(basis.goal)


def _require_code(basis: Basis) -> None:
    require_code(basis.snapshot.stream, basis.goal, basis.snapshot.stream.pipeline_file)


def reconcile(workspace: Workspace, stream: StreamRecord) -> None:
    """Copy into the ledger what the checkpoint and the sink have and it lacks, if this user may write to it."""
    if not workspace.can_refresh(stream.full_name):
        return
    if stream.is_watched and workspace.ledger.open_operation(stream.full_name) is not None:
        # Until it has ended, the directory at the path may be the checkpoint of another generation than recorded.
        return
    generation = workspace.ledger.generation(stream.full_name, stream.current_generation)
    checkpoint, output = open_read_store(generation.location), open_output(stream.sink)
    copy_new(workspace.ledger, stream.full_name, generation.number, checkpoint, output)


def _refuse(snapshot: Snapshot, operation: str) -> None:
    """Stops that no plan removes: a foreign home or output, an unreadable sink, an unfinished operation."""
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


def _basis(workspace: Workspace, snapshot: Snapshot, history: History, asked: Asked) -> Basis:
    stream = snapshot.stream
    reference = asked.pipeline_file or stream.pipeline_file
    generations = [generation.number for generation in workspace.ledger.generations(stream.full_name)]
    folders = workspace.home.generation_numbers(stream.pipeline, stream.name)
    return Basis(
        goal=asked.goal,
        snapshot=snapshot,
        history=history,
        request=asked.request,
        target=target_of(asked.goal, asked.request),
        code=Code(digest(reference) if reference else ""),
        number=max([*generations, *folders]) + 1,
        environment=environment_read(reference) if reference else (),
        states=_states(snapshot),
        executed=executed(workspace.ledger, stream) if asked.goal == "backfill" else (),
    )


def _states(snapshot: Snapshot) -> frozenset[int]:
    """The batches whose state the checkpoint in use can load, without those that need a damaged file."""
    store = open_read_store(snapshot.generation.location)
    listing = read_listing(store)
    found = loadable_batches(logs_of_listing(store, listing), read_inventory(listing))
    paths = (damage.path for damage in snapshot.damage if damage.path.startswith(f"{STATE}/"))
    versions = [file.version for path in paths if (file := parse_state_file(path.rpartition("/")[2])) is not None]
    return frozenset(batch for batch in found if batch + 1 < min(versions, default=batch + 2))


def _with_query(basis: Basis, read_query: QueryReader) -> Basis:
    """With the present query where batches ran with other code, which may have read other rows."""
    runs = basis.history.runs
    # Nothing but its checkpoint shows whether a query that was only watched has state.
    may_have_state = basis.snapshot.stateful or basis.adopted is not None
    if not may_have_state or all(basis.code.reads_as(runs.get(batch)) for batch in basis.history.offsets):
        return basis
    query = read_query()
    if query is None:
        return replace(basis, request=replace(basis.request, query_read=False))
    return replace(basis, query=query, code=Code(basis.code.digest, query.rows_digest))


def _cut(workspace: Workspace, basis: Basis, scope: Scope) -> tuple[Cut, list[str]]:
    """What is in the sink after the target, and who has read it: raises Refused where they are not planned, too."""
    stream = basis.snapshot.stream
    if basis.request.output in {"keep", "aside"} or not is_cut(basis, scope):
        return Cut(scope.target, ()), []
    cut = open_output(stream.sink).cut_after(scope.target, basis.history.written)
    readers = _readers(workspace, stream, cut)
    if readers and not basis.request.downstream:
        raise Refused(
            "cut-was-read",
            f"The sink would have to be cut back to batch {cut.after}, but other streams have read what would be cut",
            where=open_output(stream.sink).location,
            found=", ".join(readers),
            hint=_hint_for_read(workspace, basis, cut),
        )
    return cut, readers


def _swap(workspace: Workspace, basis: Basis, operation: str) -> tuple[Swap, list[str]]:
    """The swap of the whole output, and who reads it. Raises Refused where that cannot be, or as for a cut."""
    stream = basis.snapshot.stream
    output = open_output(stream.sink)
    if basis.adopted is not None:
        raise _swap_of_adopted(basis, output.location)
    command = f"slackwater plan {basis.goal} {stream.full_name} --from {basis.request.target} --output"
    other = "clear" if basis.goal == "reset" else "cut"
    if not isinstance(output, Swappable) or not output.traits.swaps:
        raise Refused(
            "swap-unsupported",
            "This output cannot be built aside and swapped",
            where=output.location,
            hint=f"empty it instead: {command} {other}",
        )
    readers = _readers(workspace, stream, output.whole(basis.history.written))
    if readers and not basis.request.downstream:
        raise Refused(
            "cut-was-read",
            "Other streams have read the output: all of it would be new to them after a swap",
            where=output.location,
            found=", ".join(readers),
            hint=f"plan them as well: {_with_downstream(basis)}",
        )
    return output.swap_of(operation, stream.id or ""), readers


def _swap_of_adopted(basis: Basis, location: str | None) -> Refused:
    request = replace(basis.request, output="clear" if basis.goal == "reset" else "cut")
    return Refused(
        "swap-unsupported",
        "The new output of a swap is written by a run of Slackwater, which does not run this query",
        where=location,
        hint="empty the output instead: "
        f"{plan_command(basis.goal, basis.snapshot.stream.full_name, request)} --pipeline FILE",
    )


def _readers(workspace: Workspace, stream: StreamRecord, cut: Cut) -> list[str]:
    for other in workspace.ledger.streams():
        if other.full_name != stream.full_name:
            reconcile(workspace, other)
    return readers_of(workspace.ledger, stream, cut)


def _hint_for_read(workspace: Workspace, basis: Basis, cut: Cut) -> str:
    """The readers as well, or the oldest batch after which nothing was read yet."""
    stream, history = basis.snapshot.stream, basis.history
    output = open_output(stream.sink)
    if basis.goal == "resume":
        return f"a rebuild is exact without a cut: {rebuild_command(basis.snapshot)}"
    hint = f"plan them as well: {_with_downstream(basis)}"
    for batch in (one for one in cut.batches if basis.batches.is_whole(one)):
        if not readers_of(workspace.ledger, stream, output.cut_after(batch, history.written)):
            named = batch + 1 if basis.goal == "replay" else batch
            at = plan_command(basis.goal, stream.full_name, basis.request, at=f"{BATCH}{named}")
            return f"{hint}\nor choose a batch that they have not passed: {at}"
    return hint


def _with_downstream(basis: Basis) -> str:
    request = replace(basis.request, downstream=True)
    return plan_command(basis.goal, basis.snapshot.stream.full_name, request)


def _refuse_missing(basis: Basis, scope: Scope) -> None:
    reach = StoreReach()
    missing = basis.batches.missing_for(scope.first, scope.target, reach, "recorded")
    missing += [line for kind, span in ranges_of(basis.request) for line in kind.unavailable(span, reach)]
    if missing:
        more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        raise Refused(
            "source-files-lost",
            f"The source no longer has {len(missing)} files that have to be read",
            where=f"stream {basis.snapshot.stream.full_name}",
            found=", ".join(missing[:SHOWN]) + more,
            hint="restore the files; nothing was changed",
        )
