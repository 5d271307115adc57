"""The user's output directory, and an output's owner: in its JSON file, or in a mark with the newest batch.

``epoch`` is the lease's fence number: a higher epoch refuses a run that was believed to have ended.
"""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

from slackwater.core.checkpoint import NONE_YET, Damage
from slackwater.core.errors import PipelineError, Refused, SinkUnreadable
from slackwater.core.masking import mask
from slackwater.core.sink import Cut, Delivery, Identity, Owner, Traits, WriteContext
from slackwater.sinks.common.contract import LogEntries, OpaqueOutput, Output, uncuttable
from slackwater.sinks.common.problem import malformed_identity
from slackwater.storage.open import check_location, is_uri, local_file_of, open_write_store, resolved
from slackwater.storage.protocols import WriteStore

PUBLISHED_WITH_MARKER = "a batch is published in one transaction with its id in the marker table"


class Mark(NamedTuple):
    """``batch_id`` is -1 before the first batch."""

    stream_id: str
    stream: str
    home: str
    epoch: int
    batch_id: int

    @property
    def owner(self) -> Owner | None:
        return Owner(self.stream_id, self.stream, self.home) if self.stream_id else None


def marked_traits(reason: str, *, cuts: bool = False, swaps: bool = False) -> Traits:
    """Exactly-once traits of a sink with a mark in each batch; ``reason`` explains them."""
    return Traits(
        Delivery("exactly-once", reason),
        reports_last_batch=True,
        skips_known_batches=True,
        cuts=cuts,
        swaps=swaps,
        reads_known_batches=True,
        combines=True,
    )


def owned(
    mark: Mark | Owner | None, where: str, *, stream: str, home: str | None, hint: str, missing: str = "nobody"
) -> Refused:
    """The error for a different stream's output; ``missing`` describes an output without a mark."""
    return Refused(
        "sink-owned",
        f"Another stream writes to the output of stream {stream}: it would skip batches of this stream",
        where=where,
        expected=f"stream {stream}" + (f" of home {home}" if home else ""),
        found=f"stream {mark.stream} of home {mark.home}" if mark else missing,
        hint=hint,
    )


def fenced(epoch: int, where: str, context: WriteContext, remedy: str) -> Refused:
    """The error for a run that a later run of ``epoch`` has replaced; ``remedy`` sets the epoch back to 0."""
    return Refused(
        "sink-fenced",
        f"A later run of stream {context.stream} has taken over its output: this run may no longer write",
        where=where,
        expected=f"epoch {epoch} or later",
        found=f"epoch {context.epoch}",
        hint=f"stop this run; if no other run exists and the ledger was lost, {remedy}",
    )


class MarkerTarget(ABC):
    @abstractmethod
    def mark(self) -> Mark | None:
        """Raises SinkUnreadable."""

    @abstractmethod
    def claim(self, owner: Owner) -> None: ...

    def last_written(self) -> int:
        """The newest batch, -1 for none."""
        mark = self.mark()
        return NONE_YET if mark is None else mark.batch_id

    def owner(self) -> Owner | None:
        mark = self.mark()
        return None if mark is None else mark.owner


Target = TypeVar("Target", bound=MarkerTarget)


class AppendOnlyOutput(OpaqueOutput, Generic[Target]):
    """An output that only grows; ``uncuttable`` is the reason why no batch can be removed."""

    def __init__(
        self, kind: str, traits: Traits, location: str, open_target: Callable[[], Target], uncuttable: str
    ) -> None:
        super().__init__(kind, traits, location)
        self._open_target = open_target
        self._uncuttable = uncuttable

    @cached_property
    def target(self) -> Target:
        """The marker's target, opened on demand: its client may be an extra."""
        return self._open_target()

    def last_written(self) -> int:
        return self.target.last_written()

    def owner(self) -> Owner | None:
        return self.target.owner()

    def claim(self, owner: Owner) -> None:
        self.target.claim(owner)

    def cut_after(self, batch: int, _recorded: LogEntries) -> Cut:
        if batch < self.last_written():
            raise self._refusal()
        return Cut(batch, ())

    def cut(self, cut: Cut, _recorded: LogEntries, _backup: WriteStore) -> None:
        if cut.batches:
            raise self._refusal()

    def restore(self, cut: Cut, _backup: WriteStore) -> None:
        if cut.batches:
            raise self._refusal()

    def _refusal(self) -> Refused:
        return uncuttable(self.location, self._uncuttable)


OWNER_FILE = "_slackwater.json"
"""Spark, pandas and pyarrow ignore names that start with an underscore."""


def read_owner(store: WriteStore) -> Owner | None:
    try:
        data = store.read(OWNER_FILE)
    except FileNotFoundError:
        return None
    return parse_owner(data, f"{store.location}/{OWNER_FILE}", OWNER_FILE)


def parse_owner(data: bytes | str, where: str, name: str) -> Owner:
    try:
        fields = json.loads(data)
        return Owner(**{name: _string(fields[name]) for name in ("stream_id", "stream", "home")})
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SinkUnreadable(
            "sink-owner-unreadable",
            "The record of which stream owns the output is malformed",
            where=where,
            expected='{"stream_id": ..., "stream": ..., "home": ...}',
            found=repr(data[:80]),
            hint=f"restore {name} from a backup, or remove it if only this stream writes to the output",
        ) from error


def claim(store: WriteStore, owner: Owner) -> None:
    known = read_owner(store)
    if known is None:
        # A different process may be faster.
        with suppress(FileExistsError):
            store.create(OWNER_FILE, _render(owner))
        known = read_owner(store) or owner
    check_claim(known, owner, store.location)
    # The same stream under another name, or in a home that was moved.
    if known != owner:
        store.write(OWNER_FILE, _render(owner))


def release(store: WriteStore, stream_id: str) -> None:
    known = read_owner(store)
    if known is not None and known.stream_id == stream_id:
        store.delete(OWNER_FILE)


def check_claim(known: Owner, owner: Owner, where: str) -> None:
    if known.stream_id != owner.stream_id:
        hint = "give the stream an output directory of its own"
        raise owned(known, where, stream=owner.stream, home=owner.home, hint=hint)


def _render(owner: Owner) -> bytes:
    return (json.dumps(asdict(owner), indent=2, ensure_ascii=False) + "\n").encode()


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(type(value).__name__)
    return value


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
        local = local_file_of(uri)
        if local is None:
            parts = urlsplit(uri)
            path = resolved(f"{parts.scheme}://{parts.netloc}{unquote(parts.path)}")
        else:
            folder, _, name = local.rpartition("/")
            if folder not in self._folders:
                self._folders[folder] = os.path.realpath(folder).rstrip("/")
            path = f"{self._folders[folder]}/{name}"
        name = path.removeprefix(self.location.rstrip("/") + "/")
        return None if name == path or any(part in {"", ".", ".."} for part in name.split("/")) else name


def directory(path: object, example: str) -> str:
    """The output directory; ``example`` is for the hint. Raises PipelineError."""
    found = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(found, str) or not found.strip() or found[0] == "~" or not _is_location(found):
        raise PipelineError(
            "sink-path",
            "The sink cannot write to this output directory",
            expected="a path or URI as a string or pathlib.Path, without ~",
            found=repr(path),
            hint=f'for example {example}; pathlib.Path("~/out").expanduser() expands ~',
        )
    # Hadoop decodes no URI: file:///a%20b is the folder "a%20b" for Spark and "a b" for everything else.
    reserved = " and ".join(character for character in "%?#" if character in found) if is_uri(found) else ""
    if reserved:
        raise PipelineError(
            "sink-path",
            f"A URI with {reserved} means one output directory for Spark and a different directory for other programs",
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


def path_of(kind: str, identity: Identity) -> str:
    path = identity.get("path")
    if not path:
        raise malformed_identity(identity, "has no path", f'{{"kind": "{kind}", "path": ...}}')
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
