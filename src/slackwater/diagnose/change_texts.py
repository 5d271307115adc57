"""The texts of all changes that a verdict can have."""

from __future__ import annotations

from functools import cache

from slackwater.core.registry import Registry
from slackwater.diagnose.changes.common.text import ChangeText

CHANGES: Registry[tuple[ChangeText, ...]] = Registry("slackwater.diagnose.changes", "GROUP", "slackwater.changes")


@cache
def change_texts() -> tuple[ChangeText, ...]:
    """All texts, by their codes."""
    return tuple(sorted((text for group in CHANGES.all() for text in group), key=lambda text: text.code))
