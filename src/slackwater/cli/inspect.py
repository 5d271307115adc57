"""``slackwater inspect``: parse, call one use case, render."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from slackwater.cli.arguments import Format, Parser, add_force, add_format, add_home, byte_size, natural, path, string
from slackwater.cli.console import prepare, print_json
from slackwater.errors import UsageError
from slackwater.model.read_options import ReadLimits, ReadOptions

if TYPE_CHECKING:
    from slackwater.app.inspect import StateRequest
    from slackwater.app.user_files import NewFile

READ_WITH_DAMAGE = 3
_DEFAULT_LIMIT = 20


def declare(parser: Parser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add("target", metavar="LOCATION|STREAM", type=string, help="a checkpoint's path or URI, or a stream's name")
    add("--batch", type=natural, metavar="N", help="show this batch, or the state after it")
    add("--operators", action="store_true", help="read and check all state and count its rows")
    add("--sources", action="store_true", help="list what each source's own log holds")
    add("--conf", action="store_true", help="show all pinned settings")
    add("--raw", metavar="FILE", type=string, help="show one file of the checkpoint as text")
    add("--state", type=natural, metavar="OP", help="show state rows of an operator")
    add("--store", metavar="S", type=string, help="with --state: the store or state variable")
    add("--side", metavar="left|right", type=string, help="with --state: a side of a join")
    add("--partition", type=natural, metavar="P", help="with --state: only this partition")
    add("--limit", type=natural, metavar="K", help=f"with --state: at most so many rows ({_DEFAULT_LIMIT})")
    add("--max-bytes", type=byte_size, metavar="SIZE", help="take at most so much of a file (default: by kind of file)")
    add("--to", metavar="FILE.parquet", type=path, help="with --state: write all rows to this file")
    add_force(parser)
    add_home(parser)
    add_format(parser)
    parser.epilog = "Exit codes: 0 read, 3 read with damage, 4 not a checkpoint."
    parser.set_defaults(verb=inspect)


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
    """Show a file, state rows, or the page of the whole checkpoint."""
    from slackwater.app.inspect import StateRequest, inspect_file  # noqa: PLC0415

    prepare(home, shown_as)
    limits = ReadLimits() if max_bytes is None else ReadLimits.all(max_bytes)
    if raw is not None:
        sys.stdout.write(inspect_file(target, raw, home=home, limits=limits).rstrip("\n") + "\n")
        return 0
    if state is not None:
        request = StateRequest(state, store=store, side=side, partition=partition, batch=batch, limits=limits)
        return _show_state(target, request, home=home, limit=limit, export=_export(to, force=force), shown_as=shown_as)
    if force or any(value is not None for value in (store, side, partition, limit, to)):
        raise UsageError(
            "without-state",
            "--store, --side, --partition, --limit, --to and --force need --state",
            hint="add --state OP",
        )
    options = ReadOptions(batch=batch, state=operators, source_files=sources, limits=limits)
    return _show_report(target, options, home=home, conf=conf, shown_as=shown_as)


def _export(to: Path | None, *, force: bool) -> NewFile | None:
    """Where to write the rows. Raises UsageError where that is not possible, before anything is read."""
    if to is None:
        return None
    from slackwater.app.user_files import NewFile  # noqa: PLC0415 - only this option needs it

    export = NewFile(to, force=force)
    export.check()
    return export


def _show_report(target: str, options: ReadOptions, *, home: str | None, conf: bool, shown_as: Format) -> int:
    from slackwater.app.inspect import inspect_checkpoint  # noqa: PLC0415

    report = inspect_checkpoint(target, home=home, options=options)
    if shown_as is Format.JSON:
        from slackwater.app.documents.inspect import inspect_document  # noqa: PLC0415

        print_json(inspect_document(report))
    else:
        from slackwater.cli.render_inspect import PageOptions, page  # noqa: PLC0415

        sys.stdout.write(page(report, PageOptions(options.batch, all_settings=conf, all_files=options.source_files)))
    return READ_WITH_DAMAGE if report.damage else 0


def _show_state(
    target: str, request: StateRequest, *, home: str | None, limit: int | None, export: NewFile | None, shown_as: Format
) -> int:
    from slackwater.app.documents.inspect import state_document  # noqa: PLC0415
    from slackwater.app.inspect import inspect_state  # noqa: PLC0415
    from slackwater.app.state_export import write_parquet  # noqa: PLC0415
    from slackwater.cli.render_inspect import state_page  # noqa: PLC0415

    result = inspect_state(target, request, home=home)
    written = write_parquet(result, export) if export is not None else None
    shown = 0 if export is not None and limit is None else _DEFAULT_LIMIT if limit is None else limit
    rows = state_document(result, shown)
    if written is not None:
        rows["written"] = written
    if shown_as is Format.JSON:
        print_json(rows)
    else:
        sys.stdout.write(state_page(rows))
    return READ_WITH_DAMAGE if result.rows.damage else 0
