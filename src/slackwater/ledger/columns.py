"""Column types that check what they read: SQLite stores any value in any column, and a file can be damaged or edited.

Each raises ``DataError`` (``ledger-unreadable``) for a value of another type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import JSON, BigInteger, Dialect, Integer, LargeBinary, String, Text
from sqlalchemy.types import TypeDecorator

from slackwater.errors import DataError

_SHOWN = 80


def unreadable(expected: str, found: object) -> DataError:
    """The error for a value that Slackwater did not write; whoever opened the ledger adds the place."""
    shown = repr(found)
    return DataError(
        "ledger-unreadable",
        "The ledger is not as Slackwater wrote it",
        expected=expected,
        found=shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}...",
        hint="restore the ledger from a backup",
    )


class _Checked(TypeDecorator[Any]):
    """A column whose values, as the driver gives them, are of one Python type."""

    kind: type = object
    expected = ""

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        """What SQLAlchemy calls on each value read."""
        process = super().result_processor(dialect, coltype)

        def read(value: Any) -> Any:
            if value is None:
                return None
            if not isinstance(value, self.kind):
                raise unreadable(self.expected, value)
            return process(value) if process else value

        return read


class CheckedInteger(_Checked):
    """An integer."""

    impl = Integer
    cache_ok = True
    kind = int
    expected = "an integer"


class CheckedBigInteger(_Checked):
    """A 64-bit integer."""

    impl = BigInteger
    cache_ok = True
    kind = int
    expected = "an integer"


class Name(_Checked):
    """A string."""

    impl = String
    cache_ok = True
    kind = str
    expected = "a string"


class LongText(_Checked):
    """A string of any length."""

    impl = Text
    cache_ok = True
    kind = str
    expected = "a string"


class Bytes(_Checked):
    """Bytes."""

    impl = LargeBinary
    cache_ok = True
    kind = bytes
    expected = "bytes"


class _Json(TypeDecorator[Any]):
    """A JSON value of one kind."""

    kind: type = object
    expected = ""

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        """What SQLAlchemy calls on each value read."""
        process = super().result_processor(dialect, coltype)

        def read(value: Any) -> Any:
            if value is None:
                return None
            try:
                found = process(value) if process else value
            except (ValueError, TypeError, RecursionError) as error:
                raise unreadable(self.expected, value) from error
            if not isinstance(found, self.kind):
                raise unreadable(self.expected, value)
            return found

        return read


class JsonObject(_Json):
    """A JSON object."""

    impl = JSON
    cache_ok = True
    kind = dict
    expected = "a JSON object"


class JsonList(_Json):
    """A JSON list."""

    impl = JSON
    cache_ok = True
    kind = list
    expected = "a JSON list"
