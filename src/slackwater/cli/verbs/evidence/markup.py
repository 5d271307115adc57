"""HTML by hand: all but markup is escaped, so that no value can add an element."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from slackwater.core.escaping import one_line

LONGEST = 1500
"""Characters of a value on a page; the document has all."""


_BACKTICKS = re.compile(r"`([^`]+)`")


class Html(str):
    """Markup; any other string is text."""

    __slots__ = ()


def text(value: object) -> Html:
    """A value as text without control characters; markup stays."""
    return value if isinstance(value, Html) else Html(html.escape(one_line(str(value))))


def prose(value: str | None) -> Html:
    return Html(_BACKTICKS.sub(r"<code>\1</code>", text(value))) if value else Html("")


def join(parts: Iterable[object]) -> Html:
    return Html("".join(text(part) for part in parts))


def element(name: str, *content: object, **attributes: object) -> Html:
    """``class_`` is the attribute ``class``, ``aria_label`` is ``aria-label``."""
    pairs = (f' {key.rstrip("_").replace("_", "-")}="{text(value)}"' for key, value in attributes.items())
    return Html(f"<{name}{''.join(pairs)}>{join(content)}</{name}>")


def section(name: str, title: str, *content: object) -> Html:
    """A section; left out without content."""
    if not any(content):
        return Html("")
    return element("section", element("h2", title, id=name), *content, aria_labelledby=name)


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Iterable[int] = ()) -> Html:
    """A table that scrolls in its own box. ``numbers`` are columns of numbers."""
    right = frozenset(numbers)
    body = [_row(row, right) for row in rows]
    if not body:
        return Html("")
    heads = (element("th", name, scope="col", class_="number" if at in right else "") for at, name in enumerate(head))
    whole = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *heads)),
        element("tbody", *body),
    )
    return element("div", whole, class_="scroll", role="region", tabindex=0, aria_label=caption)


def _row(row: Sequence[object], right: frozenset[int]) -> Html:
    first, *others = row
    cells = (element("td", cell, class_="number" if at in right else "") for at, cell in enumerate(others, start=1))
    return element("tr", element("th", first, scope="row"), *cells)


def pairs(rows: Iterable[tuple[str, object]]) -> Html:
    """Names with values that are neither ``None`` nor empty."""
    shown = [(name, value) for name, value in rows if value not in (None, "")]
    if not shown:
        return Html("")
    return element("dl", *(element("div", element("dt", name), element("dd", value)) for name, value in shown))


def code(value: object) -> Html:
    return element("code", value)


def json_code(value: Any) -> Html:
    if value is None:
        return text("-")
    shown = value if isinstance(value, str) else json.dumps(value, separators=(", ", ": "))
    return code(shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}... (whole in evidence.json)")
