"""A replay: process the batches from a given batch on again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from slackwater.core.commands import command
from slackwater.core.errors import Refused, UsageError
from slackwater.core.targets import Target
from slackwater.core.units import iso_text
from slackwater.formats.text_log import shown
from slackwater.ledger.recording.batch_history import BatchHistory
from slackwater.operations.goals.goal import RETENTION, ROW_ORDER, Flag, Goal
from slackwater.operations.goals.rebuild import check_shown, kept_scope, scope_at
from slackwater.operations.plan.context import PlanContext, Scope, check_cut, check_since_start, require_code
from slackwater.operations.plan.plan import BATCH, BEFORE_ALL, EARLIEST, LAST_WRITTEN, Request
from slackwater.operations.plan.targets import parse_target, position_target, target_text
from slackwater.sources.common.contract import SourceRange
from slackwater.sources.common.source import Source

if TYPE_CHECKING:
    from slackwater.operations.plan.context import StreamFacts
    from slackwater.operations.planner import Planner


REPLAY_TARGETS = "last-written, earliest, batch:N, time:2026-01-31T00:00Z, by:PT6H, shift:-1000 or offsets:FILE"


def _target(context: PlanContext) -> int:
    written = context.written
    target = written - 1 if context.target is None else context.target
    if target >= 0:
        check_shown(context, written)
    if not BEFORE_ALL <= target < written:
        raise Refused(
            "target-unwritten",
            f"The sink of stream {context.snapshot.stream.name} does not hold batch {target + 1}, so that it cannot be "
            "processed again",
            expected=f"a batch from 0 to {written}" if written >= 0 else "a stream that has written something",
            found=str(target + 1),
            hint=command("status", context.snapshot.stream.full_name),
        )
    check_since_start(context, target)
    return target


class Replay(Goal):
    name = "replay"
    summary = "Process all batches from a given batch again."
    outputs = ("cut", "swap", "keep")
    flags = (
        Flag(
            "--from",
            "at",
            f"the first batch to process again: batch:N, {EARLIEST}, {LAST_WRITTEN} (default; only this batch); or "
            "the first batch planned since a time (time:2026-01-31T00:00Z, by:PT6H) or read from a position on "
            "(shift:-1000, offsets:FILE)",
            kind="target",
            metavar="TARGET",
            default=LAST_WRITTEN,
        ),
        Flag(
            "--output",
            "output",
            "how to treat existing output of these batches: cut (default) moves it to a backup at once; swap "
            "builds new output in staging and replaces all output when staging has caught up; keep leaves it, so a "
            "sink that does not skip batches gets their rows twice",
            kind="choice",
            default=outputs[0],
            choices=outputs,
        ),
        RETENTION,
        ROW_ORDER,
    )
    runs_spark = True

    def check_target(self, text: str) -> None:
        parse_target(text)

    def complete(self, request: Request, planner: Planner, facts: StreamFacts, /) -> Request:
        """A batch means the same when the plan is applied, a time or position does not."""
        if request.target in {LAST_WRITTEN, EARLIEST} or request.target.startswith(BATCH):
            return request
        snapshot, batches = facts.snapshot, BatchHistory(facts.history)
        written, now_ms = snapshot.written_or_committed, round(time.time() * 1000)
        target, offsets = position_target(request.target, batches, written, planner.read_file)
        batch = FirstBatch(snapshot.stream.full_name, batches, written, target, now_ms, offsets or {}).find()
        planned = iso_text(planned_ms(batches, batch))
        planner.say(f"{request.target}: batch {batch} is the first; it was planned at {planned}")
        return replace(request, target=f"{BATCH}{batch}")

    def continued_after(self, request: Request, /) -> int | None:
        first = self._named_batch(request.target)
        return None if first is None else max(first - 1, BEFORE_ALL)

    def scope(self, context: PlanContext, /) -> Scope | None:
        target, stream, batches = _target(context), context.snapshot.stream, context.batches
        # Only an output that does not skip ids can keep batches that run again.
        skips = [one for one in context.snapshot.outputs if one.written is not None or one.batches_skipped]
        if context.request.output == "keep" and skips:
            raise Refused(
                "output-skips",
                f"The output cannot be kept: it skips batches that it has by their id, so that the batches from "
                f"{target + 1} on would change nothing",
                where=skips[0].location,
                expected="--output cut",
                found="--output keep",
                hint=command("plan", "replay", stream.full_name, "--from", f"{BATCH}{target + 1}", *stream.session),
            )
        kept = kept_scope(context, target)
        if kept is not None:
            kept = kept._replace(keeps_pending=False)
            check_cut(context, kept)
            return kept
        require_code(stream, self.name, stream.pipeline_file)
        if not batches.is_whole(target):
            oldest = next((batch for batch in batches.batches if batches.is_whole(batch)), None)
            raise Refused(
                "target-unknown",
                f"The range of batch {target}, after which the replay would start, is not recorded",
                expected="batch 0" if oldest is None else f"batch 0, or batch {oldest + 1} or later",
                found=f"{BATCH}{target + 1}",
                hint=command("plan", "replay", stream.full_name, "--from", "earliest", *stream.session),
            )
        return scope_at(context, target)

    def why_cut(self, _held: str, _target: int, /) -> str | None:
        return None

    def target_at(self, batch: int) -> str:
        return f"{BATCH}{batch + 1}"


REPLAY = Replay()


class FirstBatch(NamedTuple):
    """``offsets`` are from the target's file."""

    stream: str
    batches: BatchHistory
    written: int
    target: Target
    now_ms: int
    offsets: Mapping[str, str]

    def find(self) -> int:
        """Raises UsageError (``target``) unless the target is a batch, Refused outside the recorded batches."""
        recorded = self.batches.history.offsets
        known = [one for one in self.batches.batches if one <= self.written and (one == 0 or one - 1 in recorded)]
        if not known:
            raise self._outside("no written batch is recorded", expected=f"batch:{self.written}")
        last, number = known[-1], self.target.number
        reading: Iterator[int]
        match self.target.kind:
            case "time" | "by":
                time_ms = self.now_ms - number if self.target.kind == "by" else number
                if time_ms > self.now_ms:
                    raise self._outside("the time is in the future", expected=f"up to {iso_text(self.now_ms)}")
                reading = (batch for batch in known if planned_ms(self.batches, batch) >= time_ms)
            case "shift" if number < 0:
                reading = reversed(self._reads_last(known, -number))
            case "offsets":
                self._check_offsets(last, self.target)
                reading = (batch for batch in known if self._reads_from_offsets(batch))
            case _:
                raise UsageError(
                    "target",
                    "Invalid target for plan replay",
                    expected=REPLAY_TARGETS,
                    found=target_text(self.target),
                    hint=command("plan", "replay", "--help"),
                )
        found = next(reading, None)
        if found is None:
            newest = "up to " + ", ".join(kind.describe(span.end) for kind, span in self.batches.spans(last, last))
            if self.target.kind in ("time", "by"):
                newest = f"up to {iso_text(planned_ms(self.batches, last))}, when batch {last} was planned"
            raise self._outside(
                f"no batch up to {last}, the newest that was written, has read anything from there on", expected=newest
            )
        if found == known[0] > 0:
            raise self._outside(
                f"batches before {found} are not recorded, and one of them may be the first",
                expected=f"batch:{found} or later",
            )
        return found

    def _reads_last(self, known: Sequence[int], count: int) -> list[int]:
        found = []
        later: dict[tuple[str, str], int] = {}
        for batch in reversed(known):
            for kind, span in self.batches.spans(batch, batch):
                for part, read in _counted(kind, span).items():
                    behind = later.get((span.source, part), 0)
                    if read is None or read <= 0:
                        continue
                    later[span.source, part] = behind + read
                    if behind < count:
                        found.append(batch)
        return found

    def _reads_from_offsets(self, batch: int) -> bool:
        for kind, span in self.batches.spans(batch, batch):
            if span.source in self.offsets:
                read, ahead = _counted(kind, span), _ahead(kind, span, self.offsets[span.source])
                if any((read.get(part) or 0) > 0 and (count or 0) > 0 for part, count in ahead.items()):
                    return True
        return False

    def _check_offsets(self, last: int, target: Target) -> None:
        spans = {span.source: (kind, span) for kind, span in self.batches.spans(last, last)}
        for source, position in self.offsets.items():
            if source not in spans:
                raise UsageError(
                    "target",
                    "The query has no source of this name",
                    where=target.file,
                    expected=", ".join(spans),
                    found=shown(source),
                    hint="sources are numbered from 0 in the order of the query",
                )
            kind, span = spans[source]
            kind.check_offset(source, position, target.file)
            for part, ahead in _ahead(kind, span, position).items():
                if ahead is None or ahead < 0:
                    raise self._outside(
                        f"source {source} has read nothing of {part}, or not so far", expected=kind.describe(span.end)
                    )

    def _outside(self, what: str, *, expected: str) -> Refused:
        return Refused(
            "target-out-of-range",
            f"The target is outside of the processed range: {what}",
            where=f"stream {self.stream}",
            expected=expected,
            found=target_text(self.target),
            hint=f"{command('ledger', self.stream)} lists the batches; batch:N is a batch",
        )


def planned_ms(batches: BatchHistory, batch: int) -> int:
    """When the batch's range was fixed. 0: not recorded."""
    metadata = batches.offset(batch).metadata
    return metadata.batch_timestamp_ms if metadata is not None else 0


def _ahead(kind: Source, span: SourceRange, position: str) -> Mapping[str, int | None]:
    named = _counted(kind, span._replace(start=position, end=position))
    return {part: count for part, count in _counted(kind, span._replace(start=position)).items() if part in named}


def _counted(kind: Source, span: SourceRange) -> Mapping[str, int | None]:
    counted = kind.counted(span)
    if counted is None:
        raise Refused(
            "target-unsupported",
            f"The first batch is unknown: what the offsets of source {span.source} ({kind.kind}) count is not known, "
            "or not recorded",
            where=f"source {span.source}",
            found=kind.describe(span.end),
            hint="give the first batch: batch:N, or a start time: time:...",
        )
    return counted
