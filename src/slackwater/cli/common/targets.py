"""Which checkpoint a LOCATION or the name of a STREAM means, for the verbs that take either."""

from __future__ import annotations

from slackwater.checkpoint.identify import require_checkpoint
from slackwater.cli.common.console import say
from slackwater.core.commands import command
from slackwater.core.errors import EnvironmentMissing, NotFound, SlackwaterError, UsageError
from slackwater.core.settings import Settings, load
from slackwater.storage.local import exists
from slackwater.storage.open import is_uri, resolved
from slackwater.storage.protocols import ReadStore


def resolve(target: str, home: str | None = None) -> str:
    """The checkpoint that LOCATION or STREAM names (``is_location``): the place itself, or the stream's one in use.

    Raises ``NotFound`` where it is neither.
    """
    settings = load(home=home)
    if is_location(target, settings):
        return target
    require_no_path(target)
    location = _location_of_stream(target, settings)
    if location is not None:
        return location
    raise _nothing(target)


def is_location(target: str, settings: Settings) -> bool:
    """Whether a target is the place of a checkpoint: a URI, or a path that exists, but for the name of a stream.

    A name without ``./`` that is both is the stream, for these verbs as for those that take a stream only. Raises
    ``UsageError`` where several streams have it. Where the ledger cannot be read, it is the path.
    """
    if is_uri(target) or not exists(target) or _is_path(target):
        return is_there(target)
    try:
        location = _location_of_stream(target, settings)
    except UsageError:
        raise
    except SlackwaterError:
        return True
    if location is not None and resolved(location) != resolved(target):
        say(f"{target} is a stream of this home; the path of this name is ./{target}")
    return location is None


def is_there(target: str) -> bool:
    """Whether it is a URI, or a path that exists."""
    return is_uri(target) or exists(target)


def _is_path(target: str) -> bool:
    return target.startswith(("/", "./", "../", "~"))


def require_no_path(target: str) -> None:
    """Raises ``NotFound`` for a target that can only be a path. For one where nothing is: no stream has such a name."""
    if _is_path(target):
        raise _nothing(target)


def _nothing(target: str) -> NotFound:
    return NotFound(
        "no-checkpoint",
        "There is no path and no stream of this name",
        where=target,
        hint=f"{command('status')} shows the streams of this home",
    )


def _location_of_stream(name: str, settings: Settings) -> str | None:
    from slackwater.ledger.workspace import open_workspace  # noqa: PLC0415 - a path needs no ledger

    try:
        with open_workspace(settings) as workspace:
            stream = workspace.ledger.find_stream(name)
            return workspace.ledger.generation(stream.full_name, stream.current_generation).location
    except NotFound:
        return None


def require_reachable(store: ReadStore) -> None:
    """Read the root first. Raises ``NotFound``, or ``EnvironmentMissing`` where the store cannot be reached."""
    try:
        require_checkpoint(store)
    except OSError as error:
        raise EnvironmentMissing(
            "store-unreachable",
            "The store cannot be listed",
            where=store.location,
            found=str(error),
            hint="check its address, and that you may read there",
        ) from error
