"""The cost of a plan, as data and in sentences.

Rows and durations are from progress events, file sizes as they were read. Unrecorded figures are ``None``.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce

from slackwater.core.errors import FormatError
from slackwater.core.records import History
from slackwater.core.sink import Cut, Swap
from slackwater.core.units import duration_text, size_text
from slackwater.ledger.recording.batch_history import offsets_by_source
from slackwater.operations.action import Action
from slackwater.operations.goals.backfill import ranges_of
from slackwater.operations.plan.context import PlanContext, Scope
from slackwater.operations.plan.plan import Cost, Kept, Plan, Work
from slackwater.sources import kind_of
from slackwater.sources.common.contract import SourceRange
from slackwater.sources.common.source import Source

NO_WORK = Work(0, 0, 0, 0, 0, 0, 0)
NOTHING_KEPT = Kept(0, 0, 0, 0)

Span = tuple[Source, SourceRange]


def cost_of(context: PlanContext, scope: Scope, actions: Collection[Action]) -> Cost:
    history, reads = context.history, {action.reads for action in actions}
    replayed = range(scope.first, scope.target + 1)
    apply = _work(context, replayed, _spans(context, replayed)) if replayed else NO_WORK
    run = NO_WORK
    if "range" in reads:
        apply = _backfilled(context)
    elif actions:
        again = _from_positions(context, scope) if scope.starts is not None else _after_target(context, scope)
        apply, run = (together(apply, again), run) if "rest" in reads else (apply, again)
    switched = any(action.switch is not None for action in actions)
    return Cost(
        batches_replayed=len(replayed),
        apply=apply,
        run=run,
        rows_recorded=sum(history.input_rows.values()),
        output=_kept(actions, context.replaced),
        checkpoint_bytes=context.facts.size_bytes if switched else 0,
    )


def total_of(plan: Plan) -> Cost:
    costs = [one.cost for one in plan.members]
    return Cost(
        batches_replayed=sum(one.batches_replayed for one in costs),
        apply=reduce(together, [one.apply for one in costs]),
        run=reduce(together, [one.run for one in costs]),
        rows_recorded=sum(one.rows_recorded for one in costs),
        output=_kept_together([one.output for one in costs]),
        checkpoint_bytes=_sum(one.checkpoint_bytes for one in costs),
    )


def together(one: Work, other: Work) -> Work:
    return Work(
        batches=one.batches + other.batches,
        rows=one.rows + other.rows,
        batches_uncounted=one.batches_uncounted + other.batches_uncounted,
        files=_sum((one.files, other.files)),
        bytes=_sum((one.bytes, other.bytes)),
        duration_ms=_sum((one.duration_ms, other.duration_ms)),
        batches_timed=one.batches_timed + other.batches_timed,
    )


def _after_target(context: PlanContext, scope: Scope) -> Work:
    batches = [batch for batch in _processed(context) if batch > scope.target]
    return _work(context, batches, _spans(context, batches)) if batches else NO_WORK


def _from_positions(context: PlanContext, scope: Scope) -> Work:
    processed = _processed(context)
    recorded = [batch for batch in processed if batch in context.history.offsets]

    def ends_after(batch: int) -> bool:
        return any(_reads(one) for one in _since(context, scope, batch))

    first = bisect_left(recorded, True, key=ends_after)
    if first == len(recorded):
        return NO_WORK
    # The batches before the first recorded range are those before an earlier reset.
    batches = [batch for batch in processed if first == 0 or batch >= recorded[first]]
    spans = _since(context, scope, recorded[-1])
    work, rows = _work(context, batches, spans), _rows_of(spans)
    return work if rows is None else replace(work, rows=rows, batches_uncounted=0)


def _since(context: PlanContext, scope: Scope, batch: int) -> list[Span]:
    batches, logs = context.batches, context.history.sources
    try:
        ends = offsets_by_source(batches.offset(batch))
    except FormatError:
        return []
    return [
        (
            batches.kind(start.source, end),
            SourceRange(start.source, start.offset, end, logs.get(start.source, {}), context.history.sizes),
        )
        for start in scope.starts or ()
        if (end := ends.get(start.source)) is not None
    ]


def _reads(one: Span) -> bool:
    kind, span = one
    try:
        counted = kind.counted(span)
    except FormatError:
        counted = None
    if counted is None:
        return span.start != span.end
    return any(number is None or number > 0 for number in counted.values())


def _backfilled(context: PlanContext) -> Work:
    spans = [
        (
            kind,
            span._replace(
                log={**context.history.sources.get(span.source, {}), **span.log}, sizes=context.history.sizes
            ),
        )
        for kind, span in ranges_of(context.request)
    ]
    rows, (files, size) = _rows_of(spans), _files_of(spans)
    history = context.history
    timed = [batch for batch in history.durations_ms if history.input_rows.get(batch)]
    read = [(kind_of(span.end, span.log), span) for span in context.facts.executed]
    per = sum(history.input_rows[batch] for batch in timed) if rows is not None else _files_of(read)[0]
    share = rows if rows is not None else files
    known = bool(timed) and bool(per) and share is not None
    return Work(
        batches=1,
        rows=rows or 0,
        batches_uncounted=int(rows is None),
        files=files,
        bytes=size,
        duration_ms=sum(history.durations_ms[one] for one in timed) * (share or 0) // (per or 1) if known else None,
        batches_timed=len(timed),
    )


def _processed(context: PlanContext) -> list[int]:
    history, written = context.history, context.written
    shown = [batch for batch in history.offsets if batch <= written]
    return sorted({*history.commits, *history.input_rows, *shown})


def _spans(context: PlanContext, batches: Collection[int]) -> list[Span]:
    try:
        return context.batches.spans(min(batches), max(batches)) if batches else []
    except (KeyError, FormatError):
        return []


def _work(context: PlanContext, batches: Collection[int], spans: list[Span]) -> Work:
    history = context.history
    files, size = _files_of(spans)
    duration_ms, timed = _duration(history, batches)
    return Work(
        batches=len(batches),
        rows=sum(history.input_rows.get(batch, 0) for batch in batches),
        batches_uncounted=sum(batch not in history.input_rows for batch in batches),
        files=files,
        bytes=size,
        duration_ms=duration_ms,
        batches_timed=timed,
    )


def _duration(history: History, batches: Collection[int]) -> tuple[int | None, int]:
    known = [history.durations_ms[batch] for batch in batches if batch in history.durations_ms]
    if len(known) == len(batches):
        return sum(known), len(known)
    every = history.durations_ms.values()
    if not every:
        return None, 0
    return sum(known) + (len(batches) - len(known)) * sum(every) // len(every), len(every)


def _files_of(spans: list[Span]) -> tuple[int | None, int | None]:
    try:
        if not spans or any(kind.unrecorded(span) for kind, span in spans):
            return None, None
        found = [(span.sizes.get(file.path), kind.kind) for kind, span in spans for file in kind.files(span)]
    except FormatError:
        return None, None
    sized = {kind for _, kind in found}
    whole = all(kind.kind in sized or span.start == span.end for kind, span in spans)
    return len(found), _sum(size for size, _ in found) if whole else None


def _rows_of(spans: list[Span]) -> int | None:
    try:
        counts = [kind.rows(span) for kind, span in spans]
    except FormatError:
        return None
    return _sum(counts) if counts else None


def _kept(actions: Iterable[Action], replaced: Cut | None) -> Kept:
    for action in actions:
        if action.change is not None:
            gone = action.change if isinstance(action.change, Cut) else replaced
            if gone is None:
                return Kept(0, None, None, None)
            return _kept_together([_kept_of(part) for part in gone.parts], len(gone.batches))
    return NOTHING_KEPT


def _kept_of(cut: Cut) -> Kept:
    batches = len(cut.batches)
    if not batches and not cut.files:
        return NOTHING_KEPT
    # A table of a database lists no files; nor are their sizes known.
    return Kept(batches, cut.rows, len(cut.files) or None, cut.bytes if cut.files and cut.bytes else None)


def _kept_together(parts: list[Kept], batches: int | None = None) -> Kept:
    return Kept(
        batches=sum(one.batches for one in parts) if batches is None else batches,
        rows=_sum(one.rows for one in parts),
        files=_sum(one.files for one in parts),
        bytes=_sum(one.bytes for one in parts),
    )


def _sum(numbers: Iterable[int | None]) -> int | None:
    found = list(numbers)
    known = [number for number in found if number is not None]
    return sum(known) if len(known) == len(found) else None


def cost_lines(plan: Plan) -> list[str]:
    return list(_lines(plan.cost, plan.actions))


def total_lines(plan: Plan) -> list[str]:
    return list(_lines(total_of(plan), [action for one in plan.members for action in one.actions]))


def _lines(cost: Cost, actions: Sequence[Action]) -> Iterator[str]:
    reads = {action.reads for action in actions}
    of_recorded = f" of {cost.rows_recorded:,} recorded"
    batches = _count(cost.apply.batches, "batch")
    if "range" in reads:
        yield from _work_lines("apply", "reads all of the range above as one batch", cost.apply, "")
    elif "rest" in reads and cost.apply.batches:
        what = f"processes {batches} again, and then what else the sources have"
        yield from _work_lines("apply", what, cost.apply, of_recorded)
    elif cost.apply.batches:
        yield from _work_lines("apply", f"replays {batches}", cost.apply, of_recorded)
    else:
        yield f"apply reads {'what the sources have' if 'rest' in reads else 'no batch again'}"
    if cost.run.batches:
        what = f"processes {_count(cost.run.batches, 'batch')} again"
        yield from _work_lines("the next run", what, cost.run, of_recorded)
    elif not cost.apply.batches:
        yield "the next run processes no recorded batch again"
    yield from _kept_lines(cost, actions)


def _work_lines(who: str, does: str, work: Work, of_recorded: str) -> Iterator[str]:
    yield f"{who} {does}: {_rows(work, of_recorded)}; {_files(work)}"
    yield f"{who} takes {_time(work)}"


def _rows(work: Work, of_recorded: str) -> str:
    if work.batches_uncounted == work.batches:
        return "an unknown number of rows"
    more = f" and those of {work.batches_uncounted:,} uncounted" if work.batches_uncounted else ""
    return f"{work.rows:,}{of_recorded} rows{more}"


def _files(work: Work) -> str:
    size = "unknown size" if work.bytes is None else size_text(work.bytes)
    if work.files is None:
        return "source files and bytes unknown"
    return f"{_count(work.files, 'source file')}, {size}" if work.files else f"source data of {size}"


def _time(work: Work) -> str:
    if work.duration_ms is not None:
        timed = _count(work.batches_timed, "recorded batch")
        return f"about {duration_text(work.duration_ms)}, estimated from {timed}, and 5 to 30 s to start Spark"
    return "an unknown time" if work.batches_timed else "an unknown time: no recorded batch has a duration"


def _kept_lines(cost: Cost, actions: Sequence[Action]) -> Iterator[str]:
    if any(isinstance(action.change, Swap) for action in actions):
        yield f"the old output stays until prune: {_held(cost.output)}; the new one takes about as much again"
    elif cost.output.batches:
        batches = _count(cost.output.batches, "batch")
        yield f"the backup keeps {batches} of the output until prune: {_held(cost.output)}"
    switched = sum(action.switch is not None for action in actions)
    if switched:
        size = "unknown size" if cost.checkpoint_bytes is None else size_text(cost.checkpoint_bytes)
        yield f"the old checkpoint{'s stay' if switched > 1 else ' stays'} until prune: {size}"


def _held(kept: Kept) -> str:
    rows = "" if kept.rows is None else _count(kept.rows, "row")
    files = "" if kept.files is None else _count(kept.files, "file")
    size = "unknown size" if kept.bytes is None else size_text(kept.bytes)
    return ", ".join(filter(None, (rows, files, size)))


def _count(number: int, noun: str) -> str:
    plural = f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"
