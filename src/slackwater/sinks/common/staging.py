"""An operation's hidden folder next to a local output: staged or replaced.

A mark inside has the operation and state; nothing is removed without it.
"""

import ctypes
import errno
import json
import os
import shutil
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

from slackwater.core.sink import exchange_path, staging_path
from slackwater.sinks.common.changes import occupied, unsupported
from slackwater.storage.local import LocalStore, keep_owner_and_mode, read_file, sync_directory
from slackwater.storage.open import local_path_of, open_write_store
from slackwater.storage.protocols import LEFTOVER, WriteStore

MARK = "_slackwater_swap.json"
"""Spark, pandas and pyarrow ignore names that start with an underscore."""

State = Literal["building", "staged", "swapping", "replaced", "restoring", "discarded"]
_EXCHANGE = 2
"""``RENAME_EXCHANGE`` of renameat2(2)."""
_AT_FDCWD = -100
# renameat2(2) reports EINVAL where the file system lacks RENAME_EXCHANGE, ENOSYS where the kernel lacks the call.
_NO_EXCHANGE = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
# link(2) reports EPERM where the file system has no hard links, EMLINK where a file has too many, and EXDEV between
# mounts, also between two of one file system.
_NO_LINK = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV, errno.ENOSYS})


def has_parent(path: str) -> bool:
    return local_path_of(path) is not None or bool(path.rstrip("/").partition("://")[2].partition("/")[2])


class StagingDirectory:
    """An operation's folder next to ``path``, which it swaps."""

    def __init__(self, path: str, operation: str) -> None:
        self.path = path
        self.operation = operation

    @cached_property
    def real(self) -> Path:
        """The output with symlinks resolved. Raises Refused if not local."""
        local = local_path_of(self.path)
        if local is None:
            raise unsupported(self.path, "a directory on a local disk", "a store without an exchange of directories")
        return Path(local).resolve()

    @cached_property
    def folder(self) -> Path:
        return self.real.with_name(staging_path(self.real.name, self.operation))

    @property
    def state(self) -> State | None:
        state = self.mark_in(self.folder)
        if state is None and (self.folder.is_symlink() or (self.folder.exists() and not _is_empty(self.folder))):
            raise occupied(str(self.folder), self.operation, "a folder or file without the operation's mark")
        return state

    @property
    def is_swapped(self) -> bool:
        """Return whether the staged output is in place, perhaps just now."""
        return self.mark_in(self.real) == "staged" or self.mark_in(self.folder) == "replaced"

    @property
    def is_interrupted(self) -> bool:
        return self.exchange_path.exists()

    def mark_in(self, folder: Path) -> State | None:
        try:
            return _state_of(read_file(folder / MARK), self.operation)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def mark(self, state: State) -> None:
        self.set_mark(self.folder, state)

    def set_mark(self, folder: Path, state: State) -> None:
        remove_leftovers(folder)
        LocalStore(folder).write(MARK, _mark_of(self.operation, state))

    def remove_mark(self, folder: Path) -> None:
        remove_leftovers(folder)
        LocalStore(folder).delete(MARK)

    def start(self) -> bool:
        """Create the staged folder; ``False`` if it is complete."""
        state = self.state
        # A mark moves with its folder: one in the real folder shows that the folders were exchanged.
        if state in {"staged", "replaced"} or self.mark_in(self.real) is not None:
            return False
        if state == "discarded":
            self.discard("discarded")
        if state != "building":
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise unsupported(str(self.folder), "a parent folder that can be written to", str(error)) from error
            self.mark("building")
        keep_owner_and_mode(self.real, self.folder)
        return True

    def exchange(self) -> None:
        """Exchange the folders, atomically if the system can."""
        # An exchange that was started by renames is finished by renames: one of the two paths does not exist.
        if self.exchange_path.exists() or not _exchanged(self.real, self.folder):
            self.exchange_by_renames()
        sync_directory(self.real.parent)

    def move(self, source: Path, target: Path) -> None:
        source.rename(target)
        sync_directory(self.real.parent)

    def exchange_by_renames(self) -> None:
        if not self.exchange_path.exists():
            self.real.rename(self.exchange_path)
        self.finish_exchange()

    def finish_exchange(self) -> None:
        if self.exchange_path.exists():
            if not self.real.exists():
                self.folder.rename(self.real)
            self.exchange_path.rename(self.folder)

    @property
    def exchange_path(self) -> Path:
        return self.real.with_name(exchange_path(self.real.name, self.operation))

    def discard(self, part: State) -> None:
        """Remove the folder if it is this part, perhaps incomplete, or half removed."""
        state = self.state
        if state in {part, "discarded"} or (state, part) == ("building", "staged"):
            # The mark goes last: an interrupted removal finds it.
            self.set_mark(self.folder, "discarded")
            for path in sorted(self.folder.iterdir()):
                if path.name != MARK:
                    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            self.remove_mark(self.folder)
        if self.folder.is_dir() and _is_empty(self.folder):
            remove_leftovers(self.folder)
            self.folder.rmdir()


class RemoteStagingDirectory:
    """An operation's folder next to a remote output.

    States as in ``StagingDirectory``; file outputs have two more during swap and undo.
    """

    def __init__(self, path: str, operation: str) -> None:
        self.operation = operation
        self.real = path.rstrip("/")
        parent, _, name = self.real.rpartition("/")
        self.folder = f"{parent}/{staging_path(name, operation)}"

    @cached_property
    def _store(self) -> WriteStore:
        return open_write_store(self.folder)

    @property
    def state(self) -> State | None:
        try:
            state = _state_of(self._store.read(MARK), self.operation)
        except FileNotFoundError:
            state = None
        if state is None and self._has_files():
            raise occupied(self.folder, self.operation, "a folder without the operation's mark")
        return state

    def start(self) -> bool:
        """Create the staged folder; ``False`` if it is complete."""
        state = self.state
        if state not in {None, "building", "discarded"}:
            return False
        if state == "discarded":
            self.discard("discarded")
        self.mark("building")
        return True

    def mark(self, state: State) -> None:
        self._store.write(MARK, _mark_of(self.operation, state))

    def discard(self, part: State) -> None:
        """Remove the content if it is this part, perhaps incomplete, or half removed."""
        state = self.state
        if state not in {part, "discarded"} and (state, part) != ("building", "staged"):
            return
        # The mark goes last: an interrupted removal finds it.
        self.mark("discarded")
        for folder in list(self._store.folders()):
            for name in folder.files:
                if (folder.path, name) != ("", MARK):
                    self._store.delete(f"{folder.path}/{name}" if folder.path else name)
        self._store.delete(MARK)
        if not self._has_files():
            # HDFS keeps the directories.
            self._store.delete_tree()

    def _has_files(self) -> bool:
        return any(folder.files for folder in self._store.folders())


Place = StagingDirectory | RemoteStagingDirectory


def staging_of(path: str, operation: str) -> Place:
    return (StagingDirectory if local_path_of(path) is not None else RemoteStagingDirectory)(path, operation)


def bring_files(source: str, target: str, names: Iterable[str]) -> None:
    """Add files as hard links on a local disk, otherwise as copies.

    Raises FileNotFoundError. An existing file is from an interrupted call.
    """
    local = local_path_of(source), local_path_of(target)
    if local[0] is not None and local[1] is not None:
        link_files(Path(local[0]), Path(local[1]), names)
        return
    found, bring = open_write_store(source), open_write_store(target)
    for name in names:
        if not bring.exists(name):
            bring.write_pieces(name, found.read_pieces(name))


def _mark_of(operation: str, state: State) -> bytes:
    return (json.dumps({"operation": operation, "state": state}) + "\n").encode()


def _state_of(mark: bytes, operation: str) -> State | None:
    try:
        fields = json.loads(mark)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or fields.get("operation") != operation:
        return None
    return next((one for one in get_args(State) if one == fields.get("state")), None)


def remove_leftovers(folder: Path) -> None:
    for path in list(folder.glob(f".*{LEFTOVER}")):
        path.unlink()


def link_files(source: Path, target: Path, names: Iterable[str]) -> None:
    """Add files durably as hard links, or as copies if the disk has no hard links.

    An existing name is from an interrupted call.
    """
    folders = set[Path]()
    for name in names:
        one, other = source / name, target / name
        other.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(one, other)
        except FileExistsError:
            pass
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise
            LocalStore(other.parent).write_pieces(other.name, LocalStore(one.parent).read_pieces(one.name))
        folders.add(other.parent)
    for folder in folders:
        sync_directory(folder)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange by renameat2(2); ``False`` if unsupported. Raises Refused if the folders cannot be renamed at all."""
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is None:
        return False
    if function(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), ctypes.c_uint(_EXCHANGE)) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NO_EXCHANGE:
        return False
    # Such as EXDEV for a folder that is part of a container's image (overlayfs).
    raise unsupported(str(one), "a directory that can be renamed", os.strerror(number))


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and all(path.name.endswith(LEFTOVER) for path in folder.iterdir())
