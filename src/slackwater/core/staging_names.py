"""Hidden names next to a directory, which readers of the parent folder do not find."""

from __future__ import annotations


def staging_path(name: str, operation: str) -> str:
    """The operation's own folder next to ``name``."""
    return f".{name}.slackwater-{operation}"


def exchange_path(name: str, operation: str) -> str:
    """The temporary place of a directory during an exchange by renames."""
    return f"{staging_path(name, operation)}.held"
