"""The facts from which a plan is derived, and their refusals. Access to an unknown fact raises its error."""

import json
import shlex
import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from slackwater.core.checkpoint import ChangedFile
from slackwater.core.commands import APPLICATION, application_words, command, output_command, write_code_command
from slackwater.core.errors import Refused
from slackwater.core.facts import Fact, known
from slackwater.core.program import ARBITRARY, QueryProfile, not_reproducible
from slackwater.core.records import History, StreamRecord
from slackwater.core.sink import BackfillDirectory, Cut, newest_batch
from slackwater.core.snapshot import OutputSeen, Snapshot
from slackwater.core.units import batch_range
from slackwater.ledger.recording.batch_history import BatchHistory, offsets_by_source
from slackwater.operations.checkpoint_path import CheckpointPath
from slackwater.operations.goals.goal import goal_named
from slackwater.operations.plan.contributing import Code, StateBounds
from slackwater.operations.plan.document import plan_command
from slackwater.operations.plan.plan import BEFORE_ALL, Request, SourceStart
from slackwater.sources.common.contract import SourceRange

MS_IN_S = 1000


class StreamFacts(NamedTuple):
    """A stream.

    ``seen`` has marks, damage, output, operation, lease and last run; ``recorded`` the ledger's batches, updated from
    checkpoint and output. ``states`` are loadable without damaged files. ``size_bytes`` of the checkpoint is ``None``
    if asking for sizes would take too long. ``digest`` is the SHA-256 of the pipeline file and the project's imported
    modules, which are read without running them; ``environment`` has the names of variables that it reads.
    ``environment_changed``: differences between the functions' environment and the newest state's. No generation has
    had the number ``next_generation``. ``place``: the final place of a new checkpoint.
    """

    stream: StreamRecord
    seen: Fact[Snapshot]
    recorded: Fact[History]
    place: Fact[CheckpointPath]
    next_generation: int
    states: frozenset[int] = frozenset()
    size_bytes: int | None = None
    digest: Fact[str] = ""
    environment: tuple[str, ...] = ()
    environment_changed: tuple[str, ...] = ()
    executed: tuple[SourceRange, ...] = ()

    @property
    def snapshot(self) -> Snapshot:
        return known(self.seen)

    @property
    def history(self) -> History:
        return known(self.recorded)

    @property
    def code(self) -> str:
        """The digest. Raises PipelineError if the pipeline file cannot be read."""
        return known(self.digest)

    @property
    def path(self) -> CheckpointPath:
        """Raises Refused if no other directory can replace the checkpoint's."""
        return known(self.place)


class PlanContext(NamedTuple):
    """``query`` is the present code's profile, if it was needed and read. ``side`` replaces the stream's output.
    ``readers`` have read rows that the operation changes; ``replaced`` is all that a swap replaces. ``leader`` is the
    plan's first stream with its request.
    """

    facts: StreamFacts
    request: Request
    query: QueryProfile | None = None
    side: BackfillDirectory | None = None
    readers: tuple[str, ...] = ()
    replaced: Cut | None = None
    leader: tuple[str, Request] | None = None

    @property
    def goal(self) -> str:
        return self.request.goal

    @property
    def target(self) -> int | None:
        """The batch to continue after; ``None``: the last written batch."""
        return goal_named(self.goal).continued_after(self.request)

    @property
    def snapshot(self) -> Snapshot:
        return self.facts.snapshot

    @property
    def history(self) -> History:
        return self.facts.history

    @property
    def code(self) -> Code:
        if self.query is None:
            return Code(self.facts.code)
        return Code(self.facts.code, self.query.rows_digest, self.query.spark_version)

    @property
    def profile(self) -> QueryProfile | None:
        """The present profile if it was read, else the recorded profile."""
        return self.query or self.snapshot.profile

    @property
    def states(self) -> frozenset[int]:
        return self.facts.states

    @property
    def batches(self) -> BatchHistory:
        return BatchHistory(self.history)

    @property
    def written(self) -> int:
        """The newest batch in the sink, -1 for none; if the sink cannot show it, the newest committed batch."""
        return self.snapshot.written_or_committed


class Scope(NamedTuple):
    """``first`` to ``target`` are replayed without output; ``pending`` stays planned after them. ``copied``: state and
    ranges come from the checkpoint in use, without Spark. ``keeps_pending``: outputs keep ``pending``, and skip it when
    it runs again. ``state_until`` is the newest batch with state. ``starts`` replace the recorded end of ``target``.
    ``added``: a batch with its own range runs under the next id.
    """

    target: int
    first: int
    pending: int | None
    state: StateBounds
    copied: bool = False
    state_until: int | None = None
    starts: tuple[SourceStart, ...] | None = None
    keeps_pending: bool = True
    added: bool = False

    @property
    def planned(self) -> int:
        return self.target if self.pending is None else self.pending


def is_cut(context: PlanContext, scope: Scope) -> bool:
    """A kept ``pending`` has the same range, so that outputs need not be cut."""
    shown = context.snapshot.shown
    return bool(shown) and max(shown) > (scope.planned if scope.keeps_pending else scope.target)


def check_since_start(context: PlanContext, target: int) -> None:
    """Raises Refused for a batch before a reset or backfill: it continues other batches."""
    begins, stream = context.history.begins, context.snapshot.stream
    if target < begins - 1:
        raise Refused(
            "target-unknown",
            f"Batch {target + 1} predates the last reset or backfill of stream {stream.name} and cannot be used: "
            "a different range was read in between",
            where=f"stream {stream.full_name}",
            expected=f"to continue after batch {begins - 1} or a newer one",
            found=f"to continue after batch {target}" if target >= 0 else "the beginning",
            hint=f"process everything again: {command('plan', 'reset', stream.full_name, '--from', 'earliest')}",
        )


def written_text(snapshot: Snapshot) -> str:
    return ", ".join(str(one.written) for one in snapshot.outputs)


def batches_used(first: int, target: int, pending: int | None) -> range:
    return range(max(min(first, target) - 1, 0), (target if pending is None else pending) + 1)


def ends_after(batches: BatchHistory, target: int) -> dict[str, int]:
    """Last inherited log entries (-1: none), without sources that inherit all."""
    if target < 0:
        return dict.fromkeys(batches.history.sources, -1)
    ends = offsets_by_source(batches.offset(target))
    cuts = {source: batches.kind(source, text).cut_entry(text) for source, text in ends.items()}
    return {batches.log_of(source): entry for source, entry in cuts.items() if entry is not None}


def query_id(context: PlanContext, target: int) -> str:
    """Raises Refused (``query-id-unknown``)."""
    recorded, generation = context.history.metadata, context.snapshot.generation
    if recorded is not None:
        return str(json.loads(recorded)["id"])
    if generation.query_id is not None:
        return generation.query_id
    if target == BEFORE_ALL:
        # Killed before Spark had written its metadata: no id was ever used. The same each time the plan is derived.
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{context.snapshot.stream.id}/{context.facts.next_generation}"))
    raise Refused(
        "query-id-unknown",
        f"The query id of stream {context.snapshot.stream.name} is not recorded",
        where=generation.location,
        hint="restore the file metadata of the checkpoint from a backup",
    )


def check_reproducible(
    profile: QueryProfile, stream: StreamRecord, request: Request, leader: tuple[str, Request] | None = None
) -> None:
    """Raises Refused if a replay cannot recompute the state exactly. ``leader``: see ``PlanContext``."""
    if (found := not_reproducible(profile, request.row_order)) is None:
        return
    what, reason = found
    name, asked = leader or (stream.full_name, request)
    at_word = replace(asked, row_order="any")
    takes_word = goal_named(asked.goal).accepts(at_word)
    reset = command("plan", "reset", stream.full_name, "--from", "earliest")
    if leader is None:
        remains = f"process everything again: {reset}; or run the query under a new stream name into a new output"
    # A later stage alone would read rows again that the plan removes from the output before it. It can be reset first
    # only if the plan restarts that output without state, so that it reads all from its first batch on.
    elif takes_word:
        remains = f"process everything again: {command('plan', 'reset', name, '--from', 'earliest', '--downstream')}"
    else:
        remains = f"process {stream.full_name} again before that: {reset}"
    helps = takes_word and not_reproducible(profile, "any") is None
    raise Refused(
        "state-not-reproducible",
        f"The state of stream {stream.name} cannot be recomputed exactly: {reason}",
        expected="windowed aggregations, dropDuplicates, joins",
        found=what,
        hint=f"if it gives the same for any order of the rows in a batch: {plan_command(name, at_word)}; else {remains}"
        if helps
        else remains,
    )


def require_code(stream: StreamRecord, goal: str, reference: str) -> None:
    """Raises Refused (``code-needed``)."""
    if not reference:
        raise Refused(
            "code-needed",
            f"A {goal} of stream {stream.full_name} runs its query again, but Slackwater does not have the code",
            where=f"stream {stream.full_name}",
            expected=f"the program that starts the query, or a pipeline file with a stream {stream.name} whose "
            "function returns the query's DataFrame",
            found="no --pipeline",
            hint=command("plan", goal, stream.full_name, "--pipeline", APPLICATION, *stream.session)
            + f"\n{application_words(stream.name, write_code_command(stream))}",
        )


def state_bounds(context: PlanContext) -> StateBounds:
    given, output_mode = context.request.retention_ms, context.snapshot.stream.output_mode
    if context.profile is None:
        retention = None if output_mode == "complete" else given
        stateful = context.snapshot.marks.state is not None or given is not None
        return StateBounds(stateful=stateful, retention_ms=retention, delay_ms=None)
    return bounds_of(context.profile, context.snapshot.profile, output_mode, given)


def bounds_of(
    profile: QueryProfile, recorded: QueryProfile | None, output_mode: str, given: int | None = None
) -> StateBounds:
    """Bounds for batches that ran as ``recorded``. ``given``: a requested retention."""
    # What a batch recorded counts only if its query had the present delay; the recorded one is that of the newest run,
    # perhaps of code that was rolled back. Too long a delay makes event times newer, and replays more.
    delays, present = recorded.watermark_delays_ms if recorded is not None else (), profile.watermark_delays_ms
    # In complete mode Spark drops no key: each batch writes the whole result.
    # What a function of the user's own keeps of older rows is unknown, whatever the watermark is.
    unbounded = output_mode == "complete" or not_reproducible(replace(profile, by_order=())) is not None
    return StateBounds(
        stateful=profile.stateful or given is not None,
        retention_ms=None if unbounded else profile.retention_ms if given is None else given,
        delay_ms=max(*delays, *present) if len(delays) == len(present) == 1 else None,
        any_row_order=not ARBITRARY.isdisjoint(profile.operators),
        several=max(len(delays), len(present)) > 1,
        session_gap_ms=None if unbounded else profile.session_gap_ms,
        window_starts_ms=None if given is not None else profile.window_starts_ms,
    )


def check_cut(context: PlanContext, scope: Scope) -> None:
    """Raises Refused if an output cannot remove its batches.

    A sink that shows no batches would get them twice if ranges are not recorded, unless it skips ids.
    """
    if context.request.output in {"keep", "swap"}:
        return
    cutting, committed, target = is_cut(context, scope), context.snapshot.known_committed, scope.target
    for output in context.snapshot.outputs:
        if output.written is not None:
            if cutting and output.written > target and not output.can_cut:
                raise _uncuttable(context, output, target, output.written)
        elif target < committed and (context.target is not None or output.batches_skipped):
            raise _uncuttable(context, output, target, committed)


def _uncuttable(context: PlanContext, output: OutputSeen, target: int, written: int) -> Refused:
    snapshot, stream = context.snapshot, context.snapshot.stream
    later, mode = batch_range(target + 1, written), stream.output_mode
    sink = f"its output {output.name}" if snapshot.output.members else "the sink"
    reason = (
        f"{sink} cannot remove what {later} wrote"
        if mode == "append"
        else f"in {mode} mode {later} replaced rows of earlier batches, which the sink does not keep"
    )
    recorded = "" if stream.has_output else output_command(stream, snapshot.generation.location, snapshot.code_file)
    recorded = recorded and f"record where the query writes: {recorded}\n"
    begins = f"continue after batch {target}" if target >= 0 else "start again at batch 0"
    return Refused(
        "sink-uncuttable",
        f"The stream would {begins}, but {reason}",
        where=output.location,
        expected=f"batch {written}, the newest that {sink} holds",
        found=newest_batch(target),
        hint=f"{recorded}{goal_named(context.goal).without_cut(context)}",
    )


def refuse_replaced(stream: str, replaced: Sequence[ChangedFile], unchanged: str) -> None:
    """Raises Refused (``source-files-replaced``)."""
    if not replaced:
        return
    first = replaced[0]
    more = f", and {len(replaced) - 1} more files" if len(replaced) > 1 else ""
    parts = urlsplit(first.path)
    is_file = parts.scheme in {"", "file"}
    restore = "restore the file with its time, as cp -p does," if is_file else "restore the object as it was,"
    hint = f"{restore} or reset the stream to read everything as it is now; {unchanged}"
    if is_file and first.read_bytes == first.found_bytes:
        path = unquote(parts.path) if parts.scheme else first.path
        touch = f"touch -d {_time(first.read_ms)} {shlex.quote(path)}"
        hint += f"\nif only its time was changed, set the time back: {touch}"
    raise Refused(
        "source-files-replaced",
        f"A source file was replaced or changed after stream {stream} had read it{more}: its rows may differ",
        where=first.path,
        expected=_described(first.read_ms, first.read_bytes),
        found=_described(first.found_ms, first.found_bytes),
        hint=hint,
    )


def _described(written_ms: int, size: int | None) -> str:
    return f"written {_time(written_ms)}" + (f", {size} bytes" if size is not None else "")


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / MS_IN_S, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
