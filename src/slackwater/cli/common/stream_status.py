from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from slackwater.checkpoint.layout import commit_path, offset_path
from slackwater.checkpoint.opened import OpenedCheckpoint
from slackwater.core.checkpoint import CommitEntry, Depth, OffsetEntry
from slackwater.core.errors import FormatError, unreachable
from slackwater.core.facts import Finding, Severity, Unknown
from slackwater.core.records import NEWEST_BATCHES, BatchRecord, BatchSource, StreamRecord
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.checks.common.check import lag_of, rows_ahead
from slackwater.diagnose.number_line import codes_from_plan, findings
from slackwater.facts.collect import facts_of_start
from slackwater.facts.sources import asked_sources, not_compared
from slackwater.formats.text_log import parse_commit_entry, parse_offset_entry
from slackwater.ledger.home import Place, place_of
from slackwater.ledger.lease import LeaseView, end_of, view_of
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.snapshot import look_at_stream
from slackwater.ledger.workspace import Workspace, moved_beside
from slackwater.sources import kind_described
from slackwater.sources.common.contract import SourceRange, Uncounted
from slackwater.storage.open import open_read_store


def next_watermark_ms(planned: OffsetEntry | None, before: OffsetEntry | None, commit: CommitEntry | None) -> int:
    """The watermark in epoch milliseconds, 0 for none.

    A planned batch runs with the watermark in its own entry of ``offsets/``, ``planned``. Otherwise Spark restores the
    watermark of the batch before and raises it to the watermark in that batch's commit, if newer
    (``MicroBatchExecution.populateStartOffsets``). A progress event has its own batch's older watermark.
    """
    if planned is not None:
        return planned.watermark_ms
    return max(before.watermark_ms if before else 0, commit.next_batch_watermark_ms if commit else 0)


def watermark_of(snapshot: Snapshot) -> int:
    """The next batch's watermark, 0 if unknown."""
    last = snapshot.marks.next_batch - 1
    if snapshot.planned_entry is not None or last < 0:
        return next_watermark_ms(snapshot.planned_entry, None, None)
    store = open_read_store(snapshot.generation.location)
    try:
        before = parse_offset_entry(store.read(offset_path(last)))
        commit = parse_commit_entry(store.read(commit_path(last)))
    except (OSError, FormatError):
        # The snapshot lists the damage.
        return 0
    return next_watermark_ms(None, before, commit)


FILES_MAX = 10_000
"""Most names in a source directory, and entries in its log, that are compared: ``status`` must be quick."""


@dataclass(frozen=True, slots=True)
class Lag:
    """The backlog of sources after a batch; ``None``: no such source. ``unknown``: why files were not counted;
    ``files`` and ``bytes`` are then ``None``.
    """

    rows: int | None = None
    files: int | None = None
    bytes: int | None = None
    unknown: str | None = None


def has_read_all(batch: BatchRecord) -> bool:
    return bool(batch.sources) and not any(rows is None or rows for rows in rows_ahead(batch))


def every_source_counts(batch: BatchRecord) -> bool:
    """Whether each source, unlike a Delta table, reports rows or has listable files."""
    rows, files = rows_ahead(batch), _file_sources(batch)
    return bool(rows) and all(ahead is not None or index in files for index, ahead in enumerate(rows))


def stream_lag(ledger: Ledger, batch: BatchRecord | None) -> Lag:
    """The lag after a batch; nothing with more than ``FILES_MAX`` files is listed."""
    if batch is None:
        return Lag(unknown="no batch has reported its progress yet")
    read: dict[int, Mapping[int, str]] = {}
    for index in _file_sources(batch):
        log = f"sources/{index}"
        if len(ledger.entries(batch.stream, log)) > FILES_MAX:
            return Lag(lag_of(batch), unknown=f"source {index} has read files in more than {FILES_MAX:,} entries")
        read[index] = ledger.lines(batch.stream, log)
    return lag_after(batch, read)


def lag_after(batch: BatchRecord, recorded: Mapping[int, Mapping[int, str]]) -> Lag:
    """``recorded``: by index of a file source, its log's entries by number."""
    sources = _file_sources(batch)
    if not sources:
        return Lag(lag_of(batch))
    sizes: list[int] = []
    for index, source in sources.items():
        read = SourceRange(str(index), None, source.end, recorded.get(index, {}))
        try:
            sizes += kind_described(source.description).live().unread(source.description, read, FILES_MAX)
        except (OSError, FormatError) as error:
            return Lag(lag_of(batch), unknown=f"source {index} cannot be listed: {error}")
        except Uncounted as reason:
            return Lag(lag_of(batch), unknown=f"source {index} {reason}")
    return Lag(lag_of(batch), len(sizes), sum(sizes))


def _file_sources(batch: BatchRecord) -> dict[int, BatchSource]:
    sources = enumerate(batch.sources)
    return {index: source for index, source in sources if kind_described(source.description).reads_files}


SEARCHED_BATCHES = 20
"""Batches searched for a progress event before the whole list is read."""


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """``run_end`` is seen now; ``batch`` is the newest with recorded progress.

    ``lag`` is beyond that batch, ``watermark_ms`` the next batch's. ``late_rows`` were dropped by the newest batches of
    the generation in use. ``findings``, never empty, start with lost sources. ``not_compared``: sources that did not
    answer; ``moved_to``: a possible new path of a lost checkpoint.
    """

    snapshot: Snapshot
    findings: tuple[Finding, ...]
    batch: BatchRecord | None
    lag: Lag
    watermark_ms: int
    lease: LeaseView
    run_end: str | None
    not_compared: tuple[str, ...] = ()
    moved_to: str | None = None
    late_rows: int = 0

    @property
    def from_plan(self) -> tuple[str, ...]:
        return codes_from_plan(self.findings)

    @property
    def rerun(self) -> bool:
        return self.snapshot.marks.committed < self.snapshot.marks.planned


def home_place(workspace: Workspace) -> Callable[[], Place]:
    """Looks up the place of the home once; an error is raised each time."""
    return cache(lambda: place_of(workspace.home, workspace.in_home))


def stream_status(
    workspace: Workspace, stream: StreamRecord, depth: Depth = "quick", *, place: Callable[[], Place] | None = None
) -> StreamStatus:
    """The status of a stream; ``place`` as of ``home_place``."""
    ledger = workspace.ledger
    # Before the snapshot: a run that ends meanwhile is then seen with its end, and never as killed.
    lease = view_of(ledger, stream.full_name)
    try:
        snapshot, opened = look_at_stream(ledger, workspace.home, stream, depth, place=place)
        found, not_compared = _compared(ledger, snapshot, opened)
    except OSError as error:
        raise unreachable(f"The checkpoint or the output of stream {stream.full_name}", error) from error
    planned = max(snapshot.recorded.planned, snapshot.marks.planned)
    recent = ledger.batches(stream.full_name, first=max(planned - SEARCHED_BATCHES, 0))
    batch = next(reversed(recent or ledger.batches(stream.full_name)), None)
    committed = snapshot.marks.committed
    if batch is not None and snapshot.stream.is_watched and snapshot.holder is None and committed > batch.batch_id:
        # The user's program has committed later batches by itself.
        lag = Lag(unknown=f"no progress after batch {batch.batch_id} is recorded")
    else:
        lag = stream_lag(ledger, batch)
    return StreamStatus(
        snapshot=snapshot,
        findings=found,
        batch=batch,
        lag=lag,
        watermark_ms=watermark_of(snapshot),
        lease=lease,
        run_end=end_of(snapshot.last_run, lease) if snapshot.last_run else None,
        not_compared=not_compared,
        moved_to=moved_beside(ledger, stream),
        late_rows=ledger.late_rows(
            stream.full_name, stream.current_generation, max(snapshot.marks.planned - NEWEST_BATCHES, 0)
        ),
    )


def _compared(
    ledger: Ledger, snapshot: Snapshot, opened: OpenedCheckpoint
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    found = findings(snapshot)
    if snapshot.holder is not None or any(finding.severity is Severity.STOP for finding in found):
        # A running query moves its positions meanwhile; and a start is refused for the other stop first.
        return found, ()
    sources = asked_sources(ledger, snapshot, opened)
    known = (fact for source in sources for fact in (source.unserved, source.changed_files))
    if any(fact and not isinstance(fact, Unknown) for fact in known):
        # All checks are loaded with it, which takes longer than the rest of the status.
        doctor: Any = import_module("slackwater.diagnose.doctor")
        found = doctor.found_at_start(facts_of_start(ledger, snapshot, opened, sources))
    return found, not_compared(sources)
