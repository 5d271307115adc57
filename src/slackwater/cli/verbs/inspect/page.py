"""The page of ``slackwater inspect``, in the order of need. Quick, so only the standard library."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from slackwater.core.checkpoint import (
    BatchLine,
    CheckpointReport,
    Damage,
    NextBatch,
    OperatorLine,
    SourceLine,
    SourceOffset,
    StoreLine,
)
from slackwater.core.units import size_text, utc_text

_PREFIX = "spark.sql."
_IMPORTANT = (
    "shuffle.partitions",
    "streaming.stateStore.providerClass",
    "streaming.stateStore.compression.codec",
    "streaming.multipleWatermarkPolicy",
)
_WIDEST = 110
_SHOWN_DAMAGE = 20
_SHOWN_BATCHES = 5
_SHOWN_LEFTOVERS = 5


@dataclass(frozen=True, slots=True)
class PageOptions:
    batch: int | None = None
    all_settings: bool = False
    all_files: bool = False


def page(report: CheckpointReport, options: PageOptions) -> str:
    blocks = [
        _head(report),
        _marks(report),
        _next(report.next_batch),
        _batch(report, options.batch) if options.batch is not None else _batches(report.batches),
        _sources(report, all_files=options.all_files),
        _operators(report.operators),
        _settings(report, all_settings=options.all_settings),
        _leftovers(report.leftovers),
        _damage(report.damage),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _head(report: CheckpointReport) -> str:
    release = f"{report.spark_at_least} or later" if report.spark_at_least else "unknown"
    versions = [
        f"{name} v{number}"
        for name, number in (("offsets", report.offsets_version), ("commits", report.commits_version))
        if number is not None
    ]
    return _table(
        [
            ("checkpoint", report.location),
            ("query id", report.query_id or "unreadable"),
            ("Spark", f"{release}  ({report.spark_evidence})"),
            ("logs", ", ".join(versions) or "empty"),
            ("files", f"{report.file_count:,}{_in_parentheses(report.file_bytes)}"),
        ]
    )


def _in_parentheses(size: int | None) -> str:
    return f" ({size_text(size)})" if size is not None else ""


def _marks(report: CheckpointReport) -> str:
    marks = report.marks
    rows = [
        ("planned", _mark(marks.planned), "newest batch whose range is fixed (offsets/)"),
        ("committed", _mark(marks.committed), "newest batch that Spark has finished (commits/)"),
        ("state", _mark(marks.state), "newest batch whose state can be loaded (state/)"),
    ]
    if marks.state is None:
        rows[2] = ("state", "-", "the stream keeps no state")
    return "Marks\n" + _indent(_table(rows)) + "\n\n" + _indent(number_line(report))


def _mark(mark: int | None) -> str:
    return "?" if mark is None else "none" if mark < 0 else str(mark)


def number_line(report: CheckpointReport) -> str:
    marks, coming = report.marks, report.next_batch
    marked: dict[int, list[str]] = {}
    for name, mark in (("planned", marks.planned), ("committed", marks.committed), ("state", marks.state)):
        if mark is not None and mark >= 0:
            marked.setdefault(mark, []).append(name)
    following = marks.next_batch if coming is None else coming.id
    marked.setdefault(following, []).append("next")
    first = max(0, min(marked) - 1)
    # Never a range of all ids: a file name can claim batch 10**17. A state mark can be beyond the next batch.
    ids = sorted({first, *marked, *range(max(first, following - 2), following + 1)})
    line, columns = "... " if first > 0 else "", {}
    for index, number in enumerate(ids):
        if index:
            line += " -- " if number == ids[index - 1] + 1 else " ... "
        columns[number] = len(line)
        line += str(number)
    labels = [" " * columns[number] + "^ " + ", ".join(names) for number, names in sorted(marked.items(), reverse=True)]
    return "\n".join([line, *labels])


def _next(batch: NextBatch | None) -> str:
    if batch is None:
        return "Next batch\n  unknown: the newest offsets entry cannot be parsed"
    meaning = {
        "rerun": "it was planned but not committed: Spark runs it again with exactly this range",
        "replan": "its range is not fixed yet: Spark will plan it from these positions",
    }[batch.mode]
    rows = [("watermark", time_text(batch.watermark_ms))]
    ends = {end.source: end for end in batch.end or ()}
    names = [end.source for end in batch.start] or list(ends)
    starts = {end.source: end for end in batch.start}
    for name in dict.fromkeys([*names, *ends]):
        reach = f"after {_offset(starts.get(name))}"
        rows.append((f"source {name}", reach + (f" up to {_offset(ends.get(name))}" if batch.end else "")))
    return f"Next batch: {batch.id} ({meaning})\n" + _indent(_table(rows))


def _offset(end: SourceOffset | None) -> str:
    if end is None or end.text is None:
        return "the beginning"
    return _cut(end.text)


def _batches(batches: Sequence[BatchLine]) -> str:
    if not batches:
        return ""
    shown = list(batches)[-_SHOWN_BATCHES:]
    head = ("batch", "planned at", "watermark", "committed")
    rows = [head, *(_batch_row(line) for line in reversed(shown))]
    more = f"{len(batches)} kept, from {batches[0].id} to {batches[-1].id}"
    return f"Newest batches ({more})\n" + _indent(_table(rows))


def _batch_row(line: BatchLine) -> tuple[str, ...]:
    return (
        str(line.id),
        time_text(line.timestamp_ms) if line.planned else "no plan",
        time_text(line.watermark_ms) if line.watermark_ms is not None else "-",
        "yes" if line.committed else "no",
    )


def _batch(report: CheckpointReport, wanted: int) -> str:
    line = next((line for line in report.batches if line.id == wanted), None)
    if line is None:
        return ""
    rows = [
        ("planned", f"{time_text(line.timestamp_ms)}" if line.planned else "no"),
        ("committed", "yes" if line.committed else "no"),
        ("watermark", time_text(line.watermark_ms)),
        ("watermark after", time_text(line.next_watermark_ms)),
        *((f"source {end.source}", f"up to {_offset(end)}") for end in line.sources),
    ]
    return f"Batch {wanted}\n" + _indent(_table(rows))


def _sources(report: CheckpointReport, *, all_files: bool) -> str:
    if not report.sources:
        return ""
    newest = report.batches[-1].sources if report.batches else ()
    positions = {end.source: end for end in newest}
    rows = [
        (line.name, line.kind, f"at {_offset(positions.get(line.name))}", _source_log(line)) for line in report.sources
    ]
    text = "Sources\n" + _indent(_table(rows))
    if all_files:
        text += "".join(
            f"\n    {line.name}:{file.log_offset}  {time_text(file.timestamp_ms)}  {file.path}"
            for line in report.sources
            for file in (line.log.entries if line.log else ())
        )
    return text


def _source_log(line: SourceLine) -> str:
    if line.log is not None:
        return f"own log {line.log.first} to {line.log.last}, {line.log.files} files"
    return f"started at {_cut(line.initial)}" if line.initial else ""


def _operators(operators: Sequence[OperatorLine]) -> str:
    if not operators:
        return ""
    lines = ["Stateful operators (0 is nearest the sink)"]
    for operator in operators:
        inferred = ", inferred from its stores" if operator.inferred else ""
        partitions = f"{operator.partitions} partition{'s' * (operator.partitions != 1)}"
        lines.append(f"  {operator.id}  {operator.name}  {partitions}{inferred}")
        lines.append(_indent(_table([_store(store) for store in operator.stores]), 5))
    return "\n".join(line for line in lines if line.strip())


def _store(store: StoreLine) -> tuple[str, ...]:
    kept = "no version can be loaded" if store.last is None else f"versions {store.first} to {store.last}"
    if store.missing:
        kept += f" without {_numbers(store.missing)}"
    families = [name for name in store.families if not name.startswith("$")]
    return (
        store.name,
        store.provider or "empty",
        kept,
        f"{store.rows:,} rows" if store.rows is not None else "",
        size_text(store.bytes) if store.bytes is not None else "",
        "holds " + ", ".join(families) if families else "",
    )


def _numbers(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:_SHOWN_BATCHES]))
    return shown + (" ..." if len(numbers) > _SHOWN_BATCHES else "")


def _settings(report: CheckpointReport, *, all_settings: bool) -> str:
    settings = {name.removeprefix(_PREFIX): value for name, value in sorted(report.settings.items())}
    if not settings:
        return ""
    shown = settings if all_settings else {name: settings[name] for name in _IMPORTANT if name in settings}
    rest = len(settings) - len(shown)
    more = f", {rest} more with --conf" if rest else ""
    return f"Pinned settings ({_PREFIX}...{more})\n" + _indent(_table(list(shown.items())))


def _leftovers(paths: Sequence[str]) -> str:
    if not paths:
        return ""
    shown = "\n".join(paths[:_SHOWN_LEFTOVERS])
    more = f"\n... and {len(paths) - _SHOWN_LEFTOVERS} more" if len(paths) > _SHOWN_LEFTOVERS else ""
    return f"Left over ({len(paths)} files that Spark ignores)\n" + _indent(shown + more)


def _damage(damage: Sequence[Damage]) -> str:
    if not damage:
        return "Damage: none found"
    lines = [f"Damage ({len(damage)})"]
    for item in damage[:_SHOWN_DAMAGE]:
        lines.append(f"  {item.path}: {item.kind}")
        lines.append(f"      expected {item.expected}; found {item.found}")
    if len(damage) > _SHOWN_DAMAGE:
        lines.append(f"  ... and {len(damage) - _SHOWN_DAMAGE} more with --format json")
    if any(item.kind == "too-large" for item in damage):
        lines.append("  Files that are too large were not read; raise the limit with --max-bytes")
    return "\n".join(lines)


def state_page(rows: dict[str, Any]) -> str:
    operator = rows["operator"]
    head = (
        f"operator {operator['id']} ({operator['name']}), {rows['store']}, after batch {rows['batch']}: "
        f"{rows['total']:,} rows"
    )
    lines = [head, *(json.dumps(row, ensure_ascii=False) for row in rows["rows"])]
    if rows["undecoded"]:
        lines.append(f"not decoded: {rows['undecoded'][0]['reason']}")
        lines.extend(json.dumps(row, ensure_ascii=False) for row in rows["undecoded"])
    if "written" in rows:
        lines.append(f"{rows['written']['rows']:,} rows written to {rows['written']['file']}")
    lines.extend(
        f"damage: {item['path']}: {item['kind']}; expected {item['expected']}; found {item['found']}"
        for item in rows["damage"]
    )
    return "\n".join(lines) + "\n"


def time_text(milliseconds: int | None) -> str:
    if milliseconds is None:
        return "-"
    return utc_text(milliseconds) if milliseconds else "none yet"


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    listed = list(rows)
    count = max((len(row) for row in listed), default=0)
    widths = [max((len(row[column]) for row in listed if column < len(row)), default=0) for column in range(count)]
    lines = []
    for row in listed:
        cells = [cell.ljust(widths[column]) for column, cell in enumerate(row)]
        lines.append("  ".join(cell for column, cell in enumerate(cells) if widths[column]).rstrip())
    return "\n".join(lines)


def _indent(text: str, by: int = 2) -> str:
    return "\n".join(" " * by + line for line in text.split("\n"))
