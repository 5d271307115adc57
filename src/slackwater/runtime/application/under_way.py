"""Starts of queries that are under way in this process: what a listener does not show of a query, its writer has.

One replacement of PySpark's methods serves all sessions that are watched, so that the order in which they are closed
does not matter. A start is never refused or changed here.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from slackwater.core.errors import SlackwaterError
from slackwater.core.reference import reference_of
from slackwater.runtime.application.queries import ApplicationCode, definition_of
from slackwater.runtime.application.writers import Start, intercepted
from slackwater.runtime.failures import SPARK_ERRORS
from slackwater.runtime.loader import is_application, locate
from slackwater.runtime.pipeline import StreamDefinition
from slackwater.storage.open import resolved

log = structlog.get_logger(__name__)
_UNKNOWN: tuple[type[Exception], ...] = (SlackwaterError, OSError, LookupError, ValueError, TypeError, *SPARK_ERRORS)


@dataclass(frozen=True, slots=True)
class Noticed:
    """A start with the stream that it is of."""

    start: Start
    definition: StreamDefinition


def own_reference() -> str | None:
    """What names the program of this process; ``None`` of one that Slackwater could not run, such as a notebook."""
    main = sys.modules.get("__main__")
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    code = spec.name.removesuffix(".__main__") if spec is not None else file and str(Path(file).absolute())
    if not code:
        return None
    reference = reference_of(code, sys.argv[1:])
    try:
        return reference if is_application(reference) else None
    except SlackwaterError:
        return None


class StartsUnderWay:
    """The starts of this process, from before PySpark's own call until it has returned."""

    def __init__(self) -> None:
        self._noticed: list[Noticed] = []
        self._lock = threading.Lock()
        self._users = 0
        self._replaced = ExitStack()

    def open(self) -> None:
        """Notice starts from now on, until ``close`` was called as often as this."""
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._replaced.enter_context(intercepted(self))

    def close(self) -> None:
        """Put PySpark's own methods back, unless another session is watched."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._replaced.close()

    def at(self, location: str) -> Noticed | None:
        """The start with this checkpoint that is under way."""
        wanted = resolved(location)
        with self._lock:
            found = list(self._noticed)
        return next((one for one in found if resolved(one.definition.checkpoint or "") == wanted), None)

    def start(self, start: Start) -> Any:
        """Start the query as it was written."""
        noticed = _look(start)
        if noticed is None:
            return start.begin()
        with self._lock:
            self._noticed.append(noticed)
        try:
            return start.begin()
        finally:
            with self._lock:
                self._noticed.remove(noticed)

    def replacements(self) -> Mapping[type, Mapping[str, Callable[..., Any]]]:
        """Nothing else is replaced."""
        return {}


def _look(start: Start) -> Noticed | None:
    try:
        definition = definition_of(start, ApplicationCode(_file(), lambda spark: spark))
        if definition is None or definition.checkpoint is None:
            return None
        return Noticed(start, definition)
    except _UNKNOWN as error:
        # The listener records the query all the same, by what the JVM shows of it.
        log.warning("what a query writes to is not recorded", error=str(error))
        return None


def _file() -> Path:
    """The program's file as a run of it would name it."""
    reference = own_reference()
    if reference is not None:
        return locate(reference)[0]
    return Path(getattr(sys.modules.get("__main__"), "__file__", None) or "-").absolute()


UNDER_WAY = StartsUnderWay()
