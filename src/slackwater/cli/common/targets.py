"""Which checkpoint a LOCATION or the name of a STREAM means, for the verbs that take either."""

from __future__ import annotations

from slackwater.checkpoint.identify import require_checkpoint
from slackwater.core.commands import command
from slackwater.core.errors import EnvironmentMissing, NotFound
from slackwater.core.settings import load
from slackwater.storage.local import exists
from slackwater.storage.open import is_uri
from slackwater.storage.protocols import ReadStore


def resolve(target: str, home: str | None = None) -> str:
    """The checkpoint that LOCATION or STREAM names: a URI, a path that exists, else the stream's one in use.

    Raises ``NotFound`` where it is neither.
    """
    if is_uri(target) or exists(target):
        return target
    require_no_path(target)
    location = _location_of_stream(target, home)
    if location is not None:
        return location
    raise _nothing(target)


def require_no_path(target: str) -> None:
    """Raises ``NotFound`` for a target that can only be a path. For one where nothing is: no stream has such a name."""
    if target.startswith(("/", "./", "../", "~")):
        raise _nothing(target)


def _nothing(target: str) -> NotFound:
    return NotFound(
        "no-checkpoint",
        "There is no path and no stream of this name",
        where=target,
        hint=f"{command('status')} shows the streams of this home",
    )


def _location_of_stream(name: str, home: str | None) -> str | None:
    from slackwater.ledger.workspace import open_workspace  # noqa: PLC0415 - a path needs no ledger

    try:
        with open_workspace(load(home=home)) as workspace:
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
