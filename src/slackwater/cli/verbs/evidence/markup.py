"""HTML by hand: everything that is not markup already is escaped, so that no value can add an element."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from slackwater.core.escaping import one_line

LONGEST = 1500
"""Characters of a value that a page shows; the document has all of it."""


_BACKTICKS = re.compile(r"`([^`]+)`")


class Html(str):
    """Markup. Any other string is text."""

    __slots__ = ()


def text(value: object) -> Html:
    """A value as text of a page, without control characters; markup stays as it is."""
    return value if isinstance(value, Html) else Html(html.escape(one_line(str(value))))


def prose(value: str | None) -> Html:
    """Sentences with names and commands between backticks, as in docstrings."""
    return Html(_BACKTICKS.sub(r"<code>\1</code>", text(value))) if value else Html("")


def join(parts: Iterable[object]) -> Html:
    """Several values one after another."""
    return Html("".join(text(part) for part in parts))


def element(name: str, *content: object, **attributes: object) -> Html:
    """An element. ``class_`` is the attribute ``class``, ``aria_label`` is ``aria-label``."""
    pairs = (f' {key.rstrip("_").replace("_", "-")}="{text(value)}"' for key, value in attributes.items())
    return Html(f"<{name}{''.join(pairs)}>{join(content)}</{name}>")


def section(name: str, title: str, *content: object) -> Html:
    """A part of the page; one without content is left out."""
    if not any(content):
        return Html("")
    return element("section", element("h2", title, id=name), *content, aria_labelledby=name)


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Iterable[int] = ()) -> Html:
    """A table that scrolls inside of its own box where the page is narrow. ``numbers`` are columns of numbers."""
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
    """Names with their values; a value that is ``None`` or empty is left out."""
    shown = [(name, value) for name, value in rows if value not in (None, "")]
    if not shown:
        return Html("")
    return element("dl", *(element("div", element("dt", name), element("dd", value)) for name, value in shown))


def code(value: object) -> Html:
    """A name, a path or an offset."""
    return element("code", value)


def json_code(value: Any) -> Html:
    """A value as compact JSON."""
    if value is None:
        return text("-")
    shown = value if isinstance(value, str) else json.dumps(value, separators=(", ", ": "))
    return code(shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}... (whole in evidence.json)")
