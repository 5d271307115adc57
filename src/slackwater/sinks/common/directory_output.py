"""What outputs in a directory have in common: where they are, and whose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from slackwater.core.damage import Damage
from slackwater.core.errors import SinkUnreadable
from slackwater.core.sink import Owner
from slackwater.sinks.common.owner import claim, read_owner, release
from slackwater.sinks.common.place import Place
from slackwater.storage.open import open_write_store
from slackwater.storage.protocols import WriteStore


class DirectoryOutput:
    """An output directory. ``path`` is what Spark is given; the store is not opened before it is needed."""

    def __init__(self, path: str) -> None:
        self._path = path

    @property
    def location(self) -> str:
        return self._place.location

    @cached_property
    def _place(self) -> Place:
        return Place(self._path)

    @cached_property
    def _store(self) -> WriteStore:
        return open_write_store(self._path)

    def owner(self) -> Owner | None:
        return read_owner(self._store)

    def claim(self, owner: Owner) -> None:
        claim(self._store, owner)

    def release(self, stream_id: str) -> None:
        release(self._store, stream_id)


def path_of(kind: str, identity: Mapping[str, str]) -> str:
    """The path of a recorded identity. Raises SinkUnreadable if it has none."""
    path = identity.get("path")
    if not path:
        raise SinkUnreadable(
            "sink-identity",
            "The recorded identity of the sink has no path",
            expected=f'{{"kind": "{kind}", "path": ...}}',
            found=str(dict(identity)),
        )
    return path


def size_damage(size: Callable[[str], int], path: str, recorded: int) -> Iterator[Damage]:
    """What is wrong with a file of the output by its size: ``size`` asks the store for it."""
    try:
        found = size(path)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        kind, shown = ("missing", "no file") if missing else ("unreadable", str(error))
        yield Damage(path, kind, f"{recorded} bytes", shown)
    else:
        if found != recorded:
            yield Damage(path, "torn", f"{recorded} bytes", f"{found} bytes")
