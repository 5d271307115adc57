"""Turns a failed look-up into a fact."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import TypeVar

from slackwater.core.errors import SlackwaterError
from slackwater.core.facts import Fact, Unknown

_T = TypeVar("_T")
ANSWER_S_MAX = 2.0
"""How long a start, ``status`` and ``doctor`` wait for a source."""


def tried(look: Callable[[], Fact[_T]], reason: str) -> Fact[_T]:
    """The result of ``look``, or ``Unknown`` with ``reason`` and its error."""
    try:
        return look()
    except SlackwaterError as error:
        return Unknown(f"{reason}: {error.message}", error.hint)
    except OSError as error:
        return Unknown(f"{reason}: {error}")


def tried_in_time(look: Callable[[], Fact[_T]], reason: str) -> Fact[_T]:
    """``tried`` for at most ``ANSWER_S_MAX``. The thread of a store that does not answer is left behind."""
    found: list[Fact[_T]] = []
    failed: list[Exception] = []

    def answer() -> None:
        try:
            found.append(tried(look, reason))
        except Exception as error:  # noqa: BLE001 - raised again by the caller
            failed.append(error)

    # Without concurrent.futures: importing it takes a fiftieth of the time of ``status``.
    asking = Thread(target=answer, daemon=True)
    asking.start()
    asking.join(ANSWER_S_MAX)
    if failed:
        raise failed[0]
    return found[0] if found else Unknown(f"{reason}: no answer within {ANSWER_S_MAX:g} s")
