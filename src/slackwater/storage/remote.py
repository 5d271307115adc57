"""Any fsspec file system as a store; imported only when needed."""

from __future__ import annotations

import contextlib
import errno
import logging
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from glob import has_magic
from typing import TYPE_CHECKING, Any

import fsspec

from slackwater.core.errors import EnvironmentMissing, SlackwaterError, UsageError
from slackwater.storage.below import copy_pieces
from slackwater.storage.protocols import READ_LIMIT, Entry, FileTooLarge, Folder, ReadStore, StoreTraits
from slackwater.storage.replacement import move, set_aside_path, settle, swap_in, temporary_path, with_files_set_aside
from slackwater.storage.waits import WAITS

if TYPE_CHECKING:
    from slackwater.storage.registry import FsspecKind

_WRITTEN = ("LastModified", "last_modified", "mtime", "modified", "created")
"""The fields with the time in listings of S3, Azure, SFTP and memory; any other store needs a request per file."""
_PIECE = 1 << 20
_INVALID_RANGE = 416
_NO_ANSWER = (ConnectionError, TimeoutError)
_ABSENT_OR_THERE = (FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError)
_SHOWN = 200
_LISTED_AT_ONCE = 16
_LEVELS_BEFORE_FLAT = 2
"""Two levels are listed by name, everything below them flat: ``state/<operator>`` is then a single paged request."""


def open_remote_store(location: str, kind: FsspecKind) -> RemoteStore:
    """Open a store with credentials and endpoint from fsspec's own configuration and environment."""
    scheme = location.partition(":")[0]
    url, options = kind.connection(location)
    if kind.implementation is not None:
        fsspec.register_implementation(kind.protocol, kind.implementation, clobber=True)
    try:
        filesystem, root = fsspec.core.url_to_fs(url, use_listings_cache=False, **options)
    except ImportError as error:
        raise EnvironmentMissing(
            "package-missing",
            f"reading {scheme}: needs a package: {error}",
            where=location,
            hint=f"pip install {kind.package}" if kind.package else None,
        ) from error
    except OSError as error:
        raise EnvironmentMissing(
            "store-unreachable",
            f"The store of {scheme}: cannot be opened",
            where=location,
            # A line: pyarrow lists every path that it searched for a library.
            found=str(error).strip().partition("\n")[0][:_SHOWN] or type(error).__name__,
            hint="check the address, the network, and the credentials of this user",
        ) from error
    except SlackwaterError:
        raise
    except Exception as error:
        # Whatever the file system of a protocol raises: one that needs arguments which no URI has, a TypeError.
        raise UsageError(
            "location",
            f"The location cannot be opened: {' '.join(str(error).split())[:_SHOWN] or type(error).__name__}",
            where=location,
            expected="a URI that has all that a client of the store needs, such as s3://bucket/folder",
            hint="correct the location, and repeat the command",
        ) from error
    # The libraries log errors that they also raise; without a handler Python prints them.
    for library in {one.__module__.partition(".")[0] for one in type(filesystem).__mro__} - {"builtins"}:
        logger = logging.getLogger(library)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
    return RemoteStore(filesystem, root, location, kind.traits)


class RemoteStore:
    """A ``WriteStore`` over fsspec. Caches nothing: a checkpoint may be growing while it is read."""

    def __init__(self, filesystem: Any, root: str, location: str, traits: StoreTraits) -> None:
        self._filesystem = filesystem
        self._root = root.rstrip("/")
        self.location = location
        self.traits = traits

    def list(self, path: str = "") -> tuple[Entry, ...]:
        folder = self._folder(path.strip("/"))
        if folder is None:
            return ()
        sizes = folder.sizes or (None,) * len(folder.files)
        directories = tuple(Entry(name, is_dir=True) for name in folder.directories)
        return directories + tuple(
            Entry(name, is_dir=False, size=size) for name, size in zip(folder.files, sizes, strict=True)
        )

    def folders(self, path: str = "") -> Iterator[Folder]:
        pending = [path.strip("/")]
        with ThreadPoolExecutor(_LISTED_AT_ONCE, "slackwater-list") as pool:
            for _ in range(_LEVELS_BEFORE_FLAT):
                # A thread is started by the first call, which most listings do not need.
                listed = pool.map(self._folder, pending) if len(pending) > 1 else map(self._folder, pending)
                found = [folder for folder in listed if folder is not None]
                yield from found
                pending = [_join(folder.path, name) for folder in found for name in folder.directories]
            for below in pool.map(self._folders_below, pending):
                yield from below

    def _folder(self, path: str) -> Folder | None:
        full = self._full(path)
        try:
            with self._translated():
                listed = self._filesystem.ls(full, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return None
        # An object store lists the marker object of the directory itself, and a file as its own listing.
        inside = [one for one in listed if one["name"].startswith(full + "/") and one["name"].rstrip("/") != full]
        if not inside and any(one["name"] == full and one["type"] == "file" for one in listed):
            return None
        directories = [item for item in inside if item["type"] == "directory"]
        files = [item for item in inside if item["type"] != "directory"]
        folder = Folder(
            path, _last_parts(directories), _last_parts(files), tuple(int(item["size"] or 0) for item in files)
        )
        return folder if self.traits.atomic_replace else with_files_set_aside(folder)

    def _folders_below(self, path: str) -> tuple[Folder, ...]:
        full = self._full(path)
        with self._translated():
            found = self._filesystem.find(full, detail=True)
        files: dict[str, dict[str, int]] = {"": {}}
        directories: dict[str, dict[str, None]] = {"": {}}
        for place, item in found.items():
            if not place.endswith("/"):
                parent, _, name = place.strip("/")[len(full.strip("/")) + 1 :].rpartition("/")
                _add_directory(parent, files, directories)
                files[parent][name] = int(item["size"] or 0)
        folders = [
            Folder(_join(path, below) if below else path, tuple(directories[below]), tuple(held), tuple(held.values()))
            for below, held in sorted(files.items())
        ]
        return tuple(folders if self.traits.atomic_replace else map(with_files_set_aside, folders))

    def written_ms(self) -> Iterator[tuple[str, int]]:
        root = self._full("").strip("/")
        with self._translated():
            found = self._filesystem.find(self._root, detail=True)
        for name, item in found.items():
            written = next((item[key] for key in _WRITTEN if item.get(key)), None)
            with self._translated():
                written_ms = _ms(written or self._filesystem.modified(name))
            yield name.strip("/")[len(root) + 1 :], written_ms

    def size(self, path: str) -> int:
        with self._translated():
            return int(self._filesystem.size(self._place_of(path)) or 0)

    def modified_ms(self, path: str) -> int | None:
        with self._translated():
            item = self._filesystem.info(self._place_of(path))
        written = next((item[key] for key in _WRITTEN if item.get(key)), None)
        return _ms(written) if isinstance(written, (datetime, int, float)) else None

    def local_path(self, path: str) -> str | None:  # noqa: ARG002 - the store protocol asks every store
        return None

    def read(self, path: str, limit: int = READ_LIMIT) -> bytes:
        with self._translated():
            full = self._place_of(path)
            data: bytes
            if self.traits.atomic_rename:
                # Reading a range costs memory for the whole range on HDFS; asking for the size costs little.
                size = int(self._filesystem.size(full) or 0)
                if size > limit:
                    raise FileTooLarge(path, limit, size)
                data = self._filesystem.cat_file(full)
            else:
                # One byte more than the limit shows that the file is larger.
                data = self._read_range(full, limit + 1)
        if len(data) > limit:
            raise FileTooLarge(path, limit, None)
        return data

    def _read_range(self, full: str, end: int) -> bytes:
        try:
            data: bytes = self._filesystem.cat_file(full, start=0, end=end)
        except FileNotFoundError:
            raise
        except Exception as error:
            # No range of an empty object can be served: 416. Where that is not to be seen, the size is requested.
            # gcsfs has `code`, Azure's library `status_code`.
            response = getattr(error.__cause__, "response", None)
            if _INVALID_RANGE in {getattr(error, "code", None), getattr(error, "status_code", None)} or (
                isinstance(response, dict) and response.get("Error", {}).get("Code") == "InvalidRange"
            ):
                return b""
            may_be_empty = isinstance(error, (OSError, ValueError)) and not isinstance(error, _NO_ANSWER)
            if may_be_empty and int(self._filesystem.size(full) or 0) == 0:
                return b""
            raise
        return data

    def read_pieces(self, path: str) -> Iterator[bytes]:
        with self._translated():
            file = self._filesystem.open(self._place_of(path), "rb")
        with file:
            while True:
                with self._translated():
                    piece: bytes = file.read(_PIECE)
                if not piece:
                    return
                yield piece

    def exists(self, path: str) -> bool:
        try:
            with self._translated():
                return bool(self._filesystem.exists(self._place_of(path)))
        except FileNotFoundError:
            # `_full` raises it for a path that leads out of the root.
            return False

    def write(self, path: str, data: bytes) -> None:
        with self._translated():
            self._write(self._full(path), data)

    def _write(self, target: str, data: bytes) -> None:
        self._make_parent(target)
        if not self.traits.atomic_rename:
            self._filesystem.pipe_file(target, data)
            return
        temporary = temporary_path(target)
        self._filesystem.pipe_file(temporary, data)
        self._swap_in(temporary, target)

    def write_pieces(self, path: str, pieces: Iterable[bytes]) -> None:
        target = self._full(path)
        with self._translated():
            self._make_parent(target)
        if not self.traits.atomic_rename:
            self._upload(target, pieces)
            return
        temporary = temporary_path(target)
        try:
            with self._translated():
                file = self._filesystem.open(temporary, "wb")
            try:
                self._fill(file, pieces)
            finally:
                with contextlib.suppress(OSError), self._translated():
                    file.close()
        except BaseException:
            # At an interrupt, too: nothing else would remove the temporary file.
            with contextlib.suppress(OSError), self._translated():
                self._filesystem.rm_file(temporary)
            raise
        with self._translated():
            self._swap_in(temporary, target)

    def _fill(self, file: Any, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            with self._translated():
                file.write(piece)
        with self._translated():
            file.close()

    def _upload(self, target: str, pieces: Iterable[bytes]) -> None:
        # Closing a file of an object store publishes it, also after an error, unless this is asked for separately.
        with self._translated():
            file = self._filesystem.open(target, "wb", autocommit=False)
        try:
            self._fill(file, pieces)
        except BaseException:
            try:
                with contextlib.suppress(OSError), self._translated():
                    file.discard()
            finally:
                # What is not closed is flushed when it is collected, which starts another upload that nothing ends.
                file.closed = True
            raise
        with self._translated():
            file.commit()

    def _swap_in(self, temporary: str, target: str) -> None:
        if self.traits.atomic_replace:
            # Where a rename refuses a target that exists, another call replaces it.
            getattr(self._filesystem, "replace", self._filesystem.mv)(temporary, target)
        else:
            swap_in(self._filesystem, temporary, target)

    def rename(self, source: str, target: str) -> None:
        old, new = self._settled(source), self._settled(target)
        with self._translated():
            # On an object store a rename is a copy, which would replace the target silently.
            if self._filesystem.exists(new):
                raise FileExistsError(new)
            self._make_parent(new)
            if self.traits.atomic_rename or not has_magic(old + new):
                move(self._filesystem, old, new)
                return
            # `mv` takes the names for patterns, which other objects match.
            self._filesystem.cp_file(old, new)
            self._filesystem.rm_file(old)

    def delete(self, path: str) -> None:
        target = self._settled(path)
        with self._translated():
            if self._filesystem.exists(target):
                self._filesystem.rm_file(target)

    def create(self, path: str, data: bytes) -> None:
        target = self._settled(path)
        with self._translated():
            self._make_parent(target)
            if self.traits.exclusive_create:
                self._filesystem.pipe_file(target, data, mode="create")
            elif self._filesystem.exists(target):
                raise FileExistsError(errno.EEXIST, "the file exists", target)
            else:
                self._write(target, data)

    def append(self, path: str, data: bytes, at: int) -> None:
        why = f"this store cannot extend a file: {len(data)} bytes behind the first {at}"
        raise OSError(errno.ENOTSUP, why, self._full(path))

    def rename_folder(self, source: str, target: str) -> None:
        raise OSError(
            errno.ENOTSUP, f"this store cannot rename a directory to {target} in one step", self._full(source)
        )

    def copy_from(self, source: ReadStore, folder: str, names: Iterable[str]) -> None:
        if isinstance(source, RemoteStore) and not self.traits.atomic_rename:
            self._copy_objects(source, folder, names)
        else:
            copy_pieces(source, self, folder, names)

    def _copy_objects(self, source: RemoteStore, folder: str, names: Iterable[str]) -> None:
        """An object store copies an object itself, atomically; other file systems do not."""
        if source._filesystem is not self._filesystem:
            copy_pieces(source, self, folder, names)
            return
        for path in (f"{folder}/{name}".lstrip("/") for name in names):
            with self._translated():
                self._filesystem.cp_file(source._full(path), self._full(path))

    def delete_tree(self, path: str = "") -> None:
        target = self._full(path)
        if not has_magic(target):
            with self._translated(), contextlib.suppress(FileNotFoundError):
                self._filesystem.rm(target, recursive=True)
            return
        # fsspec would take the path for a pattern, which may match other files.
        folders = tuple(self.folders(path.strip("/")))
        for folder in folders:
            for name in folder.files:
                self.delete(_join(folder.path, name))
        # Children before their parents: only an empty directory can be removed.
        for folder in sorted(folders, key=lambda one: one.path, reverse=True) if self.traits.atomic_rename else ():
            with self._translated(), contextlib.suppress(FileNotFoundError):
                self._filesystem.rmdir(self._full(folder.path))

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """Turns errors of a backend's libraries (no credentials, unknown host, expired token) into ``OSError``.

        Adds the store's location if the error has none.
        """
        try:
            with WAITS.waiting_for(self.location):
                yield
        except OSError as error:
            if error.filename is None and not isinstance(error, _ABSENT_OR_THERE):
                error.errno, error.strerror = error.errno or errno.EIO, error.strerror or str(error)
                error.filename = self.location
            raise
        except Exception as error:
            words = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise OSError(errno.EIO, words, self.location) from error

    def _settled(self, path: str) -> str:
        full = self._full(path)
        if not self.traits.atomic_replace:
            with self._translated():
                settle(self._filesystem, full)
        return full

    def _place_of(self, path: str) -> str:
        """The path of the content, which is next to the file's name while the file is being replaced."""
        full = self._full(path)
        if self.traits.atomic_replace or self._filesystem.exists(full):
            return full
        before = set_aside_path(full)
        return before if self._filesystem.exists(before) else full

    def _make_parent(self, target: str) -> None:
        if self.traits.atomic_rename:
            # Not on an object store, which has no directories: s3fs would create a bucket that is missing.
            self._filesystem.makedirs(target.rpartition("/")[0], exist_ok=True)

    def _full(self, path: str) -> str:
        if "\0" in path or ".." in path.split("/"):
            raise FileNotFoundError(path)
        return f"{self._root}/{path.strip('/')}" if path else self._root


def _ms(time: datetime | float) -> int:
    return round((time.timestamp() if isinstance(time, datetime) else time) * 1000)


def _last_parts(items: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    return tuple(item["name"].rstrip("/").rpartition("/")[2] for item in items)


def _join(directory: str, name: str) -> str:
    return f"{directory}/{name}" if directory else name


def _add_directory(path: str, files: dict[str, dict[str, int]], directories: dict[str, dict[str, None]]) -> None:
    if path in files:
        return
    parent, _, name = path.rpartition("/")
    _add_directory(parent, files, directories)
    directories[parent][name] = None
    files[path], directories[path] = {}, {}
