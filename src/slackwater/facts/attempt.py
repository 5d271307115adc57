"""Turns what cannot be looked up into a fact of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from slackwater.core.errors import SlackwaterError
from slackwater.core.facts import Fact, Unknown

_T = TypeVar("_T")


def tried(look: Callable[[], Fact[_T]], reason: str) -> Fact[_T]:
    """What ``look`` returns, or ``Unknown`` with ``reason`` and its error."""
    try:
        return look()
    except SlackwaterError as error:
        return Unknown(f"{reason}: {error.message}", error.hint)
    except OSError as error:
        return Unknown(f"{reason}: {error}")
