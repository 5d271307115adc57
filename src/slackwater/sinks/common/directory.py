"""The user's output directory: valid names, and their form for Spark."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from urllib.parse import unquote, urlsplit

from slackwater.core.checkpoint import Damage
from slackwater.core.errors import PipelineError, SinkUnreadable
from slackwater.core.masking import mask
from slackwater.core.sink import Owner
from slackwater.sinks.common.contract import Output
from slackwater.sinks.common.owner import claim, read_owner, release
from slackwater.storage.open import check_location, is_uri, local_file_of, open_write_store, resolved
from slackwater.storage.protocols import WriteStore


class OutputPlace:
    """An output directory, symlinks and ``..`` resolved once: a log can name a million files."""

    def __init__(self, path: str) -> None:
        self.location = resolved(path)
        self._folders: dict[str, str] = {}

    def relative_path(self, uri: str) -> str | None:
        """The path below the directory of a file in Spark's log, or ``None``.

        Logs hold absolute, percent-encoded URIs.
        """
        if not is_uri(uri):
            return None
        path = self._resolved_file(uri)
        name = path.removeprefix(self.location.rstrip("/") + "/")
        return None if name == path or any(part in {"", ".", ".."} for part in name.split("/")) else name

    def _resolved_file(self, uri: str) -> str:
        local = local_file_of(uri)
        if local is None:
            parts = urlsplit(uri)
            return resolved(f"{parts.scheme}://{parts.netloc}{unquote(parts.path)}")
        folder, _, name = local.rpartition("/")
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder).rstrip("/")
        return f"{self._folders[folder]}/{name}"


def directory(path: object, example: str) -> str:
    """The output directory; ``example`` is for the hint. Raises PipelineError."""
    found = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(found, str) or not found.strip() or found[0] == "~" or not _is_location(found):
        raise PipelineError(
            "sink-path",
            "The sink cannot write to this output directory",
            expected="a path or URI as a string or pathlib.Path, without ~",
            found=repr(path),
            hint=f'such as {example}; pathlib.Path("~/out").expanduser() expands ~',
        )
    # Hadoop decodes no URI: file:///a%20b is the folder "a%20b" for Spark and "a b" for everything else.
    reserved = " and ".join(character for character in "%?#" if character in found) if is_uri(found) else ""
    if reserved:
        raise PipelineError(
            "sink-path",
            f"A URI with {reserved} names one output directory for Spark and another for other programs",
            expected=f"a plain path, or a URI without {reserved}",
            found=repr(found),
            hint="give a plain path, in which these characters have no special meaning",
        )
    if is_uri(found) and mask(found) == found:
        # One with a password in it is refused with the stream's name, when that is known.
        check_location(found)
    return found


def absolute(path: str) -> str:
    if is_uri(path):
        return path
    # abspath and not resolve: symlinks stay as the user wrote them, because Spark is given this path.
    return os.path.abspath(path)  # noqa: PTH100 - as above


def _is_location(path: str) -> bool:
    """Return whether Java accepts the path: no NUL, no lone surrogate, no malformed URI."""
    try:
        urlsplit(path)
        path.encode()
    except ValueError:
        return False
    return "\0" not in path


class DirectoryOutput(Output):
    """An output in a directory. ``path`` is for Spark; the store is opened on demand."""

    def __init__(self, path: str) -> None:
        self._path = path

    @property
    def location(self) -> str:
        return self._place.location

    @cached_property
    def _place(self) -> OutputPlace:
        return OutputPlace(self._path)

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
    try:
        found = size(path)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        kind, shown = ("missing", "no file") if missing else ("unreadable", str(error))
        yield Damage(path, kind, f"{recorded} bytes", shown)
    else:
        if found != recorded:
            yield Damage(path, "torn", f"{recorded} bytes", f"{found} bytes")
