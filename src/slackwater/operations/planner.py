"""Derives the plan of a stream: refusals before Spark starts, scope, change of the output, plan."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from slackwater.core.commands import code_words, command, mention, output_command
from slackwater.core.errors import Refused, UsageError
from slackwater.core.escaping import quoted
from slackwater.core.facts import known
from slackwater.core.program import QueryProfile
from slackwater.core.records import StreamRecord
from slackwater.core.reference import split_reference
from slackwater.core.settings import check_owner
from slackwater.core.sink import BackfillDirectory, Cut, Swap, cut_back
from slackwater.core.snapshot import Snapshot
from slackwater.core.units import minor_release
from slackwater.diagnose.number_line import findings_about
from slackwater.diagnose.refusal import refusal
from slackwater.ledger.recording.batch_history import offsets_by_source
from slackwater.ledger.recording.history import readers_of
from slackwater.ledger.recording.places import checkpoints, home_place, inputs, outputs, overlap
from slackwater.ledger.recording.snapshot import stream_id
from slackwater.ledger.recording.source_availability import StoreAvailability
from slackwater.ledger.workspace import Workspace
from slackwater.operations.apply.operation import QueryRuntime, Replayer
from slackwater.operations.gather import gather, readers_now, refuse_unreadable
from slackwater.operations.goals.backfill import listed, ranges_of
from slackwater.operations.goals.goal import goal_named
from slackwater.operations.goals.rebuild import recomputed
from slackwater.operations.plan.assembly import plan_of, plan_of_nothing
from slackwater.operations.plan.context import PlanContext, Scope, StreamFacts, is_cut, query_id, refuse_replaced
from slackwater.operations.plan.document import HOW_TO_PLAN, plan_command
from slackwater.operations.plan.plan import Plan, Request
from slackwater.sinks.common.contract import Output, of_query
from slackwater.sinks.common.registry import open_each, open_output
from slackwater.sinks.files.backfill_output import backfill_output, found_in, open_backfill_output
from slackwater.sources import kind_of
from slackwater.storage.user_files import read_text

_ANOTHER = "give --into a directory that does not exist yet, outside of every output and of what streams read"
QueryReader = Callable[[StreamRecord, int | None], QueryProfile | None]
"""Reads the present query of a stream, to continue after a batch, with Spark; ``None`` without Spark."""
Changed: TypeAlias = tuple[Cut | Swap, tuple[str, ...], Cut | None]
"""The change of the output, the streams that have read what it removes, and all that a swap replaces."""


class Planner:
    """Derives the plans of an operation; ``derive`` raises Refused if no exact and safe way exists.

    ``read_query`` continues after the last written batch if it gets ``None``. ``own_lease``: the caller holds the
    leases. The ledger has the logs of the streams in ``updated``.
    """

    def __init__(
        self,
        workspace: Workspace,
        runtime: QueryRuntime,
        read_query: QueryReader,
        *,
        identity: str,
        made_at: str,
        say: Callable[[str], None] = lambda _: None,
        own_lease: bool = False,
        updated: Iterable[str] = (),
    ) -> None:
        self.workspace = workspace
        self.identity = identity
        self.say = say
        self.updated = set(updated)
        self._runtime = runtime
        self._read_query = read_query
        self._made_at = made_at
        self._own_lease = own_lease

    def facts(self, stream: StreamRecord, pipeline_file: str, goal: str) -> StreamFacts:
        """``pipeline_file`` replaces the last run's.

        Raises SettingsError (``home-owner``) if that belongs to another user.
        """
        if not pipeline_file and stream.pipeline_file:
            file = Path(split_reference(stream.pipeline_file)[0])
            check_owner(file, file.parent)
        named = stream._replace(pipeline_file=pipeline_file or stream.pipeline_file)
        executed = goal_named(goal).needs_executed
        return gather(self.workspace, named, self._runtime, with_executed=executed, own_lease=self._own_lease)

    @contextmanager
    def present_query(self, stream: StreamRecord) -> Iterator[Replayer]:
        """Raises EnvironmentMissing without Spark or Java."""
        self._runtime.require_spark()
        with self._runtime.open_replayer(self.workspace, stream, stream.pipeline_file, lambda _: None) as replayer:
            yield replayer

    @staticmethod
    def read_file(file: str) -> str:
        """The content of a file of offsets. Raises UsageError (``target``) if it cannot be read."""
        try:
            return read_text(Path(file))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                "target", f"The file of offsets cannot be read: {error}", where=file, hint="offsets:FILE is a JSON file"
            ) from error

    def backfill_directory(self, stream: StreamRecord, request: Request) -> BackfillDirectory | None:
        """Raises Refused (``backfill-directory-...``) if it cannot be used."""
        if request.into is None:
            return None
        output, ledger = backfill_output(stream.sink, request.into), self.workspace.ledger
        place = open_backfill_output(output).location
        for taken in (home_place(self.workspace.home), *outputs(ledger), *checkpoints(ledger), *inputs(ledger)):
            if overlap(place, taken.place):
                raise Refused(
                    "backfill-directory-shared",
                    f"The backfill directory would be shared with {taken.what}",
                    where=place,
                    expected="a directory of its own",
                    found=taken.place,
                    hint=_ANOTHER,
                )
        names = found_in(output)
        if names:
            raise Refused(
                "backfill-directory-occupied",
                "The backfill directory is not empty",
                where=place,
                expected="an empty directory, or none",
                found=listed(names),
                hint=_ANOTHER,
            )
        return output

    def refuse_without_session(self, facts: StreamFacts, request: Request) -> Changed | None:
        """The refusals of ``derive`` that need neither positions nor Spark; the change, if it depends on neither."""
        _refuse(facts, operation=self.identity)
        _refuse_unmarked(facts.snapshot, request)
        context = PlanContext(facts, replace(request, pipeline_file=facts.stream.pipeline_file))
        scope = goal_named(request.goal).scope_without_positions(context)
        return None if scope is None else self._change(context, scope, self.identity)

    def derive(
        self,
        facts: StreamFacts,
        request: Request,
        identity: str,
        *,
        leader: tuple[str, Request] | None = None,
        changed: Changed | None = None,
    ) -> Plan:
        """Raises Refused if no exact and safe way exists, DataError if something cannot be read.

        ``leader``: see ``PlanContext``. ``changed``: from ``refuse_without_session``.
        """
        context, found = self.before_spark(PlanContext(facts, request, leader=leader), identity, changed)
        if found is None:
            return plan_of_nothing(context, identity, self._made_at)
        return self.with_spark(context, found, identity)

    def before_spark(
        self, context: PlanContext, identity: str, changed: Changed | None
    ) -> tuple[PlanContext, tuple[Scope, Cut | Swap] | None]:
        """The scope, as far as it does not depend on the query, and the output's change; ``None``: nothing to do."""
        facts, request = context.facts, context.request
        if not goal_named(request.goal).accepts(request):
            raise UsageError(
                "plan-damaged",
                f"The plan was changed or damaged: the request does not match goal '{request.goal}'",
                where=f"stream {facts.stream.full_name}",
                expected=f"a request as {mention('plan', request.goal)} makes it",
                found=str(request)[:120],
                hint=f"nothing was changed; plan again: {HOW_TO_PLAN}",
            )
        _refuse(facts, operation=identity)
        _refuse_unmarked(facts.snapshot, request)
        batches = context.batches
        newest = offsets_by_source(batches.offset(batches.batches[-1])) if batches.batches else {}
        for source, offset in [*((one.source, one.offset) for one in request.starts), *request.ends.items()]:
            log, recorded = batches.history.sources.get(source, {}), newest.get(source)
            kind = kind_of(offset, log) if recorded is None and not log else kind_of(recorded, log)
            kind.check_offset(source, offset, "the plan", log)
        context = context._replace(side=self.backfill_directory(facts.stream, request))
        scope = goal_named(request.goal).scope(context)
        if scope is None:
            return context, None
        change, readers, replaced = changed or self._change(context, scope, identity)
        return context._replace(readers=readers, replaced=replaced), (scope, change)

    def with_spark(self, context: PlanContext, found: tuple[Scope, Cut | Swap], identity: str) -> Plan:
        """The plan. The query is read only if state is recomputed and recorded batches ran with other code."""
        scope, change = found
        if not scope.copied and scope.starts is None:
            # Nothing but its checkpoint shows whether a query that was only watched has state.
            may_have_state = context.snapshot.stateful or context.snapshot.stream.is_watched
            if may_have_state and not _is_recorded(context):
                query = self._read_query(context.facts.stream, context.target)
                request = replace(context.request, query_read=query is not None and context.request.query_read)
                context = context._replace(query=query, request=request)
            scope = recomputed(context, scope)
        name, available = context.snapshot.stream.full_name, StoreAvailability()
        missing = context.batches.missing_for(scope.first, scope.target, available, "recorded")
        missing += [line for kind, span in ranges_of(context.request) for line in kind.unavailable(span, available)]
        if missing:
            raise Refused(
                "source-files-lost",
                f"Files that have to be read are missing in the source: {len(missing)}",
                where=f"stream {name}",
                found=listed(missing),
                hint="restore the files with their times (cp -p); nothing was changed",
            )
        refuse_replaced(name, context.batches.replaced(scope.first, scope.target, available), "nothing was changed")
        plan = plan_of(context, scope, change, identity, self._made_at)
        outputs = open_each(context.snapshot.stream.sink)
        if scope.added and context.side is None:
            seen = [one.seen_while_cut(None) for one in outputs]
            risks = [f"an undo takes the batch out again: {text}" for text in seen if text is not None]
        else:
            # Where nothing is cut from several outputs the change has no part for each.
            parts: Iterable[tuple[Output, Cut | Swap]] = zip(outputs, change.parts, strict=False)
            seen = [
                one.seen_while_swapped() if isinstance(part, Swap) else one.seen_while_cut(part) for one, part in parts
            ]
            risks = [text for text in seen if text is not None]
        return replace(plan, risks=(*plan.risks, *risks))

    def _change(self, context: PlanContext, scope: Scope, operation: str) -> Changed:
        stream = context.snapshot.stream
        if context.request.output == "swap":
            return self._swap(context, scope, operation)
        if context.request.output in {"keep", "aside"} or not is_cut(context, scope):
            return Cut(scope.target, ()), (), None
        output = of_query(open_output(stream.sink), query_id(context, scope.target))
        cut = output.cut_after(scope.target, context.history.written)
        readers = readers_now(self.workspace, stream, cut, self.updated)
        if readers and not context.request.downstream:
            raise Refused(
                "cut-was-read",
                f"The sink would have to be {cut_back(cut.after)}, but other streams have read what would be cut",
                where=output.location,
                found=", ".join(readers),
                hint=_hint_for_read(self.workspace, context, output, cut),
            )
        return cut, tuple(readers), None

    def _swap(self, context: PlanContext, scope: Scope, operation: str) -> Changed:
        stream = context.snapshot.stream
        output = open_output(stream.sink)
        if stream.is_watched:
            output = of_query(output, query_id(context, scope.target))
            _check_swap_by_program(self.workspace, context, output, operation)
        if not output.traits.swaps:
            emptying = replace(context.request, output=goal_named(context.goal).emptying_output)
            raise Refused(
                "swap-unsupported",
                "This output cannot be staged and swapped",
                where=output.location,
                hint=f"empty it instead: {plan_command(stream.full_name, emptying)}",
            )
        whole = output.whole(context.history.written)
        readers = readers_now(self.workspace, stream, whole, self.updated)
        if readers and not context.request.downstream:
            raise Refused(
                "cut-was-read",
                "Other streams have read the output: all of it would be new to them after a swap",
                where=output.location,
                found=", ".join(readers),
                hint=f"also plan these streams: {_with_downstream(context)}",
            )
        swapped = output
        if context.snapshot.output.unmarked is not None:
            swapped = output.without_marker() or output
        return swapped.swap_of(operation, stream.id or "", scope.target), tuple(readers), whole


def _refuse(facts: StreamFacts, operation: str) -> None:
    known(facts.place)
    snapshot = facts.snapshot
    for finding in findings_about(snapshot, "identity"):
        raise refusal(finding, snapshot.stream.name)
    if snapshot.operation is not None and snapshot.operation.id != operation:
        for finding in findings_about(snapshot, "operation"):
            raise refusal(finding, snapshot.stream.name)
    refuse_unreadable(snapshot)


def _refuse_unmarked(snapshot: Snapshot, request: Request) -> None:
    if snapshot.output.unmarked is not None and not goal_named(request.goal).allows_unmarked(request, snapshot):
        for finding in findings_about(snapshot, "marker"):
            raise refusal(finding, snapshot.stream.name)


def _is_recorded(context: PlanContext) -> bool:
    runs = [context.history.runs.get(batch) for batch in context.history.offsets]
    last = context.snapshot.last_run
    if last is not None and last.generation == context.snapshot.generation.number:
        # The recorded profile is that of the newest run, also where it committed no batch.
        runs.append(last)
    known = [run for run in runs if run is not None and run.rows_digest is not None]
    # Releases of Spark optimise a plan differently, so that only digests of one minor release can be compared.
    digests = {(minor_release(run.spark_version), run.rows_digest) for run in known}
    one_each = len(digests) == len({release for release, _ in digests})
    return one_each and all(context.code.reads_as(run) for run in runs)


def _check_swap_by_program(workspace: Workspace, context: PlanContext, output: Output, operation: str) -> None:
    stream, location = context.snapshot.stream, context.snapshot.generation.location
    if not stream.has_output:
        raise Refused(
            "swap-unsupported",
            f"The output of the query of stream {stream.full_name} is not recorded",
            where=location,
            hint=f"first: {output_command(stream, location, context.snapshot.code_file)}",
        )
    if output.staged_path(operation) is None or not output.exists:
        goal = goal_named(context.goal)
        # The code of a query that was only watched is in each of the commands.
        request = replace(context.request, output=goal.emptying_output, pipeline_named=False)
        instead = (
            f"empty the output instead: {plan_command(stream.full_name, request)}"
            if context.snapshot.output.can_cut
            else goal.without_cut(context)
        )
        raise Refused(
            "swap-unsupported",
            "The new output of a swap is written by the program's own writer to a staging path, and then swapped in. "
            "Here that is not possible: a function of the program chooses where to write, or there is no output yet, "
            "or the output is a table that only its catalog can change",
            where=output.location,
            hint=f"{instead} {' '.join(map(quoted, code_words(context.snapshot)))}",
        )
    if stream_id(workspace.home, stream) is None:
        raise Refused(
            "swap-unsupported",
            f"Stream {stream.full_name} was only watched, and has no id that could own the new output",
            where=output.location,
            hint=f"first: {command('adopt', location, '--name', stream.name)}",
        )


def _hint_for_read(workspace: Workspace, context: PlanContext, output: Output, cut: Cut) -> str:
    stream, history = context.snapshot.stream, context.history
    goal = goal_named(context.goal)
    other = goal.without_read_cut(context)
    if other is not None:
        return other
    hint = f"also plan these streams: {_with_downstream(context)}"
    for batch in (one for one in cut.batches if context.batches.is_whole(one)):
        if not readers_of(workspace.ledger, stream, output.cut_after(batch, history.written)):
            at = plan_command(stream.full_name, context.request, at=goal.target_at(batch))
            return f"{hint}\nor choose a batch that they have not passed: {at}"
    return hint


def _with_downstream(context: PlanContext) -> str:
    request = replace(context.request, downstream=True)
    return plan_command(context.snapshot.stream.full_name, request)
