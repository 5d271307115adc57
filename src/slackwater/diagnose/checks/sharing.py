"""Two queries with one checkpoint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from slackwater.core.checkpoint import BatchLine, SourceOffset
from slackwater.core.errors import FormatError
from slackwater.core.facts import Facts, Severity
from slackwater.core.units import utc_text
from slackwater.diagnose.checks.common.check import Check, Found
from slackwater.diagnose.checks.store import temporary_files
from slackwater.sources import kind_of
from slackwater.sources.common.contract import SourceRange


def _back(facts: Facts, batch: int, source: str, what: str, values: tuple[str, str]) -> Found:
    expected, now = values
    return Found(
        f"the range of source {source} in batch {batch} {what}: two queries may use this checkpoint, each skipping "
        "what the other has read",
        where=f"{facts.checkpoint.location}/offsets/{batch}",
        expected=expected,
        found=now,
        advice="look for another program with this checkpoint location, stop it, and give each query its own "
        "checkpoint",
        facts={"batch": batch, "source": source, "what": what, "expected": expected, "now": now},
    )


def _planned(facts: Facts) -> list[BatchLine]:
    return [line for line in facts.checkpoint.report.batches if line.planned and line.sources]


def _positions(facts: Facts) -> Iterator[tuple[str, Found]]:
    for earlier, later in pairwise(_planned(facts)):
        starts = {end.source: end for end in earlier.sources}
        for end in later.sources:
            start = starts.get(end.source)
            if start is not None and _goes_back(start, end):
                what = f"ends before batch {earlier.id} does"
                expected = f"a position after {start.text}"
                yield end.source, _back(facts, later.id, end.source, what, (expected, f"{end.text}"))


def _goes_back(start: SourceOffset, end: SourceOffset) -> bool:
    if start.text is None or end.text is None or start.text == end.text:
        return False
    kind = kind_of(end.text, {})
    if kind_of(start.text, {}) != kind:
        return False
    try:
        counted = kind.counted(SourceRange(end.source, start.text, end.text))
    except FormatError:
        return False
    return any(count is not None and count < 0 for count in (counted or {}).values())


def _kinds(facts: Facts) -> Iterator[tuple[str, Found]]:
    seen: dict[str, list[str]] = {}
    for line in _planned(facts):
        for end in line.sources:
            if end.text is None:
                continue
            kinds, kind = seen.setdefault(end.source, []), kind_of(end.text, {}).kind
            if kinds and kind != kinds[-1] and kind in kinds:
                what = f"is of {kind} again, after {kinds[-1]}"
                yield end.source, _back(facts, line.id, end.source, what, (f"offsets of {kinds[-1]}", kind))
            if not kinds or kinds[-1] != kind:
                kinds.append(kind)


@Check[Facts]("SW-SHARE-003", Severity.WARNING, risk="skip", goal="backfill", certainty="possible")
def ranges_go_back(facts: Facts) -> Iterator[Found]:
    """The range of a batch goes back: two queries may use the checkpoint.

    Condition: a batch of `offsets/` ends before the previous batch, or a source changes its kind and changes back.
    Manual edits and recreated sources look alike.
    Effect: two queries overwrite each other's progress, and each silently skips the rows that the other has
    read.
    How to confirm: `slackwater inspect LOCATION` shows the batches' offsets; look for a second program with this
    checkpoint location.
    Remedy: keep one query running, and give the others their own checkpoints. Then process the skipped ranges in a
    batch job.
    Safety: yes, if the checkpoint stays with the query whose sources it has. If both run, both lose rows.
    References: Structured Streaming Programming Guide, Recovering from Failures with Checkpointing
    """
    # The newest batch of each source.
    yield from dict([*_kinds(facts), *_positions(facts)]).values()


_LOGS = frozenset({"offsets", "commits"})


def _twice(facts: Facts, batch: int, path: str, what: str, values: tuple[str, str]) -> Found:
    expected, now = values
    return Found(
        f"batch {batch} {what}: two drivers may have used this checkpoint at the same time",
        where=f"{facts.checkpoint.location}/{path}",
        expected=expected,
        found=now,
        at_stake=f"the rows of batch {batch}, where the sink does not know batches",
        advice=f"look for a second driver of the query, and stop it; then compare the rows of batch {batch} with the "
        "output",
        facts={"batch": batch, "path": path, "what": what, "expected": expected, "now": now},
    )


def _times(facts: Facts) -> Iterator[Found]:
    planned = [line for line in facts.checkpoint.report.batches if line.planned and line.timestamp_ms is not None]
    for earlier, later in pairwise(planned):
        before, after = earlier.timestamp_ms or 0, later.timestamp_ms or 0
        if after < before:
            what = f"was planned before batch {earlier.id}"
            values = (f"a time after {utc_text(before)}", utc_text(after))
            yield _twice(facts, later.id, f"offsets/{later.id}", what, values)


@Check[Facts]("SW-SHARE-001", Severity.WARNING, risk="duplicate", goal="resume", certainty="possible")
def two_writers(facts: Facts) -> Iterator[Found]:
    """Two drivers may have written to the checkpoint.

    Condition: a batch of `offsets/` was planned earlier than the batch before it; or two temporary files in
    `offsets/` or `commits/` are for the same entry. Different host clocks, and two crashes in a batch, look alike.
    Effect: Spark keeps no lock: the slower driver fails with "Multiple streaming jobs detected", perhaps after
    writing its rows, which a sink without batch ids then has twice.
    How to confirm: `slackwater inspect LOCATION` shows the batch's time: ask the scheduler for drivers at that time,
    and look for an older driver that still runs.
    Remedy: stop all drivers but one. Compare the rows of the batch with the output; then start the query.
    Safety: yes; nothing is changed. Deleting the checkpoint reads everything again.
    References: SPARK-43542; SPARK-26425
    """
    yield from list(_times(facts))[-1:]
    attempts = Counter(
        (one.folder, int(one.target))
        for one in temporary_files(facts.checkpoint)
        if one.folder in _LOGS and one.target.isascii() and one.target.isdigit()
    )
    for (folder, batch), files in sorted(attempts.items()):
        if files > 1:
            values = ("one temporary file at most", f"{files} of them")
            yield _twice(facts, batch, f"{folder}/{batch}", f"has {files} temporary files", values)
