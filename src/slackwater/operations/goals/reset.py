"""A reset: start at a position of the sources with empty state."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from slackwater.core.commands import command
from slackwater.core.errors import Refused
from slackwater.core.snapshot import Snapshot
from slackwater.ledger.recording.batch_history import BatchHistory, offsets_by_source
from slackwater.operations.goals.goal import Flag, Goal
from slackwater.operations.plan.context import PlanContext, Scope, check_cut, require_code
from slackwater.operations.plan.contributing import StateBounds
from slackwater.operations.plan.plan import BEFORE_ALL, EARLIEST, LAST_WRITTEN, Request, SourceStart
from slackwater.operations.plan.targets import WantedPosition, log_text, parse_target, position_target
from slackwater.sources import kind_of

if TYPE_CHECKING:
    from slackwater.operations.plan.context import StreamFacts
    from slackwater.operations.planner import Planner


class Reset(Goal):
    name = "reset"
    summary = "Start again at a position of the sources, with empty state."
    outputs = ("swap", "clear", "keep")
    emptying_output = "clear"
    flags = (
        Flag(
            "--from",
            "at",
            f"where to start: {EARLIEST} (default), latest, time:2026-01-31T00:00Z, by:PT6H, shift:-1000, batch:N, "
            f"{LAST_WRITTEN} or offsets:FILE",
            kind="target",
            metavar="TARGET",
            default=EARLIEST,
        ),
        Flag(
            "--output",
            "output",
            "how to treat existing output: swap (default) builds new output in staging and replaces the old once "
            "staging has caught up; clear moves it to a backup at once; keep leaves it: batch ids continue after it",
            kind="choice",
            default=outputs[0],
            choices=outputs,
        ),
        Flag(
            "--only-source",
            "only_source",
            "index of the only source to move, for example 0; default: all",
            metavar="NAME",
        ),
    )
    runs_spark = True

    def check_target(self, text: str) -> None:
        parse_target(text)

    def complete(self, request: Request, planner: Planner, facts: StreamFacts, /) -> Request:
        require_code(facts.stream, request.goal, facts.stream.pipeline_file)
        batches, written = BatchHistory(facts.history), facts.snapshot.written_or_committed
        named = position_target(request.target, batches, written, planner.read_file)
        history = batches.history
        committed = max((batch for batch in history.commits if batch in history.offsets), default=None)
        current: Mapping[str, str | None] = {} if committed is None else offsets_by_source(batches.offset(committed))
        now_ms = round(time.time() * 1000)
        with planner.present_query(facts.stream) as replayer:
            found = replayer.positions(WantedPosition(named, current, history.sources, now_ms, request.only_source))
        starts = tuple(
            SourceStart(
                source,
                position.base.end,
                log_text(position.base.log),
                None if (first := kind_of(position.base.end, {}).first_log(position.base)) is None else log_text(first),
                position.summary,
            )
            for source, position in found.items()
        )
        return replace(request, starts=starts)

    def accepts_positions(self, request: Request) -> bool:
        return not request.ends

    def continued_after(self, request: Request, /) -> int | None:
        return None if request.output == "keep" else BEFORE_ALL

    def allows_unmarked(self, request: Request, snapshot: Snapshot, /) -> bool:
        """From the earliest position kept rows are certainly read again. Only a person can declare an output without
        visible rows emptied.
        """
        unmarked = snapshot.output.unmarked
        if request.output == "keep":
            return unmarked is None or not (unmarked.shows_rows and request.target == EARLIEST)
        return request.output == "swap" and snapshot.can_swap_unmarked

    def scope(self, context: PlanContext, /) -> Scope | None:
        """If the output is kept, batches are numbered after its newest, so that a sink keyed by ids skips none. Raises
        Refused if the output cannot be treated as requested.
        """
        snapshot, request, last = context.snapshot, context.request, BEFORE_ALL
        if request.output == "keep":
            last = max(snapshot.shown, default=BEFORE_ALL)
            if snapshot.marks.written is None or snapshot.output.unmarked is not None:
                last = max(snapshot.marks.planned, snapshot.recorded.planned, snapshot.known_committed, last)
        scope = Scope(
            last,
            last + 1,
            None,
            StateBounds(stateful=False, retention_ms=None, delay_ms=None),
            keeps_pending=False,
            state_until=last if last >= 0 else None,
            starts=request.starts,
        )
        # Spark reads all files of a file source's first batch: it cannot skip some.
        fixed = next((start for start in request.starts if last == BEFORE_ALL and start.first is None), None)
        if fixed is not None:
            raise Refused(
                "target-unsupported",
                f"Source {fixed.source} cannot be at this position before batch 0, because the output would be cleared",
                where=f"stream {snapshot.stream.full_name}",
                expected="earliest, or --output keep",
                found=request.target,
                hint=_keeping(snapshot.stream.full_name, request.target),
            )
        check_cut(context, scope)
        return scope

    def scope_without_positions(self, context: PlanContext, /) -> Scope | None:
        return self.scope(context)

    def without_cut(self, context: PlanContext) -> str:
        stream, request = context.snapshot.stream.full_name, context.request
        return _keeping(stream, request.target)

    def swapped(self, request: Request, _after: int, /) -> Request:
        return replace(request, output="swap", retention_ms=None)


def _keeping(stream: str, target: str) -> str:
    return f"keep what the output has: {command('plan', 'reset', stream, '--from', target, '--output', 'keep')}"


RESET = Reset()
