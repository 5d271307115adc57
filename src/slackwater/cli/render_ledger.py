"""The page of ``slackwater ledger``."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from slackwater.app.ledger_view import BatchView, RunView, StreamView, parent_of
from slackwater.cli.render_words import number, span, timestamp
from slackwater.model.records import OperationRecord

RUNS_SHOWN = 10
OFFSET_WIDTH = 60


def ledger_page(streams: Sequence[StreamView], place: str) -> Group:
    """A block for each stream."""
    if not streams:
        return Group(Text(f"the ledger has no stream yet: {place}"))
    parts: list[Text | Table] = []
    for view in streams:
        parts += [Text()] if parts else []
        parts += _block(view)
    return Group(*parts)


def _block(view: StreamView) -> list[Text | Table]:
    heading = Text(view.stream.full_name, style="bold")
    heading.append(f"  {view.stream.output_mode} to {view.output}", "not bold")
    parts: list[Text | Table] = [heading, Text("generations", style="dim"), _generations(view)]
    parts += [Text("runs" + _more(len(view.runs)), style="dim"), _runs(view.runs[-RUNS_SHOWN:])]
    if view.operations:
        parts += [Text("operations", style="dim"), _operations(view.operations)]
    if view.batches is None:
        return [*parts, Text(f"{number(view.batches_recorded)} batches are recorded", style="dim")]
    of_all = f"batches, {len(view.batches)} of {number(view.batches_recorded)} recorded"
    return [*parts, Text(of_all, style="dim"), _batches(view.batches)]


def _more(count: int) -> str:
    return f", the newest {RUNS_SHOWN} of {count}" if count > RUNS_SHOWN else ""


def _generations(view: StreamView) -> Table:
    table = table_of("number", "in use", "built from", "query id", "checkpoint")
    for generation in view.generations:
        table.add_row(
            f"  {generation.number}",
            "yes" if generation.number == view.stream.current_generation else "",
            "" if generation.based_at is None else f"{parent_of(generation)} at batch {generation.based_at}",
            generation.query_id or "-",
            generation.location,
        )
    return table


def _runs(runs: Sequence[RunView]) -> Table:
    table = table_of("run", "generation", "started", "ended", "end", "Spark", "reason")
    for run in runs:
        record = run.record
        table.add_row(
            f"  {record.id}",
            str(record.generation),
            timestamp(record.started_ms),
            timestamp(record.ended_ms),
            run.end,
            record.spark_version,
            record.reason or "",
        )
    return table


def _operations(operations: Sequence[OperationRecord]) -> Table:
    table = table_of("operation", "goal", "status", "started", "ended", "summary")
    for record in operations:
        table.add_row(
            f"  {record.id}",
            record.goal,
            record.status,
            timestamp(record.started_ms),
            timestamp(record.ended_ms),
            record.summary,
        )
    return table


def _batches(batches: Sequence[BatchView]) -> Table:
    table = table_of(
        "batch", "gen", "rows", "event time from", "to", "watermark", "late", "state", "took", "source from", "to"
    )
    for batch in batches:
        progress = batch.progress
        table.add_row(
            f"  {batch.batch_id}",
            str(progress.generation) if progress else "-",
            number(progress.input_rows if progress else None),
            timestamp(progress.event_time_min_ms if progress else None),
            timestamp(progress.event_time_max_ms if progress else None),
            timestamp(batch.watermark_ms),
            number(progress.late_rows if progress else None),
            number(progress.state_rows if progress else None),
            span(took) if progress and (took := progress.durations_ms.get("triggerExecution")) is not None else "-",
            "\n".join(_short(source.start) for source in batch.sources),
            "\n".join(_short(source.end) for source in batch.sources),
        )
    return table


def _short(offset: str | None) -> str:
    if offset is None:
        return "-"
    return offset if len(offset) <= OFFSET_WIDTH else offset[: OFFSET_WIDTH - 3] + "..."


def table_of(*columns: str) -> Table:
    """A table without lines; its first column is indented, as that of its rows."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for index, column in enumerate(columns):
        table.add_column(f"  {column}" if index == 0 else column)
    return table
