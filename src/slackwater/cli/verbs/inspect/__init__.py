"""``slackwater inspect``: the content of a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slackwater.checkpoint.listing import limited
from slackwater.checkpoint.opened import OpenedCheckpoint, open_checkpoint
from slackwater.checkpoint.reader import collector_off, file_text, read_checkpoint
from slackwater.cli.common.arguments import (
    Format,
)
from slackwater.cli.common.console import marks_document, offset_value, prepare, print_json, write
from slackwater.cli.common.examine import require_recorded, resolve
from slackwater.cli.verbs.inspect.page import PageOptions, page
from slackwater.core.checkpoint import (
    BatchLine,
    CheckpointReport,
    NextBatch,
    OperatorLine,
    ReadLimits,
    ReadOptions,
    SourceLine,
    SourceOffset,
    StoreLine,
)
from slackwater.core.commands import command
from slackwater.core.errors import FormatError, NotFound, UsageError
from slackwater.core.units import size_text
from slackwater.storage.open import open_read_store
from slackwater.storage.protocols import FileTooLarge
from slackwater.storage.user_files import PRIVATE, NewFile

SCHEMA = "slackwater.inspect/1"
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

        request = StateRequest(state, store=store, side=side, partition=partition, batch=batch, limits=limits)
        return show_state(target, request, home=home, limit=limit, export=_export(to, force=force), shown_as=shown_as)
    if force or any(value is not None for value in (store, side, partition, limit, to)):
        raise UsageError(
            "without-state",
            "--store, --side, --partition, --limit, --to and --force need --state",
            hint="add --state OP",
        )
    options = ReadOptions(batch=batch, state=operators, source_files=sources, limits=limits)
    report = inspect_checkpoint(target, home=home, options=options)
    if shown_as is Format.JSON:
        print_json(inspect_document(report))
    else:
        write(page(report, PageOptions(options.batch, all_settings=conf, all_files=options.source_files)))
    return READ_WITH_DAMAGE if report.damage else 0


def _export(to: Path | None, *, force: bool) -> NewFile | None:
    """Raises UsageError before anything is read."""
    if to is None:
        return None
    export = NewFile(to, force=force, mode=PRIVATE)
    export.check()
    return export


def inspect_document(report: CheckpointReport) -> dict[str, Any]:
    """The report as a document: ids are numbers, offsets are JSON if possible."""
    return {
        "schema": SCHEMA,
        "location": report.location,
        "query_id": report.query_id,
        "spark_version": {"at_least": report.spark_at_least, "evidence": report.spark_evidence},
        "log_versions": {"offsets": report.offsets_version, "commits": report.commits_version},
        "marks": marks_document(report.marks),
        "next_batch": _next_batch(report.next_batch) if report.next_batch else None,
        "batches": [_batch(line) for line in report.batches],
        "sources": [_source(line) for line in report.sources],
        "operators": [_operator(line) for line in report.operators],
        "settings": dict(report.settings),
        "files": {"count": report.file_count, "bytes": report.file_bytes},
        "leftovers": list(report.leftovers),
        "damage": [item._asdict() for item in report.damage],
    }


def _next_batch(batch: NextBatch) -> dict[str, Any]:
    end = None if batch.end is None else [_position(end) for end in batch.end]
    return batch._asdict() | {"start": [_position(end) for end in batch.start], "end": end}


def _position(end: SourceOffset) -> dict[str, Any]:
    return {"name": end.source, "index": end.position, "offset": offset_value(end.text)}


def _end(end: SourceOffset) -> dict[str, Any]:
    return {"name": end.source, "index": end.position, "end": offset_value(end.text)}


def _batch(line: BatchLine) -> dict[str, Any]:
    return {
        "id": line.id,
        "planned": line.planned,
        "committed": line.committed,
        "timestamp_ms": line.timestamp_ms,
        "watermark_ms": line.watermark_ms,
        "next_watermark_ms": line.next_watermark_ms,
        "sources": [_end(end) for end in line.sources],
    }


def _source(line: SourceLine) -> dict[str, Any]:
    log = line.log
    shown = None if log is None else {"first": log.first, "last": log.last, "files": log.files}
    if shown is not None and log is not None and log.entries:
        shown["entries"] = [  # type: ignore[assignment]  # only with --sources
            {"path": file.path, "timestamp_ms": file.timestamp_ms, "log_offset": file.log_offset}
            for file in log.entries
        ]
    return {
        "index": line.index,
        "name": line.name,
        "kind": line.kind,
        "log": shown,
        "initial": offset_value(line.initial),
    }


def _operator(line: OperatorLine) -> dict[str, Any]:
    return line._asdict() | {"stores": [_store(store) for store in line.stores], "properties": dict(line.properties)}


def _store(line: StoreLine) -> dict[str, Any]:
    return {
        "name": line.name,
        "provider": line.provider,
        "families": list(line.families),
        "versions": {"first": line.first, "last": line.last, "missing": list(line.missing)},
        "rows": line.rows,
        "bytes": line.bytes,
    }


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
    store = open_read_store(resolve(target, home))
    require_recorded(store, home)
    return open_checkpoint(store, limits)


def inspect_checkpoint(target: str, *, home: str | None = None, options: ReadOptions | None = None) -> CheckpointReport:
    with collector_off():
        report = read_checkpoint(open_target(target, home, options.limits if options else None), options)
    batch = options.batch if options else None
    if batch is not None and all(line.id != batch for line in report.batches):
        raise NotFound(
            "no-such-batch",
            "This batch is not kept in the checkpoint",
            where=report.location,
            expected=_kept(report),
            found=f"batch {batch}",
            hint=command("inspect", target),
        )
    return report


def _kept(report: CheckpointReport) -> str:
    ids = [line.id for line in report.batches]
    return f"a batch from {min(ids)} to {max(ids)}" if ids else "no batch, as none is kept"


def inspect_file(target: str, path: str, *, home: str | None = None, limits: ReadLimits | None = None) -> str:
    """A file as text; binary files are decoded. Raises ``NotFound`` or ``FormatError``."""
    store = limited(open_read_store(resolve(target, home)), limits)
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
