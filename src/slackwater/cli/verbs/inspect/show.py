from __future__ import annotations

from pathlib import Path

from slackwater.cli.common.arguments import (
    Format,
)
from slackwater.cli.common.console import prepare, print_json, write
from slackwater.cli.verbs.inspect.document import inspect_document
from slackwater.cli.verbs.inspect.page import PageOptions, page
from slackwater.cli.verbs.inspect.reading import READ_WITH_DAMAGE, StateRequest, inspect_checkpoint, inspect_file
from slackwater.core.checkpoint import ReadLimits, ReadOptions
from slackwater.core.errors import UsageError
from slackwater.storage.user_files import PRIVATE, NewFile


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
    return _show_report(target, options, home=home, conf=conf, shown_as=shown_as)


def _export(to: Path | None, *, force: bool) -> NewFile | None:
    """Raises UsageError before anything is read."""
    if to is None:
        return None
    export = NewFile(to, force=force, mode=PRIVATE)
    export.check()
    return export


def _show_report(target: str, options: ReadOptions, *, home: str | None, conf: bool, shown_as: Format) -> int:
    report = inspect_checkpoint(target, home=home, options=options)
    if shown_as is Format.JSON:
        print_json(inspect_document(report))
    else:
        write(page(report, PageOptions(options.batch, all_settings=conf, all_files=options.source_files)))
    return READ_WITH_DAMAGE if report.damage else 0
