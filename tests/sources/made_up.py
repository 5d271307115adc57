"""A kind of source that exists in the tests only: ``{"page":5}`` of a book of ten lines a page."""

import json

from slackwater.sources.common.contract import EmptyBase, Reach, SourceEntries, SourceRange
from slackwater.sources.common.source import Source
from tests.sources.examples import Example

_LINES_PER_PAGE = 10

EXAMPLE = Example(
    "book", '{"page":2}', '{"page":5}', '{"page":6}', {0: "v1\nA Book\tpage 1"}, rows=40, name="made up in the tests"
)


class Book(Source):
    """A position is the next page to read; the log holds the title and the first page."""

    kind = "book"

    def owns(self, offset: object, log: SourceEntries) -> bool:
        if offset is None:
            return "\tpage " in log.get(0, "")
        return isinstance(offset, dict) and offset.keys() == {"page"} and isinstance(offset["page"], int)

    def empty_base(self, start: str | None) -> EmptyBase | None:
        return (
            None if _page(start) is None else EmptyBase(str(start), {"0": f"v1\nA Book\tpage {_page(start)}".encode()})
        )

    def rows(self, span: SourceRange) -> int | None:
        start, end = _page(span.start or self.initial(span.log)), _page(span.end)
        return None if start is None or end is None else (end - start) * _LINES_PER_PAGE

    def unrecorded(self, span: SourceRange) -> tuple[str, ...]:
        return () if 0 in span.log else ("0",)

    def unavailable(self, span: SourceRange, reach: Reach) -> tuple[str, ...]:
        start, earliest = _page(span.start), _page(reach.earliest(span.source))
        lost = start is not None and earliest is not None and start < earliest
        return (f"pages {start} to {earliest}",) if lost else ()

    def initial(self, log: SourceEntries) -> str | None:
        _, mark, page = log.get(0, "").partition("\tpage ")
        return f'{{"page":{page}}}' if mark else None

    def describe(self, offset: str | None) -> str:
        return "closed" if _page(offset) is None else f"page {_page(offset)}"


def _page(offset: str | None) -> int | None:
    try:
        value = json.loads(offset or "null")
    except (ValueError, RecursionError):
        return None
    page = value.get("page") if isinstance(value, dict) else None
    return page if isinstance(page, int) else None
