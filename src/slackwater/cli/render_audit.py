"""The page of ``slackwater audit``, and what is shown before its targets are confirmed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Group
from rich.table import Table
from rich.text import Text

from slackwater.app.audit import Audit, DrillResult, StreamAudit
from slackwater.cli.render_words import counted


def targets(sinks: Mapping[str, Mapping[str, str]]) -> str:
    """What the audit will write to."""
    lines = ["The audit writes generated rows to the targets of these sinks, in two runs:"]
    lines += [f"  {name}: {_identity(identity)}" for name, identity in sinks.items()]
    lines.append("Relative paths are below a temporary folder. A target that holds rows is refused.")
    return "\n".join(lines)


def audit_page(audit: Audit) -> Group:
    """A block for each stream."""
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
    heading.append(f"  {_identity(stream.sink)}", style="not bold dim")
    verdict = ("passed", "green") if stream.passed else ("not passed", "red")
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
        return Text("not reached: the function ran no Spark task that reads the rows", style="yellow")
    return Text("as uninterrupted", style="green")


def _identity(sink: Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in sorted(sink.items()))
