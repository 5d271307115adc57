"""The checkpoint of a LOCATION or STREAM."""

from __future__ import annotations

from contextlib import suppress

from slackwater.checkpoint.identify import require_checkpoint
from slackwater.cli.common.console import say
from slackwater.core.commands import command
from slackwater.core.errors import NotFound, SlackwaterError, UsageError, unreachable
from slackwater.core.records import GenerationRecord
from slackwater.core.settings import Settings, load
from slackwater.storage.local import exists
from slackwater.storage.open import is_uri, resolved
from slackwater.storage.protocols import ReadStore


def resolve(target: str, home: str | None = None) -> str:
    """The location, or the stream's checkpoint in use. Raises ``NotFound``."""
    settings = load(home=home)
    if is_location(target, settings):
        return target
    found = _in_use(target, settings)
    if found is not None:
        return found.location
    raise _nothing(target)


def is_location(target: str, settings: Settings) -> bool:
    """Whether a target is a location: a URI, or an existing path that names no stream.

    A name without ``./`` that is both is the stream. Raises ``UsageError`` if several streams have it. With an
    unreadable ledger it is the path.
    """
    if is_uri(target) or not exists(target) or _is_path(target):
        return is_there(target)
    try:
        found = _in_use(target, settings)
    except UsageError:
        raise
    except SlackwaterError:
        return True
    if found is None or resolved(found.location) == resolved(target):
        return True
    say(f"{target} is a stream of this home; the path of this name is ./{target}")
    return False


def is_there(target: str) -> bool:
    return is_uri(target) or exists(target)


def _is_path(target: str) -> bool:
    return target.startswith(("/", "./", "../", "~"))


def require_no_path(target: str) -> None:
    if _is_path(target):
        raise _nothing(target)


def _nothing(target: str) -> NotFound:
    return NotFound(
        "no-checkpoint",
        "There is no path and no stream of this name",
        where=target,
        hint=f"{command('status')} shows the streams of this home",
    )


def _in_use(target: str, settings: Settings) -> GenerationRecord | None:
    from slackwater.ledger.located import generation_in_use  # noqa: PLC0415 - a path needs no ledger

    return generation_in_use(settings, target)


def require_recorded(store: ReadStore, home: str | None) -> None:
    """Raises as ``require_reachable``; the hint names the stream."""
    try:
        require_reachable(store)
    except NotFound as error:
        with suppress(SlackwaterError):
            found = _in_use(store.location, load(home=home))
            if found is not None:
                error.hint = deleted_checkpoint_hint(found.stream)
        raise


def deleted_checkpoint_hint(stream: str) -> str:
    return f"the checkpoint of stream {stream} was here; what to do is shown by: {command('doctor', stream)}"


def require_reachable(store: ReadStore) -> None:
    """Read the root. Raises ``NotFound``, or ``EnvironmentMissing`` for an unreachable store."""
    try:
        require_checkpoint(store)
    except OSError as error:
        raise unreachable("The store", error, store.location) from error
