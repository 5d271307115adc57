"""Finds the data that a stream's sources can still serve."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from slackwater.core.errors import EnvironmentMissing, SlackwaterError
from slackwater.sources.common.contract import Reach
from slackwater.storage.open import local_file_of, open_read_store
from slackwater.storage.protocols import ReadStore


class StoreAvailability(Reach):
    def exists(self, path: str) -> bool:
        store, name = _place_of(path)
        if store.exists(name):
            return True
        # A file in a folder that this user may not enter looks absent, and its rows would count as lost.
        file = store.local_path(name)
        try:
            if file is not None:
                Path(file).stat()
        except PermissionError as error:
            raise EnvironmentMissing(
                "source-inaccessible",
                "This user may not look for the files of a source",
                where=str(Path(file or "").parent),
                found="permission denied",
                hint="run the command as a user who may read the source, or change the permissions of its folder",
            ) from error
        except (OSError, ValueError):
            return False
        return False

    def modified_ms(self, path: str) -> int | None:
        try:
            store, name = _place_of(path)
            return store.modified_ms(name)
        except (OSError, SlackwaterError):
            # Recording must continue where this process cannot read the source; ``exists`` reports why.
            return None

    def all_modified_ms(self, paths: Iterable[str]) -> Mapping[str, int]:
        """The write times of files; remote stores are listed by folder, not asked per file."""
        by_folder: dict[str, set[str]] = {}
        for path in paths:
            by_folder.setdefault(path.rpartition("/")[0], set()).add(path)
        found: dict[str, int] = {}
        listed: set[str] = set()
        # A listing has what is in the folders below, too, and folders come before those below them.
        for folder, names in sorted(by_folder.items()):
            if local_file_of(folder) is not None:
                found |= {path: ms for path in names if (ms := self.modified_ms(path)) is not None}
            elif not any(folder.startswith(f"{above}/") for above in listed):
                listed.add(folder)
                with suppress(OSError, SlackwaterError):
                    found |= {f"{folder}/{name}": ms for name, ms in open_read_store(folder).written_ms()}
        wanted = {path for names in by_folder.values() for path in names}
        return {path: ms for path, ms in found.items() if path in wanted}

    def size(self, path: str) -> int | None:
        try:
            store, name = _place_of(path)
            return store.size(name)
        except (OSError, SlackwaterError):
            return None


def _place_of(path: str) -> tuple[ReadStore, str]:
    folder, _, name = (local_file_of(path) or path).rpartition("/")
    return open_read_store(folder or "/"), name
