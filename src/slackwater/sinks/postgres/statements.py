"""Runs statements that are written out, names and values quoted: what is staged and published has no parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlalchemy import Connection


def run(connection: Connection, statement: str) -> Sequence[Sequence[Any]]:
    """Run one statement; its rows, empty if it returns none."""
    # Without this option psycopg takes a % in a name for a parameter.
    result = connection.execution_options(no_parameters=True).exec_driver_sql(statement)
    return [tuple(row) for row in result] if result.returns_rows else []


def count(connection: Connection, statement: str) -> int:
    """Run a statement that changes rows; how many it changed."""
    return connection.execution_options(no_parameters=True).exec_driver_sql(statement).rowcount
