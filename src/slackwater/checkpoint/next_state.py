from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from slackwater.checkpoint.layout import parse_state_file, store_path
from slackwater.checkpoint.logs import damage_of
from slackwater.checkpoint.opened import OpenedCheckpoint
from slackwater.checkpoint.state.inventory import Lineage, VersionFiles, files_of_attempt, files_of_version
from slackwater.core.checkpoint import CommitEntry, Damage, StoreVersions
from slackwater.core.errors import FormatError


class NextState(NamedTuple):
    """Files of a store, oldest first.

    ``candidates`` may include the older files, if the naming header was not read. ``damage``: files that Spark will
    miss.
    """

    paths: tuple[str, ...]
    candidates: tuple[str, ...] = ()
    damage: tuple[Damage, ...] = ()


class _HeaderNotRead(Exception):
    """The lineage of a changelog is unknown."""


@dataclass(frozen=True, slots=True)
class NextStateFiles:
    """Finds files by name. In format 2 the newest changelog lists older files.

    ``lineage_of`` returns ``None`` for an unread header.
    """

    opened: OpenedCheckpoint
    lineage_of: Callable[[str], Lineage | None]

    def stores(self) -> Iterator[NextState]:
        version = self.opened.logs.committed + 1
        # No batch is committed: the next one starts with empty state, which has no file.
        if version == 0:
            return
        known: dict[frozenset[str], list[str]] = {}
        for operator, partition, store, held in self.opened.inventory.each():
            folder = store_path(operator, partition, store)
            names = self.opened.listing.names(folder)
            if held.ids:
                ids = _unique_ids(self.opened.logs.newest_commit, operator, partition)
                yield from self._of_attempt(folder, names, version, _own_id(held, version, ids))
                continue
            # Most partitions hold files of the same names.
            chosen = known[names] if names in known else known.setdefault(names, _of_version(names, version))
            if chosen:
                yield NextState(_paths(folder, chosen))

    def _of_attempt(
        self, folder: str, names: frozenset[str], version: int, unique_id: str | None
    ) -> Iterator[NextState]:
        """Yields no files if the newest is missing, which names show."""
        if unique_id is None:
            return
        newest = [name for name in names if _is(name, version, unique_id)]
        try:
            files = files_of_attempt(names, version, unique_id, lambda name: self._lineage(f"{folder}/{name}"))
            yield NextState(_paths(folder, _in_order(files)))
        except _HeaderNotRead:
            # Which of the older files are needed is unknown, so all candidates count as not read, and none as missing.
            yield NextState(_paths(folder, newest), _paths(folder, _candidates(names, version)))
        except FormatError as error:
            yield NextState(_paths(folder, newest), damage=(damage_of(folder, error),))

    def _lineage(self, path: str) -> Lineage:
        lineage = self.lineage_of(path)
        if lineage is None:
            raise _HeaderNotRead
        return lineage


def _paths(folder: str, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}" for name in names)


def _in_order(files: VersionFiles) -> list[str]:
    return [name for name in (files.base, *files.steps) if name is not None]


def _of_version(names: Iterable[str], version: int) -> list[str]:
    try:
        return _in_order(files_of_version(names, version))
    except FormatError:
        return []


def _unique_ids(commit: CommitEntry | None, operator: int, partition: int) -> list[str]:
    partitions = (commit.state_unique_ids or {}).get(str(operator), []) if commit else []
    return partitions[partition] if partition < len(partitions) else []


def _own_id(held: StoreVersions, version: int, ids: Iterable[str]) -> str | None:
    """A file with another id is from a failed attempt."""
    return next((one for one in ids if (version, one) in held.ids), None)


def _is(name: str, version: int, unique_id: str | None) -> bool:
    parsed = parse_state_file(name)
    return parsed is not None and (parsed.version, parsed.unique_id) == (version, unique_id)


def _candidates(names: Iterable[str], version: int) -> list[str]:
    older = {name: file for name in names if (file := parse_state_file(name)) and file.version < version}
    base = max((file.version for file in older.values() if file.kind.is_whole), default=0)
    return sorted(
        (name for name, file in older.items() if file.version >= base), key=lambda name: (older[name].version, name)
    )
