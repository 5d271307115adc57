"""``slackwater inspect``: the content of a checkpoint."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from slackwater.checkpoint.listing import limited
from slackwater.checkpoint.opened import OpenedCheckpoint, open_checkpoint
from slackwater.checkpoint.reader import collector_off, file_text, read_checkpoint
from slackwater.cli.common.arguments import Format
from slackwater.cli.common.console import (
    Document,
    copied,
    marks_document,
    offset_value,
    prepare,
    print_json,
    write,
    write_page,
)
from slackwater.cli.common.examine import location_of, require_recorded
from slackwater.core.checkpoint import (
    BatchLine,
    CheckpointReport,
    Damage,
    NextBatch,
    OperatorLine,
    ReadLimits,
    SourceOffset,
)
from slackwater.core.commands import command
from slackwater.core.errors import FormatError, NotFound, UsageError
from slackwater.core.units import size_text, utc_text
from slackwater.storage.open import open_read_store
from slackwater.storage.protocols import FileTooLarge
from slackwater.storage.user_files import PRIVATE, NewFile

SCHEMA = "slackwater.inspect/1"
_PREFIX = "spark.sql."
_IMPORTANT = (
    "shuffle.partitions",
    "streaming.stateStore.providerClass",
    "streaming.stateStore.compression.codec",
    "streaming.multipleWatermarkPolicy",
)
_SHOWN_DAMAGE = 20
_SHOWN_BATCHES = 5
_SHOWN_LEFTOVERS = 5
READ_WITH_DAMAGE = 3
"""The exit code if a file is damaged; the rest was read."""


def inspect(
    *,
    target: str,
    batch: int | None,
    operators: bool,
    sources: bool,
    conf: bool,
    raw: str | None,
    state: int | None,
    store: str | None,
    side: str | None,
    partition: int | None,
    limit: int | None,
    max_bytes: int | None,
    to: Path | None,
    force: bool,
    home: str | None,
    shown_as: Format,
) -> int:
    prepare(home, shown_as)
    limits = ReadLimits() if max_bytes is None else ReadLimits.all(max_bytes)
    if raw is not None:
        text = inspect_file(target, raw, home=home, limits=limits).rstrip("\n")
        if shown_as is Format.JSON:
            print_json({"schema": "slackwater.file/1", "path": raw.strip("/"), "text": text})
        else:
            write(text + "\n")
        return 0
    if state is not None:
        from slackwater.cli.verbs.inspect.rows import show_state  # noqa: PLC0415 - brings numpy and pyarrow

        export = NewFile(to, force=force, mode=PRIVATE) if to is not None else None
        if export is not None:
            export.check()
        request = StateRequest(state, store=store, side=side, partition=partition, batch=batch, limits=limits)
        return show_state(target, request, home=home, limit=limit, export=export, shown_as=shown_as)
    if force or any(value is not None for value in (store, side, partition, limit, to)):
        raise UsageError(
            "without-state",
            "--store, --side, --partition, --limit, --to and --force need --state",
            hint="add --state OP",
        )
    report = inspect_checkpoint(target, home=home, batch=batch, state=operators, source_files=sources, limits=limits)
    if shown_as is Format.JSON:
        print_json(inspect_document(report))
    else:
        write_page(page(report, batch, all_settings=conf, all_files=sources))
    return READ_WITH_DAMAGE if report.damage else 0


def inspect_document(report: CheckpointReport) -> Document:
    """The report as a document: ids are numbers, offsets are JSON if possible."""
    coming, sources = report.next_batch, []
    for line in report.sources:
        log = None if line.log is None else copied(line.log, "first", "last", "files")
        if log is not None and line.log is not None and line.log.entries:
            log["entries"] = [copied(file, "path", "timestamp_ms", "log_offset") for file in line.log.entries]
        sources.append(copied(line, "index", "name", "kind") | {"log": log, "initial": offset_value(line.initial)})
    return {
        "schema": SCHEMA,
        **copied(report, "location", "query_id"),
        "spark_version": {"at_least": report.spark_at_least, "evidence": report.spark_evidence},
        "log_versions": {"offsets": report.offsets_version, "commits": report.commits_version},
        "marks": marks_document(report.marks),
        "next_batch": None
        if coming is None
        else coming._asdict()
        | {
            "start": _positions(coming.start, "offset"),
            "end": None if coming.end is None else _positions(coming.end, "offset"),
        },
        "batches": [
            copied(line, "id", "planned", "committed", "timestamp_ms", "watermark_ms", "next_watermark_ms")
            | {"sources": _positions(line.sources, "end")}
            for line in report.batches
        ],
        "sources": sources,
        "operators": [
            line._asdict()
            | {
                "stores": [
                    copied(store, "name", "provider")
                    | {
                        "families": list(store.families),
                        "versions": copied(store, "first", "last") | {"missing": list(store.missing)},
                    }
                    | copied(store, "rows", "bytes")
                    for store in line.stores
                ],
                "properties": dict(line.properties),
            }
            for line in report.operators
        ],
        "settings": dict(report.settings),
        "files": {"count": report.file_count, "bytes": report.file_bytes},
        "leftovers": list(report.leftovers),
        "damage": [item._asdict() for item in report.damage],
    }


def _positions(ends: Sequence[SourceOffset], field: str) -> list[Document]:
    return [{"name": one.source, "index": one.position, field: offset_value(one.text)} for one in ends]


@dataclass(frozen=True, slots=True)
class StateRequest:
    operator: int
    store: str | None = None
    side: str | None = None
    partition: int | None = None
    batch: int | None = None
    limits: ReadLimits = field(default_factory=ReadLimits)


def open_target(target: str, home: str | None = None, limits: ReadLimits | None = None) -> OpenedCheckpoint:
    """The checkpoint, listed. Raises ``NotFound`` with the content of the location."""
    store = open_read_store(location_of(target, home))
    require_recorded(store, home)
    return open_checkpoint(store, limits)


def inspect_checkpoint(
    target: str,
    *,
    home: str | None = None,
    batch: int | None = None,
    state: bool = False,
    source_files: bool = False,
    limits: ReadLimits | None = None,
) -> CheckpointReport:
    with collector_off():
        opened = open_target(target, home, limits)
        report = read_checkpoint(opened, batch=batch, state=state, source_files=source_files)
    ids = [line.id for line in report.batches]
    if batch is not None and batch not in ids:
        raise NotFound(
            "no-such-batch",
            "This batch is not kept in the checkpoint",
            where=report.location,
            expected=f"a batch from {min(ids)} to {max(ids)}" if ids else "no batch, as none is kept",
            found=f"batch {batch}",
            hint=command("inspect", target),
        )
    return report


def inspect_file(target: str, path: str, *, home: str | None = None, limits: ReadLimits | None = None) -> str:
    """A file as text; binary files are decoded. Raises ``NotFound`` or ``FormatError``."""
    store = limited(open_read_store(location_of(target, home)), limits)
    try:
        data = store.read(path.strip("/"))
    except FileTooLarge as error:
        raise FormatError(
            "too-large", "The file is too large to be shown", where=path,
            expected=f"at most {size_text(error.limit)}",
            found="more" if error.size is None else size_text(error.size),
            hint="raise the limit with --max-bytes",
        ) from error  # fmt: skip
    except PermissionError:
        # The file may exist: the error is shown as it is.
        raise
    except OSError as error:
        if not store.exists(""):
            require_recorded(store, home)
        raise NotFound(
            "no-such-file",
            "There is no such file in the checkpoint",
            where=store.location,
            expected="the path of a regular file below the checkpoint, such as offsets/0",
            found=path,
            hint=f"{command('inspect', target)} shows what the checkpoint has",
        ) from error
    try:
        return file_text(path, data, store.limits)
    except FormatError as error:
        error.where = error.where or path
        raise


def page(
    report: CheckpointReport, batch: int | None = None, *, all_settings: bool = False, all_files: bool = False
) -> str:
    """In the order of need. Quick, so only the standard library."""
    release = f"{report.spark_at_least} or later" if report.spark_at_least else "unknown"
    versions = (("offsets", report.offsets_version), ("commits", report.commits_version))
    logs = ", ".join(f"{name} v{number}" for name, number in versions if number is not None)
    size = f" ({size_text(report.file_bytes)})" if report.file_bytes is not None else ""
    head = [
        ("checkpoint", report.location),
        ("query id", report.query_id or "unreadable"),
        ("Spark", f"{release}  ({report.spark_evidence})"),
        ("logs", logs or "empty"),
        ("files", f"{report.file_count:,}{size}"),
    ]
    marks = report.marks
    meanings = [
        ("planned", marks.planned, "newest batch whose range is fixed (offsets/)"),
        ("committed", marks.committed, "newest batch that Spark has finished (commits/)"),
        ("state", marks.state, "newest batch whose state can be loaded (state/)"),
    ]
    rows = [(name, "none" if mark is not None and mark < 0 else str(mark), text) for name, mark, text in meanings]
    if marks.state is None:
        rows[2] = ("state", "-", "the stream keeps no state")
    settings = {name.removeprefix(_PREFIX): value for name, value in sorted(report.settings.items())}
    shown = settings if all_settings else {name: settings[name] for name in _IMPORTANT if name in settings}
    rest = len(settings) - len(shown)
    pinned = f"Pinned settings ({_PREFIX}...{f', {rest} more with --conf' if rest else ''})"
    paths = report.leftovers
    left = [(path,) for path in paths[:_SHOWN_LEFTOVERS]]
    if len(paths) > _SHOWN_LEFTOVERS:
        left.append((f"... and {len(paths) - _SHOWN_LEFTOVERS} more",))
    blocks = [
        _table(head),
        _section("Marks", rows) + "\n\n" + _indent(number_line(report)),
        _next(report.next_batch),
        _batches(report.batches, batch),
        _sources(report, all_files=all_files),
        _operators(report.operators),
        f"{pinned}\n{_indent(_table(shown.items()))}" if settings else "",
        _section(f"Left over, ignored by Spark ({len(paths)})", left),
        _damage(report.damage),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


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
    starts = {one.source: one.text for one in batch.start}
    ends = {one.source: one.text for one in batch.end or ()}
    rows = [("watermark", time_text(batch.watermark_ms))]
    for name in {**starts, **ends}:
        reach = f"after {_offset(starts.get(name))}"
        rows.append((f"source {name}", reach + (f" up to {_offset(ends.get(name))}" if batch.end else "")))
    return _section(f"Next batch: {batch.id} ({meaning})", rows)


def _offset(text: str | None) -> str:
    return "the beginning" if text is None else text


def _batches(batches: Sequence[BatchLine], wanted: int | None) -> str:
    if not batches:
        return ""
    if wanted is None:
        rows: list[tuple[str, ...]] = [("batch", "planned at", "watermark", "committed")]
        for line in reversed(batches[-_SHOWN_BATCHES:]):
            planned = time_text(line.timestamp_ms) if line.planned else "no plan"
            rows.append((str(line.id), planned, time_text(line.watermark_ms), "yes" if line.committed else "no"))
        return _section(f"Newest batches ({len(batches)} kept, from {batches[0].id} to {batches[-1].id})", rows)
    line = next(line for line in batches if line.id == wanted)
    rows = [
        ("planned", time_text(line.timestamp_ms) if line.planned else "no"),
        ("committed", "yes" if line.committed else "no"),
        ("watermark", time_text(line.watermark_ms)),
        ("watermark after", time_text(line.next_watermark_ms)),
        *((f"source {end.source}", f"up to {_offset(end.text)}") for end in line.sources),
    ]
    return _section(f"Batch {wanted}", rows)


def _sources(report: CheckpointReport, *, all_files: bool) -> str:
    positions = {end.source: end.text for end in report.batches[-1].sources} if report.batches else {}
    rows, files = [], []
    for line in report.sources:
        log = f"started at {line.initial}" if line.initial else ""
        if line.log is not None:
            log = f"own log {line.log.first} to {line.log.last}, {line.log.files} files"
            files += [
                f"\n    {line.name}:{file.log_offset}  {time_text(file.timestamp_ms)}  {file.path}"
                for file in line.log.entries
            ]
        rows.append((line.name, line.kind, f"at {_offset(positions.get(line.name))}", log))
    return _section("Sources", rows) + "".join(files if all_files else ())


def _operators(operators: Sequence[OperatorLine]) -> str:
    lines = ["Stateful operators (0 is nearest the sink)"] if operators else []
    for operator in operators:
        inferred = ", inferred from its stores" if operator.inferred else ""
        partitions = f"{operator.partitions} partition{'s' * (operator.partitions != 1)}"
        lines.append(f"  {operator.id}  {operator.name}  {partitions}{inferred}")
        rows = []
        for store in operator.stores:
            kept = "no version can be loaded" if store.last is None else f"versions {store.first} to {store.last}"
            if store.missing:
                more = " ..." if len(store.missing) > _SHOWN_BATCHES else ""
                kept += f" without {', '.join(map(str, store.missing[:_SHOWN_BATCHES]))}{more}"
            families = ", ".join(name for name in store.families if not name.startswith("$"))
            size = size_text(store.bytes) if store.bytes is not None else ""
            count = f"{store.rows:,} rows" if store.rows is not None else ""
            holds = f"holds {families}" if families else ""
            rows.append((store.name, store.provider or "empty", kept, count, size, holds))
        lines.append(_indent(_table(rows), 5))
    return "\n".join(line for line in lines if line.strip())


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


def time_text(milliseconds: int | None) -> str:
    if milliseconds is None:
        return "-"
    return utc_text(milliseconds) if milliseconds else "none yet"


def _section(heading: str, rows: Sequence[tuple[str, ...]]) -> str:
    return f"{heading}\n{_indent(_table(rows))}" if rows else ""


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    listed = list(rows)
    widths = [max(map(len, column)) for column in zip_longest(*listed, fillvalue="")]
    padded = ([cell.ljust(width) for cell, width in zip(row, widths, strict=False) if width] for row in listed)
    return "\n".join("  ".join(cells).rstrip() for cells in padded)


def _indent(text: str, by: int = 2) -> str:
    return "\n".join(" " * by + line for line in text.split("\n"))
