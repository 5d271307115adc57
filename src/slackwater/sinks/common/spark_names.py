"""Names in Spark's SQL."""

from __future__ import annotations


def backquoted(name: str) -> str:
    """A name as an expression of Spark has it, whatever characters are in it."""
    return "`" + name.replace("`", "``") + "`"
