"""The first batch of a replay, where a time or a position of the sources names it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from slackwater.errors import Refused, UsageError
from slackwater.formats.text_log import shown
from slackwater.model.targets import AtTime, ByDuration, FromFile, PositionTarget, Shift
from slackwater.model.units import iso_text
from slackwater.plan.batch_history import BatchHistory
from slackwater.plan.targets import target_text
from slackwater.sources.contract import Source, SourceRange

REPLAY_TARGETS = "last-written, earliest, batch:N, time:2026-01-31T00:00Z, by:PT6H, shift:-1000 or offsets:FILE"

Reads = Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class FirstBatch:
    """A search in the recorded batches up to ``written``. ``offsets`` are those of the target's file."""

    stream: str
    batches: BatchHistory
    written: int
    target: PositionTarget
    now_ms: int
    offsets: Mapping[str, str] = field(default_factory=dict)

    def find(self) -> int:
        """The first batch that was planned at the time or later, or that has read something from the position on.

        Raises UsageError (``target``) for what names no batch, Refused where it is outside of what is recorded.
        """
        recorded = self.batches.history.offsets
        known = [one for one in self.batches.batches if one <= self.written and (one == 0 or one - 1 in recorded)]
        if not known:
            raise self._outside("no written batch is recorded", expected=f"batch:{self.written}")
        reads = self._reads(known)
        found = next((batch for batch in known if reads(batch)), None)
        if found is None:
            raise self._outside(
                f"no batch up to {known[-1]}, the newest that was written, has read anything from there on",
                expected=self._newest(known[-1]),
            )
        if found == known[0] > 0:
            raise self._outside(
                f"batches before {found} are not recorded, and one of them may be the first",
                expected=f"batch:{found} or later",
            )
        return found

    def _reads(self, known: Sequence[int]) -> Reads:
        match self.target:
            case AtTime() | ByDuration():
                return self._planned_since(self.target)
            case Shift() if self.target.count < 0:
                return self._reads_last(known, -self.target.count)
            case FromFile():
                self._check_offsets(known[-1], self.target)
                return self._reads_from_offsets
            case _:
                raise UsageError(
                    "target",
                    "The goal has no such target",
                    expected=REPLAY_TARGETS,
                    found=target_text(self.target),
                    hint="slackwater plan replay --help",
                )

    def _planned_since(self, target: AtTime | ByDuration) -> Reads:
        time_ms = self.now_ms - target.back_ms if isinstance(target, ByDuration) else target.time_ms
        if time_ms > self.now_ms:
            raise self._outside("the time is in the future", expected=f"up to {iso_text(self.now_ms)}")
        return lambda batch: planned_ms(self.batches, batch) >= time_ms

    def _reads_last(self, known: Sequence[int], count: int) -> Reads:
        """Whether a batch has read one of the newest ``count`` offsets of a partition, or one of so many files."""
        found: set[int] = set()
        later: dict[tuple[str, str], int] = {}
        for batch in reversed(known):
            for kind, span in self.batches.spans(batch, batch):
                for part, read in _counted(kind, span).items():
                    behind = later.get((span.source, part), 0)
                    if read is None or read <= 0:
                        continue
                    later[span.source, part] = behind + read
                    if behind < count:
                        found.add(batch)
        return found.__contains__

    def _reads_from_offsets(self, batch: int) -> bool:
        """Whether a batch has read something at one of the given positions, or after it."""
        for kind, span in self.batches.spans(batch, batch):
            if span.source in self.offsets:
                read, ahead = _counted(kind, span), _ahead(kind, span, self.offsets[span.source])
                if any((read.get(part) or 0) > 0 and (count or 0) > 0 for part, count in ahead.items()):
                    return True
        return False

    def _check_offsets(self, last: int, target: FromFile) -> None:
        """Raises UsageError for a source that was not read, Refused for a part that was not, or not so far."""
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
            for part, ahead in _ahead(kind, span, position).items():
                if ahead is None or ahead < 0:
                    raise self._outside(
                        f"source {source} has read nothing of {part}, or not so far", expected=kind.describe(span.end)
                    )

    def _newest(self, last: int) -> str:
        if isinstance(self.target, AtTime | ByDuration):
            return f"up to {iso_text(planned_ms(self.batches, last))}, when batch {last} was planned"
        return "up to " + ", ".join(kind.describe(span.end) for kind, span in self.batches.spans(last, last))

    def _outside(self, what: str, *, expected: str) -> Refused:
        return Refused(
            "target-out-of-range",
            f"The target is outside of what was processed: {what}",
            where=f"stream {self.stream}",
            expected=expected,
            found=target_text(self.target),
            hint=f"slackwater ledger {self.stream} lists the batches; batch:N names one",
        )


def planned_ms(batches: BatchHistory, batch: int) -> int:
    """When the range of a batch was fixed: nothing that came later is in it, or in an older one. 0: not recorded."""
    metadata = batches.offset(batch).metadata
    return metadata.batch_timestamp_ms if metadata is not None else 0


def _ahead(kind: Source, span: SourceRange, position: str) -> Mapping[str, int | None]:
    """How far the end of a range is ahead of a position, by the parts that the position names."""
    named = _counted(kind, replace(span, start=position, end=position))
    return {part: count for part, count in _counted(kind, replace(span, start=position)).items() if part in named}


def _counted(kind: Source, span: SourceRange) -> Mapping[str, int | None]:
    counted = kind.counted(span)
    if counted is None:
        raise Refused(
            "target-unsupported",
            f"The first batch is unknown: what the offsets of source {span.source} ({kind.kind}) count is not known, "
            "or not recorded",
            where=f"source {span.source}",
            found=kind.describe(span.end),
            hint="name the first batch: batch:N, or the time since when: time:...",
        )
    return counted
