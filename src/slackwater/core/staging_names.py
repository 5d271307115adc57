"""Names of what an operation keeps next to a directory: hidden, so that no reader of the parent folder finds it."""

from __future__ import annotations


def staging_path(name: str, operation: str) -> str:
    """The name of the operation's own folder next to the directory ``name``."""
    return f".{name}.slackwater-{operation}"


def exchange_path(name: str, operation: str) -> str:
    """Where the directory is for a moment, while the two change places by renames."""
    return f"{staging_path(name, operation)}.held"
