"""A local directory as a store: listed by ``scandir``, written by temporary file, fsync and rename."""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from slackwater.storage.below import copy_pieces
from slackwater.storage.protocols import LEFTOVER, READ_LIMIT, Entry, FileTooLarge, Folder, ReadStore, StoreTraits

LOCAL = StoreTraits(
    remote=False, atomic_rename=True, atomic_replace=True, append=True, exclusive_create=True, moves_directories=True
)
"""The guarantees of directories on this machine."""
_PIECE = 1 << 14
_LARGE_PIECE = 1 << 20
# Hard links are not possible everywhere: FAT has none, Linux refuses them for files of other users
# (`fs.protected_hardlinks`), and none leads to another file system.
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV, errno.ENOSYS})


class LocalStore:
    """A ``WriteStore`` over a local directory, which need not exist.

    Lists hidden files and leftovers, too. New files and folders of a ``private`` store get modes 0600 and 0700; a
    replaced file keeps its owner, group and mode.
    """

    traits = LOCAL

    def __init__(self, root: str | os.PathLike[str], *, private: bool = False) -> None:
        self._private = private
        self.location = os.path.abspath(os.fspath(root))  # noqa: PTH100 - a Path would normalise nothing more

    def list(self, path: str = "") -> tuple[Entry, ...]:
        try:
            with os.scandir(self._full(path)) as entries:
                return tuple(Entry(entry.name, _is_folder(entry)) for entry in entries)
        except (FileNotFoundError, NotADirectoryError):
            return ()

    def folders(self, path: str = "") -> Iterator[Folder]:
        pending = [path.strip("/")]
        followed: set[str] = set()
        before: tuple[str, ...] = ()
        while pending:
            current = pending.pop()
            found = self._folder(current, before)
            if found is None:
                continue
            folder, links = found
            before = folder.files
            yield folder
            prefix = current + "/" if current else ""
            pending.extend(
                prefix + name
                for name in reversed(folder.directories)
                if name not in links or self._may_follow(prefix + name, followed)
            )

    def _may_follow(self, path: str, followed: set[str]) -> bool:
        """Return whether to follow a link to a directory: each target once and never upwards, as that would not end."""
        target = os.path.realpath(self._full(path))
        here = os.path.realpath(self._full(path.rpartition("/")[0]))
        if target in followed or f"{here}/".startswith(f"{target.rstrip('/')}/"):
            return False
        followed.add(target)
        return True

    def _folder(self, path: str, before: tuple[str, ...]) -> tuple[Folder, set[str]] | None:
        """The directory, and its directories that are links.

        Partitions have equal file names: sharing the names of ``before`` keeps the memory of one directory instead
        of thousands.
        """
        directories: list[os.DirEntry[str]] = []
        keep_directory = directories.append
        try:
            with os.scandir(self._full(path)) as entries:
                # No loop and no call of ours: over 60,000 names each costs a tenth of the whole walk.
                files = [entry.name for entry in entries if not entry.is_dir() or keep_directory(entry)]
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            # A link in a cycle is neither; the entries behind it were not read.
            with os.scandir(self._full(path)) as entries:
                found = list(entries)
            directories = [entry for entry in found if _is_folder(entry)]
            files = [entry.name for entry in found if not _is_folder(entry)]
        links = {entry.name for entry in directories if entry.is_symlink()}
        names = tuple(files)
        return Folder(path, tuple(entry.name for entry in directories), before if names == before else names), links

    def size(self, path: str) -> int:
        return os.stat(self._full(path)).st_size  # noqa: PTH116 - called for each of thousands of files

    def modified_ms(self, path: str) -> int:
        return Path(self._full(path)).stat().st_mtime_ns // 1_000_000

    def local_path(self, path: str) -> str:
        return self._full(path)

    def read(self, path: str, limit: int = READ_LIMIT) -> bytes:
        # A checkpoint is hundreds of tiny files: a buffered file object costs more than reading one of them. Opening a
        # named pipe would wait for its writer.
        full = self._full(path)
        try:
            descriptor = os.open(full, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except NotADirectoryError as error:
            # As in ``list``: below a file there is nothing.
            raise FileNotFoundError(error.errno, error.strerror, error.filename) from error
        try:
            status = os.fstat(descriptor)
            _require_regular(status.st_mode, full)
            size = status.st_size
            if size > limit:
                raise FileTooLarge(path, limit, size)
            # A file that did not grow is read by one call, which comes back short.
            pieces = [os.read(descriptor, size + 1)]
            total = len(pieces[0])
            if total == size > 0:
                return pieces[0]
            while pieces[-1]:
                pieces.append(os.read(descriptor, max(_PIECE, size - total)))
                total += len(pieces[-1])
                if total > limit:
                    raise FileTooLarge(path, limit, None)
            # The last piece is empty; without it a file that was read at once is not copied.
            return b"".join(pieces[:-1])
        finally:
            os.close(descriptor)

    def read_pieces(self, path: str) -> Iterator[bytes]:
        # As in ``read``: what is no regular file may never end, or never begin.
        full = self._full(path)
        descriptor = os.open(full, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            _require_regular(os.fstat(descriptor).st_mode, full)
            while piece := file.read(_LARGE_PIECE):
                yield piece

    def exists(self, path: str) -> bool:
        try:
            return os.path.exists(self._full(path))  # noqa: PTH110 - as above
        except FileNotFoundError:
            return False

    def written_ms(self) -> Iterator[tuple[str, int]]:
        for folder in self.folders():
            for name in folder.files:
                path = f"{folder.path}/{name}".lstrip("/")
                # Spark removes old files while it runs; newer ones are there then.
                with suppress(FileNotFoundError):
                    yield path, os.lstat(self._full(path)).st_mtime_ns // 1_000_000

    def write(self, path: str, data: bytes) -> None:
        self.write_pieces(path, (data,))

    def write_pieces(self, path: str, pieces: Iterable[bytes]) -> None:
        self._put(path, pieces, Path.replace)

    def create(self, path: str, data: bytes) -> None:
        self._put(path, (data,), _move_without_replacing)

    def _put(self, path: str, pieces: Iterable[bytes], move: Callable[[Path, Path], object]) -> None:
        import uuid  # noqa: PLC0415 - whoever only reads needs none

        target = Path(self._full(path))
        self._make_directories(target.parent)
        # Spark and this reader ignore the names of unfinished writes.
        temporary = target.with_name(f".{target.name}.{uuid.uuid4()}{LEFTOVER}")
        try:
            _write_through(temporary, pieces, like=target, private=self._private)
            move(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_directory(target.parent)

    def append(self, path: str, data: bytes, at: int) -> None:
        target = Path(self._full(path))
        self._make_directories(target.parent)
        mode = FILE_MODE if self._private else 0o666

        def opener(path: str, flags: int) -> int:
            # A link in place of the file would have what it names written to.
            return os.open(path, flags | os.O_NOFOLLOW, mode)

        with open(target, "r+b" if target.exists() else "x+b", opener=opener) as file:
            file.truncate(at)
            file.seek(at)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def copy_from(self, source: ReadStore, folder: str, names: Iterable[str]) -> None:
        """Hard links, or copies if links are impossible. Existing names are kept."""
        if not isinstance(source, LocalStore):
            copy_pieces(source, self, folder, names)
            return
        target = Path(self._full(folder))
        self._make_directories(target)
        for name in names:
            old, new = Path(source.local_path(f"{folder}/{name}")), target / name
            try:
                os.link(old, new, follow_symlinks=False)
            except FileExistsError:
                continue
            except OSError as error:
                if error.errno not in _NO_HARD_LINKS:
                    raise
                with old.open("rb") as file:
                    _write_through(new, iter(partial(file.read, _LARGE_PIECE), b""), like=old)
        sync_directory(target)

    def rename_folder(self, source: str, target: str) -> None:
        Path(self._full(source)).rename(self._full(target))

    def delete_tree(self, path: str = "") -> None:
        target = Path(self._full(path))
        if target.is_symlink() or target.is_file():
            target.unlink()
        elif target.exists():
            shutil.rmtree(target)

    def rename(self, source: str, target: str) -> None:
        old, new = Path(self._full(source)), Path(self._full(target))
        self._make_directories(new.parent)
        _move_without_replacing(old, new)
        # The new name is made durable first, so that a power failure cannot lose both names.
        sync_directory(new.parent)
        if old.parent != new.parent:
            sync_directory(old.parent)

    def delete(self, path: str) -> None:
        target = Path(self._full(path))
        if not os.path.lexists(target):
            return
        target.unlink(missing_ok=True)
        sync_directory(target.parent)

    def _make_directories(self, path: Path) -> None:
        """Create directories, each durably in its parent: a lost directory loses its files."""
        for folder in missing_folders(path):
            folder.mkdir(mode=FOLDER_MODE if self._private else 0o777, exist_ok=True)
            sync_directory(folder.parent)

    def _full(self, path: str) -> str:
        # Names can come from inside a damaged file; none of them may lead out of the root.
        if "\0" in path or ".." in path.split("/"):
            raise FileNotFoundError(errno.ENOENT, "not a path below the root of the store", path)
        return f"{self.location}/{path.strip('/')}" if path else self.location


def read_file(path: Path) -> bytes:
    """The content of a file. Raises ``OSError``, also for a pipe or device, which would never end."""
    return LocalStore(path.parent).read(path.name)


def exists(path: str | os.PathLike[str]) -> bool:
    try:
        Path(path).stat()
    except (OSError, ValueError):
        return False
    return True


def is_file(path: str | os.PathLike[str]) -> bool:
    return exists(path) and Path(path).is_file()


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether this is a folder. Follows links; a link in a cycle is a file."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _require_regular(mode: int, path: str) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode):
        raise OSError(errno.EINVAL, "not a regular file", path)


def keep_owner_and_mode(like: str | Path | None, target: str | Path | int | None) -> None:
    """Give a replacement the owner, group and mode of ``like``, as far as this user may.

    ``like`` need not exist; ``None``: its store has no owners.
    """
    if like is None or target is None:
        return
    with suppress(OSError):
        status = Path(like).stat()
        for user in (status.st_uid, -1):
            # Only root may give a file away; its group can be another one that this user is in.
            with suppress(OSError):
                os.chown(target, user, status.st_gid)
                break
        mode = stat.S_IMODE(status.st_mode)
        if isinstance(target, int):
            os.fchmod(target, mode)
        else:
            Path(target).chmod(mode)


def _write_through(path: Path, pieces: Iterable[bytes], *, like: Path, private: bool = False) -> None:
    with open(path, "xb", opener=private_opener if private else None) as file:
        keep_owner_and_mode(like, file.fileno())
        file.writelines(pieces)
        file.flush()
        os.fsync(file.fileno())


def _move_without_replacing(source: Path, target: Path) -> None:
    """Move a file by a hard link, which refuses an existing target atomically; ``rename`` would replace it."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, "the target exists", str(target)) from error
        source.rename(target)
        return
    source.unlink()


def sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


FILE_MODE = 0o600
FOLDER_MODE = 0o700


def create_private_file(path: Path) -> None:
    """Create a file with mode 0600; an existing file is left unchanged."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, FILE_MODE))
    except FileExistsError:
        return


def make_private_folders(path: Path) -> None:
    """Create a folder and its parents with mode 0700; existing folders are left unchanged."""
    for folder in missing_folders(path):
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)


def missing_folders(path: Path) -> list[Path]:
    """The missing folders, from the outermost inwards; not recursive."""
    missing: list[Path] = []
    while not path.is_dir() and path != path.parent:
        missing.append(path)
        path = path.parent
    return missing[::-1]


def private_opener(path: str, flags: int) -> int:
    """For ``open(..., opener=private_opener)``: new files get mode 0600."""
    return os.open(path, flags, FILE_MODE)
