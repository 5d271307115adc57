"""``slackwater inspect``: parse, call one use case, render."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from slackwater.cli.console import Format, FormatOption, HomeOption, prepare, print_json
from slackwater.errors import UsageError
from slackwater.model.read_options import ReadOptions

if TYPE_CHECKING:
    from slackwater.app.inspect import StateRequest

READ_WITH_DAMAGE = 3
_DEFAULT_LIMIT = 20

Target = Annotated[
    str, typer.Argument(metavar="LOCATION|STREAM", help="A checkpoint's path or URI, or a stream's name.")
]
BatchOption = Annotated[int | None, typer.Option("--batch", min=0, help="Show this batch, or the state it made.")]
OperatorsOption = Annotated[bool, typer.Option("--operators", help="Read and check all state and count its rows.")]
StateOption = Annotated[
    int | None, typer.Option("--state", min=0, metavar="OP", help="Show state rows of an operator.")
]
StoreOption = Annotated[str | None, typer.Option("--store", help="With --state: the store or state variable.")]
SideOption = Annotated[str | None, typer.Option("--side", metavar="left|right", help="With --state: a side of a join.")]
PartitionOption = Annotated[int | None, typer.Option("--partition", min=0, help="With --state: only this partition.")]
LimitOption = Annotated[int | None, typer.Option("--limit", min=0, help="With --state: at most so many rows (20).")]
ToOption = Annotated[
    str | None, typer.Option("--to", metavar="FILE.parquet", help="With --state: write all rows here.")
]
SourcesOption = Annotated[bool, typer.Option("--sources", help="List what each source's own log holds.")]
ConfOption = Annotated[bool, typer.Option("--conf", help="Show all pinned settings.")]
RawOption = Annotated[
    str | None, typer.Option("--raw", metavar="FILE", help="Show one file of the checkpoint as text.")
]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("inspect")(inspect)


def inspect(
    target: Target,
    *,
    batch: BatchOption = None,
    operators: OperatorsOption = False,
    state: StateOption = None,
    store: StoreOption = None,
    side: SideOption = None,
    partition: PartitionOption = None,
    limit: LimitOption = None,
    to: ToOption = None,
    sources: SourcesOption = False,
    conf: ConfOption = False,
    raw: RawOption = None,
    home: HomeOption = None,
    shown_as: FormatOption = Format.TEXT,
) -> None:
    """Show what is in a checkpoint, without a JVM and without writing anything.

    Exit codes: 0 read, 3 read with damage, 4 not a checkpoint.
    """
    from slackwater.app.inspect import StateRequest, inspect_file  # noqa: PLC0415

    prepare(home, shown_as)
    if raw is not None:
        sys.stdout.write(inspect_file(target, raw, home=home).rstrip("\n") + "\n")
        return
    if state is not None:
        request = StateRequest(state, store=store, side=side, partition=partition, batch=batch)
        _show_state(target, request, home=home, limit=limit, to=to, shown_as=shown_as)
        return
    if any(value is not None for value in (store, side, partition, limit, to)):
        raise UsageError(
            "without-state", "--store, --side, --partition, --limit and --to go with --state", hint="add --state OP"
        )
    options = ReadOptions(batch=batch, state=operators, source_files=sources)
    _show_report(target, options, home=home, conf=conf, shown_as=shown_as)


def _show_report(target: str, options: ReadOptions, *, home: str | None, conf: bool, shown_as: Format) -> None:
    from slackwater.app.inspect import inspect_checkpoint  # noqa: PLC0415

    report = inspect_checkpoint(target, home=home, options=options)
    if shown_as is Format.JSON:
        from slackwater.app.inspect_document import document  # noqa: PLC0415

        print_json(document(report))
    else:
        from slackwater.cli.render_inspect import PageOptions, page  # noqa: PLC0415

        sys.stdout.write(page(report, PageOptions(options.batch, all_settings=conf, all_files=options.source_files)))
    if report.damage:
        raise typer.Exit(READ_WITH_DAMAGE)


def _show_state(
    target: str, request: StateRequest, *, home: str | None, limit: int | None, to: str | None, shown_as: Format
) -> None:
    from slackwater.app.inspect import inspect_state  # noqa: PLC0415
    from slackwater.app.inspect_document import state_document  # noqa: PLC0415
    from slackwater.app.state_export import write_parquet  # noqa: PLC0415
    from slackwater.cli.render_inspect import state_page  # noqa: PLC0415

    result = inspect_state(target, request, home=home)
    written = write_parquet(result, to) if to is not None else None
    shown = 0 if to is not None and limit is None else _DEFAULT_LIMIT if limit is None else limit
    rows = state_document(result, shown)
    if written is not None:
        rows["written"] = written
    if shown_as is Format.JSON:
        print_json(rows)
    else:
        sys.stdout.write(state_page(rows))
    if result.rows.damage:
        raise typer.Exit(READ_WITH_DAMAGE)
