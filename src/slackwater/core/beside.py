"""Names of what an operation keeps beside a directory: hidden, so that no reader of the parent folder finds it."""

from __future__ import annotations


def beside(name: str, operation: str) -> str:
    """The name of the operation's own folder beside the directory ``name``."""
    return f".{name}.slackwater-{operation}"


def held(name: str, operation: str) -> str:
    """Where the directory is for a moment, while the two change places by renames."""
    return f"{beside(name, operation)}.held"
