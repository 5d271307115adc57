"""The ledgers that these tests work with."""

from __future__ import annotations

from tests.support.ledgers import (
    blank_url,
    clock,
    empty_postgres,
    empty_sqlite,
    ledger,
    ledger_url,
    new_stream,
    postgres,
    sqlite_url,
)

__all__ = [
    "blank_url",
    "clock",
    "empty_postgres",
    "empty_sqlite",
    "ledger",
    "ledger_url",
    "new_stream",
    "postgres",
    "sqlite_url",
]
