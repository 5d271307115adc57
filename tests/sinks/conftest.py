"""A PostgreSQL server for the sinks that write to one."""

from __future__ import annotations

from tests.support.ledgers import postgres

__all__ = ["postgres"]
