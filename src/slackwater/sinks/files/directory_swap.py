"""Swaps a local file output: the directories change places atomically.

Manifests have absolute URIs, so entries are rewritten first, for the place after the exchange. Streams that read the
output then take all files as new: later stages must be replayed too. Files outside of the manifest stay.
"""

import os
from collections.abc import Callable, Collection, Iterator
from functools import cached_property
from pathlib import Path

from slackwater.core.checkpoint import Damage
from slackwater.formats.compactible import SINK_LOG, parse_file_sink_log
from slackwater.sinks.common import staging
from slackwater.sinks.common.changes import damaged, incomplete, unsupported
from slackwater.sinks.common.directory import OWNER_FILE, OutputPlace
from slackwater.sinks.common.staging import StagingDirectory, link_files, remove_leftovers
from slackwater.sinks.files.manifest import Lines, Manifest, foreign, renamed, uris
from slackwater.storage.local import LocalStore
from slackwater.storage.protocols import LEFTOVER, hadoop_checksum_path

_OURS = frozenset({SINK_LOG, OWNER_FILE, staging.MARK})
Left = tuple[str, ...] | None
"""Staged files that belong to no batch, as in a swap's record."""
_NameOf = Callable[[str], str]
"""Returns the path below the output for an entry's URI. Raises Refused for a file elsewhere."""


class DirectorySwap:
    """``FilesOutput``'s ``Swappable`` for an operation."""

    def __init__(self, path: str, operation: str) -> None:
        self._path = path
        self._operation = operation

    @cached_property
    def _place(self) -> StagingDirectory:
        return StagingDirectory(self._path, self._operation)

    @property
    def is_started(self) -> bool:
        return self._place.is_swapped

    def stage(self, after: int, lines: Lines, manifest: Manifest, find: Callable[[str], str | None]) -> None:
        place = self._place
        if place.real.is_mount():
            raise unsupported(str(place.real), "a directory below a mounted file system", "a mount point")
        if place.start():
            if after >= 0:
                entries, relative_path = manifest.until(after, lines, str(place.real)), _known(place, find)
                linked = list[str]()
                for name in sorted(set(map(relative_path, uris(entries.values())))):
                    if not (place.real / name).exists():
                        raise incomplete(str(place.real), name, "no file")
                    side = hadoop_checksum_path(name)
                    linked += [side, name] if (place.real / side).exists() else [name]
                link_files(place.real, place.folder, linked)
                store = LocalStore(place.folder)
                for name, content in entries.items():
                    store.write(f"{SINK_LOG}/{name}", _moved(content, place.folder, relative_path).encode())
            # A stream that reads the output looks for the manifest once, at its start.
            (place.folder / SINK_LOG).mkdir(exist_ok=True)
            place.set_mark(place.folder, "staged")

    @property
    def state(self) -> str | None:
        return self._place.state

    def damage(self) -> Iterator[Damage]:
        return _damage(self._place)

    def check(self) -> None:
        """Raises Refused unless the staged output's place is free."""
        named = _named(self._place, self._place.folder)
        for name in _others(self._place, self._place.real):
            if name in named and not _is_same(self._place.real / name, self._place.folder / name):
                raise unsupported(str(self._place.folder / name), "a name that no batch has used", "a file of a batch")

    def resume(self) -> None:
        self._place.finish_exchange()

    def swap(self, record: Callable[[Left], object]) -> None:
        """Swap the directories; ``record`` makes the start durable."""
        place = self._place
        if not place.is_swapped:
            # Written again, as the staged output may have other files since a swap that was undone.
            record(tuple(name for name in _others(place, place.folder) if not os.path.lexists(place.real / name)))
            # Before the exchange: no reader may find entries that name files in the staging folder.
            name_files_in(place, place.real)
            _carry(place, place.real, place.folder)
        if place.mark_in(place.folder) == "staged":
            place.exchange()
        # In this order one of the two marks shows at any time that the folders were exchanged (``is_swapped``).
        place.set_mark(place.folder, "replaced")
        place.remove_mark(place.real)
        # What others have written to the old output between the first copy and the exchange.
        _carry(place, place.folder, place.real)

    def check_back(self) -> None:
        """Raises Refused (``backup-damaged``) unless the replaced output is whole."""
        place = self._place
        if place.is_interrupted:
            return
        if not place.is_swapped:
            if place.state != "staged":
                raise damaged(str(place.folder), "the output before the swap", place.state or "no folder")
        elif place.mark_in(place.real) is None:
            if not place.real.is_dir():
                raise damaged(str(place.real), "the output that was swapped in", "no folder")
            for missing in _damage(place):
                raise damaged(f"{place.folder}/{missing.path}", missing.expected, missing.found)

    def swap_back(self, left: Left) -> None:
        place = self._place
        place.finish_exchange()
        if not place.is_swapped and place.state != "staged":
            raise damaged(str(place.folder), "the output before the swap", place.state or "no folder")
        # What others have written since the swap stays in the output; ``left`` goes back with the staged one.
        if place.is_swapped and left is not None:
            _carry(place, place.real, place.folder, without=left)
        if place.mark_in(place.folder) == "replaced":
            # The new mark before the old one is removed, as in ``_exchange``.
            place.set_mark(place.real, "staged")
            place.remove_mark(place.folder)
        if place.mark_in(place.real) == "staged":
            place.exchange()
        remove_leftovers(place.real)
        if left is not None:
            _carry(place, place.folder, place.real, without=left)
        name_files_in(place, place.folder)


def name_files_in(staging: StagingDirectory, place: Path) -> None:
    """Rewrite the staged entries as if files were in ``place``.

    Side files go first: Hadoop verifies any entry that has a side file.
    """
    store, relative_path = LocalStore(staging.folder), _names_of(staging)
    manifest = Manifest(store)
    remove_leftovers(staging.folder / SINK_LOG)
    for name in manifest.all_names():
        content = manifest.read(name).decode()
        moved = _moved(content, place, relative_path)
        if moved != content:
            store.delete(hadoop_checksum_path(f"{SINK_LOG}/{name}"))
            store.write(f"{SINK_LOG}/{name}", moved.encode())


def _names_of(staging: StagingDirectory) -> _NameOf:
    """Finds paths for URIs in both places: some entries may be rewritten already."""
    places = OutputPlace(str(staging.folder)), OutputPlace(str(staging.real))
    return _known(
        staging, lambda uri: next((name for place in places if (name := place.relative_path(uri)) is not None), None)
    )


def _known(staging: StagingDirectory, find: Callable[[str], str | None]) -> _NameOf:
    def relative_path(uri: str) -> str:
        name = find(uri)
        if name is None:
            raise foreign(str(staging.real), uri)
        return name

    return relative_path


def _moved(content: str, place: Path, relative_path: _NameOf) -> str:
    """The entry with URIs in a different place; their ends stay as Spark encoded them."""

    def moved(uri: str) -> str:
        return "/".join([place.as_uri(), *uri.split("/")[-relative_path(uri).count("/") - 1 :]])

    return renamed(content, moved)


def _damage(staging: StagingDirectory) -> Iterator[Damage]:
    relative_path = _names_of(staging)
    for file in Manifest(LocalStore(staging.folder)).files():
        if isinstance(file, Damage):
            yield file
            continue
        path = staging.folder / relative_path(file.path)
        size = path.stat().st_size if path.is_file() else None
        if size != file.size:
            found = "no file" if size is None else f"{size} bytes"
            yield Damage(str(path.relative_to(staging.folder)), "torn", f"{file.size} bytes", found)


def _carry(place: StagingDirectory, source: Path, target: Path, without: Collection[str] = ()) -> None:
    """Link unlisted files into the target, except for ``without``.

    On a name clash with a file of no batch, the newer file stays.
    """
    named, missing = _named(place, target), list[str]()
    for name in _others(place, source):
        if name in named or name in without:
            continue
        if not os.path.lexists(target / name):
            missing.append(name)
        elif (
            not _is_same(source / name, target / name)
            and (source / name).lstat().st_mtime_ns > (target / name).lstat().st_mtime_ns
        ):
            (target / name).unlink()
            missing.append(name)
    link_files(source, target, missing)


def _others(place: StagingDirectory, folder: Path) -> Iterator[str]:
    named = _named(place, folder)
    for parent, folders, files in os.walk(folder):
        path = Path(parent).relative_to(folder)
        # ``os.walk`` lists a link to a folder among the folders and does not enter it: it is carried like a file.
        links = [name for name in folders if (Path(parent) / name).is_symlink()]
        if path == Path():
            folders[:] = [name for name in folders if name not in _OURS]
        for name in sorted((*files, *links)):
            is_side_file = name.startswith(".") and name.endswith(".crc")
            data = name.removeprefix(".").removesuffix(".crc") if is_side_file else name
            if not name.endswith(LEFTOVER) and not (path == Path() and data in _OURS) and str(path / data) not in named:
                yield (path / name).as_posix()


def _named(place: StagingDirectory, folder: Path) -> set[str]:
    manifest, relative_path = Manifest(LocalStore(folder)), _names_of(place)
    return {
        relative_path(file.path) for entry in manifest.all_names() for file in parse_file_sink_log(manifest.read(entry))
    }


def _is_same(one: Path, other: Path) -> bool:
    """Return whether files are the same; a copy, without hard links, has equal size and time."""
    left, right = one.lstat(), other.lstat()
    if (left.st_dev, left.st_ino) == (right.st_dev, right.st_ino):
        return True
    return (left.st_size, left.st_mtime_ns) == (right.st_size, right.st_mtime_ns)
