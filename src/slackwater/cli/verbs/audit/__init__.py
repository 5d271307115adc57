"""``slackwater audit``: crash drills on the sinks of a pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from slackwater.audit.steps import Drill
from slackwater.cli.common.arguments import Format
from slackwater.cli.common.console import (
    Steps,
    confirm,
    err,
    interrupt_on_signals,
    out,
    parse_conf,
    prepare,
    print_json,
    say,
)
from slackwater.cli.verbs.audit.drills import (
    DRILLS,
    Audit,
    AuditOptions,
    DrillResult,
    StreamAudit,
    run_drills,
    selected,
)
from slackwater.core.commands import command
from slackwater.core.errors import UsageError
from slackwater.core.sink import sink_text
from slackwater.core.units import counted

SCHEMA = "slackwater.audit/1"


_NOT_REACHED: Mapping[Drill, str] = {
    "before": "the function was not called",
    "line": "the function ran fewer lines than in the uninterrupted batch",
    "job": "the function ran no Spark task that reads the rows",
    "task": "the function ran no Spark task that reads the rows",
    "twice": "the function was not called",
    "after": "the function was not called",
}
NOT_EQUAL = 8
NOT_CHECKED = 5
INTERRUPTED = 130


def audit_document(audit: Audit) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "passed": audit.passed,
        "folder": audit.folder,
        "without_reader": list(audit.unread),
        "streams": [_fields(stream) for stream in audit.streams],
    }


def _fields(stream: StreamAudit) -> dict[str, Any]:
    return {
        "stream": stream.stream,
        "sink": dict(stream.sink),
        "guarantee": stream.guarantee,
        "passed": stream.passed,
        "rows": stream.rows,
        "drills": [{"passed": drill.passed, **asdict(drill)} for drill in stream.drills],
    }


def targets(sinks: Mapping[str, Mapping[str, str]]) -> str:
    lines = ["The audit writes generated rows to the targets of these sinks, in two runs:"]
    lines += [f"  {name}: {sink_text(identity)}" for name, identity in sinks.items()]
    lines.append("Relative paths are below a temporary folder. A target that holds rows is refused.")
    return "\n".join(lines)


def audit_page(audit: Audit) -> Group:
    parts: list[Text | Table] = []
    for stream in audit.streams:
        parts += [Text()] if parts else []
        parts += _block(stream)
    if audit.unread:
        parts += [Text(), Text(f"without an audit reader: {', '.join(audit.unread)}", style="dim")]
    if audit.folder is not None:
        parts += [Text(), Text(f"logs and targets of relative paths are in {audit.folder}", style="dim")]
    return Group(*parts)


def _block(stream: StreamAudit) -> Iterable[Text | Table]:
    heading = Text(stream.stream, style="bold")
    heading.append(f"  {sink_text(stream.sink)}", style="not bold dim")
    verdict = ("passed", "green") if stream.passed else ("not checked", "yellow")
    verdict = ("not passed", "red") if stream.differs else verdict
    heading.append(f"  {verdict[0]}", style=f"not bold {verdict[1]}")
    table = Table(box=None, pad_edge=False, show_header=False)
    for number, drill in enumerate(stream.drills):
        table.add_row(f"  batch {number}", drill.text, _outcome(drill))
    counts = f"  {counted(stream.rows, 'row')} in the target of the uninterrupted run; the sink says {stream.guarantee}"
    return heading, table, Text(counts)


def _outcome(drill: DrillResult) -> Text:
    if drill.failed is not None:
        return Text(f"failed: {drill.failed}", style="red")
    found = [
        f"{counted(count, 'row')} {what}"
        for count, what in ((drill.doubled, "doubled"), (drill.vanished, "vanished"), (drill.other, "of no batch"))
        if count
    ]
    if found:
        return Text(", ".join(found), style="red")
    if not drill.reached:
        return Text(f"not reached: {_NOT_REACHED[drill.drill]}", style="yellow")
    return Text("as uninterrupted", style="green")


def audit(
    *,
    pipeline: str,
    streams: list[str] | None,
    drills: list[str] | None,
    variables: list[str] | None,
    folder: Path | None,
    conf: list[str] | None,
    yes: bool,
    debug: bool,
    shown_as: Format,
) -> int:
    settings = prepare(None, shown_as, logging=True, debug=debug)
    options = AuditOptions(
        streams=tuple(streams or ()),
        variables=_pairs(variables),
        drills=tuple(drill for drill in DRILLS if drill in _known(drills or [], DRILLS)),
        folder=folder,
        spark=parse_conf(conf),
    )
    loaded, names = selected(pipeline, options)
    if not yes:
        sinks = {name: loaded.pipeline.streams[name].sink.identity() for name in names}
        err().print(targets(sinks), soft_wrap=True)
        confirm(loaded.pipeline.name, "write generated rows there", "pipeline")
    steps = Steps(err())
    interrupt_on_signals()
    try:
        result = run_drills(pipeline, options, settings, steps)
    except KeyboardInterrupt:
        steps.interrupted()
        err().print("The targets hold the rows that were written so far.")
        return INTERRUPTED
    finally:
        steps.close()
    if shown_as is Format.JSON:
        print_json(audit_document(result))
    else:
        out().print(audit_page(result), soft_wrap=True)
    if result.differs:
        say(f"next: correct the function, then: {command('audit', pipeline)}")
        return NOT_EQUAL
    if not result.passed:
        err().print("A drill did not take place: what the function does then is not known.")
        return NOT_CHECKED
    return 0


def _known(drills: list[str], choices: tuple[str, ...]) -> list[str]:
    for drill in drills:
        if drill not in choices:
            raise UsageError(
                "usage", f"Unknown drill {drill!r} (choose from {', '.join(choices)})", hint=command("audit", "--help")
            )
    return drills


def _pairs(given: list[str] | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in given or []:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            # The value can be an address with a password: it is not shown.
            raise UsageError(
                "set-format", "A --set must be NAME=VALUE", found=name[:40], hint=command("audit", "--help")
            )
        found[name.strip()] = value
    return found
