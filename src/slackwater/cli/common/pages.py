"""Pages of the verbs: blocks of labelled lines, and tables. Brings rich."""

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from slackwater.cli.common.arguments import Format
from slackwater.cli.common.console import mark, out, print_json, timestamp
from slackwater.core.errors import SlackwaterError
from slackwater.core.facts import Finding

Item = TypeVar("Item")
LABEL_WIDTH = 11


def show(shown_as: Format, document: Mapping[str, object], page: Callable[[], RenderableType]) -> None:
    """The result of a verb on stdout, as JSON or as a page."""
    if shown_as is Format.JSON:
        print_json(document)
    else:
        out().print(page())


def show_each(shown_as: Format, every_s: float, looks: Iterable[tuple[Mapping[str, object], RenderableType]]) -> int:
    """Shows documents or pages at an interval until Ctrl-C, and returns 0. A terminal is cleared before each page; a
    file or pipe gets all pages, or a JSON line each.
    """
    try:
        for document, page in looks:
            if shown_as is Format.JSON:
                print_json(document, in_one_line=True)
            else:
                console, now = out(), timestamp(time.time_ns() // 1_000_000)
                console.clear()
                console.print(Text(f"{now}, every {every_s:g} s; Ctrl-C ends it", style="dim"), Text())
                console.print(page)
            sys.stdout.flush()
            time.sleep(every_s)
    except KeyboardInterrupt:
        pass
    return 0


def marks_text(marks: Mapping[str, int | None]) -> str:
    """``planned 7, committed 6, ...``, from a document."""
    return ", ".join(f"{name} {mark(value)}" for name, value in marks.items())


def compared(problem: Finding | SlackwaterError) -> str:
    pairs = (("at", problem.where), ("expected", problem.expected), ("found", problem.found))
    return ", ".join(f"{name} {value}" for name, value in pairs if value)


def heading(name: str, text: str, style: str = "") -> Text:
    return Text(name, style="bold").append(f"  {text}", style=f"not bold {style}")


def labelled(label: str, text: str, width: int = LABEL_WIDTH) -> Text:
    return Text(f"  {label:<{width}}{text}")


def labelled_rows(*rows: tuple[str, str | None]) -> list[Text]:
    """A line for each row that has a text."""
    return [labelled(label, text) for label, text in rows if text]


def blocks(items: Iterable[Item], block: Callable[[Item], Iterable[RenderableType]]) -> Group:
    """A block for each item, with an empty line between two."""
    parts: list[RenderableType] = []
    for item in items:
        parts += [Text()] if parts else []
        parts += block(item)
    return Group(*parts)


def table_of(columns: Sequence[str], rows: Iterable[Sequence[RenderableType]]) -> Table:
    """An indented table; without ``columns`` it has no header."""
    table = Table(box=None, pad_edge=False, header_style="dim", show_header=bool(columns))
    for index, column in enumerate(columns):
        table.add_column(f"  {column}" if index == 0 else column)
    for first, *others in rows:
        table.add_row(f"  {first}", *others)
    return table
