"""``slackwater plan``: shows what would be done; changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slackwater.cli.console import Format, FormatOption, HomeOption, err, out, parse_seconds, prepare
from slackwater.errors import UsageError

LAST_WRITTEN = "last-written"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    verbs = typer.Typer(no_args_is_help=True, help="Show what a remedy would do and cost; write it down as a plan.")
    verbs.command("rebuild", help="Go on from the last written batch, with state made anew.")(rebuild)
    app.add_typer(verbs, name="plan")


def rebuild(
    stream: Annotated[str, typer.Argument(metavar="STREAM", help="stream, or pipeline/stream.")],
    at: Annotated[
        str, typer.Option("--at", help="last-written, or batch:N for an older written batch.")
    ] = LAST_WRITTEN,
    file: Annotated[Path | None, typer.Option("--out", metavar="PLAN", help="Write the plan to this file.")] = None,
    pipeline: Annotated[str | None, typer.Option("--pipeline", help="The upgraded pipeline, if it moved.")] = None,
    retention: Annotated[
        str | None, typer.Option("--retention", metavar="2d", help="How far behind the watermark rows count, or 'all'.")
    ] = None,
    home: HomeOption = None,
    shown_as: FormatOption = Format.TEXT,
) -> None:
    """Nothing is changed. The plan is for slackwater apply."""
    from slackwater.app.plan_rebuild import RebuildOptions, plan_rebuild  # noqa: PLC0415 - light start
    from slackwater.app.workspace import open_workspace  # noqa: PLC0415
    from slackwater.cli.render_plan import plan_page  # noqa: PLC0415
    from slackwater.plan.document import render  # noqa: PLC0415

    settings = prepare(home, shown_as)
    options = RebuildOptions(parse_batch(at), _retention_ms(retention), _absolute(pipeline))
    with open_workspace(settings) as workspace:
        plan = plan_rebuild(workspace, stream, options, lambda text: err().print(text, markup=False))
    if file is not None:
        _write(file, render(plan))
    if shown_as is Format.JSON:
        typer.echo(render(plan), nl=False)
        return
    out().print(plan_page(plan))
    hint = f"slackwater apply {file}" if file is not None else f"slackwater plan rebuild {plan.stream} --out plan.json"
    err().print(f"next: {hint}", markup=False)


def parse_batch(text: str) -> int | None:
    """``batch:N`` as N, ``last-written`` as ``None``. Raises UsageError for another target."""
    if text == LAST_WRITTEN:
        return None
    number = text.removeprefix("batch:")
    if number != text and number.isascii() and number.isdigit():
        return int(number)
    raise UsageError(
        "target", "A rebuild cannot be planned for this target", expected="last-written or batch:N", found=text
    )


def _retention_ms(text: str | None) -> int | None:
    if text is None:
        return None
    # A thousand years: further back than any event time, so that all batches contribute.
    return 1000 * 366 * 86_400_000 if text == "all" else int(parse_seconds(text) * 1000)


def _absolute(reference: str | None) -> str | None:
    if reference is None or not Path(reference).is_file():
        return reference
    return str(Path(reference).absolute())


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError("out-unwritable", f"The plan cannot be written: {error}", where=str(file)) from error
