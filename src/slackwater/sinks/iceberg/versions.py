"""Versions of an Iceberg table in a directory, as in ``HadoopTableOperations``.

Each is ``metadata/vN.metadata.json``, renamed into place and never replaced; the highest counts. ``version-hint.text``
only saves a listing (specification, section "File System Tables").
"""

from __future__ import annotations

import gzip
import json
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from slackwater.core.errors import EnvironmentMissing, Refused
from slackwater.sinks.common.changes import check_writable
from slackwater.sinks.iceberg.metadata import Metadata, MetadataChange, parse
from slackwater.storage.protocols import LEFTOVER, WriteStore

if TYPE_CHECKING:
    from slackwater.sinks.iceberg.commits import Manifests

FOLDER = "metadata"
HINT = "version-hint.text"
_VERSION = re.compile(r"v(\d+)((?:\.gz)?\.metadata\.json(?:\.gz)?)")


@dataclass(frozen=True, slots=True)
class Version:
    number: int
    ending: str

    @property
    def path(self) -> str:
        return f"{FOLDER}/v{self.number}{self.ending}"


def version_of(path: str) -> Version:
    match = _VERSION.fullmatch(path.rpartition("/")[2])
    if match is None:
        raise ValueError(path)
    return Version(int(match[1]), match[2])


class MetadataVersions:
    def __init__(self, store: WriteStore) -> None:
        self._store = store

    def newest(self) -> Version | None:
        names = (_VERSION.fullmatch(entry.name) for entry in self._store.list(FOLDER))
        found = [Version(int(match[1]), match[2]) for match in names if match]
        return max(found, key=lambda version: version.number, default=None)

    def read(self, version: Version) -> Metadata:
        return self._read(version.path)

    def older(self, newest: Metadata) -> Iterator[Metadata]:
        for file in newest.log:
            try:
                yield self._read(f"{FOLDER}/{file.rpartition('/')[2]}")
            except FileNotFoundError:
                continue  # write.metadata.delete-after-commit.enabled deletes them.

    def commit(self, base: Version, fields: dict[str, Any]) -> None:
        following = Version(base.number + 1, base.ending)
        data = json.dumps(fields).encode()
        temporary = f"{FOLDER}/.{uuid.uuid4()}{LEFTOVER}"
        self._store.write(temporary, gzip.compress(data) if ".gz" in following.ending else data)
        # Before the rename: a kill between the two leaves no hint, which readers do without, in place of an old one.
        self._drop_hint()
        try:
            self._store.rename(temporary, following.path)
        except FileExistsError:
            self._store.delete(temporary)
            raise
        self._store.write(f"{FOLDER}/{HINT}", str(following.number).encode())
        if self.newest() != following:
            # Another writer has committed meanwhile: its hint was perhaps replaced just now.
            self._drop_hint()

    def _drop_hint(self) -> None:
        """Remove the hint: Iceberg refuses commits while it is not the newest version, and lists without it."""
        # Hadoop's ChecksumFileSystem refuses to read a hint next to the checksum file of an older one.
        self._store.delete(f"{FOLDER}/.{HINT}.crc")
        self._store.delete(f"{FOLDER}/{HINT}")

    def _read(self, path: str) -> Metadata:
        return parse(self._store.read(path), path)


class IcebergTable(ABC):
    """Keeps a table's newest version; only one writer can add the next."""

    @abstractmethod
    def newest(self) -> Metadata | None:
        """The newest version, ``None`` without a table. Raises FormatError, OSError or SinkUnreadable."""

    @abstractmethod
    def older(self, newest: Metadata) -> Iterator[Metadata]:
        """The older versions, newest first, as far as kept. Raises FormatError."""

    @abstractmethod
    def commit(self, base: Metadata, change: MetadataChange) -> None:
        """Add a version. Raises FileExistsError if a different writer was faster."""

    @abstractmethod
    def lack(self, base: Metadata) -> tuple[str, str] | None:
        """The reason why no commit is possible, or ``None``."""

    @abstractmethod
    def check_writable(self) -> None:
        """Raises Refused unless this user may commit, as far as known."""

    @abstractmethod
    def manifests(self, newest: Metadata) -> Manifests:
        """A reader of manifests. Raises EnvironmentMissing without pyiceberg."""

    @abstractmethod
    def size(self, newest: Metadata, name: str) -> int:
        """The size in bytes; ``name`` is relative to the table. Raises OSError."""


class DirectoryTable(IcebergTable):
    def __init__(self, store: WriteStore) -> None:
        self._store = store
        self._versions = MetadataVersions(store)

    def newest(self) -> Metadata | None:
        version = self._versions.newest()
        return None if version is None else self._versions.read(version)

    def older(self, newest: Metadata) -> Iterator[Metadata]:
        return self._versions.older(newest)

    def commit(self, base: Metadata, change: MetadataChange) -> None:
        self._versions.commit(version_of(base.file), _commits().following(base, change, self._store))

    def lack(self, base: Metadata) -> tuple[str, str] | None:
        if not self._store.traits.atomic_rename:
            return "a store with a rename in one step", "one without"
        try:
            _commits().known_by_library(base)
        except Refused as error:
            return error.expected or "", error.found or ""
        return None

    def check_writable(self) -> None:
        check_writable(self._store, FOLDER)

    def manifests(self, newest: Metadata) -> Manifests:
        require_library()
        from slackwater.sinks.iceberg.commits import Manifests, StoreIO  # noqa: PLC0415 - needs pyiceberg

        return Manifests(StoreIO(self._store, newest.location), newest)

    def size(self, newest: Metadata, name: str) -> int:
        del newest
        return self._store.size(name)


def _commits() -> Any:
    require_library()
    from slackwater.sinks.iceberg import commits  # noqa: PLC0415 - needs pyiceberg

    return commits


def require_library() -> None:
    if find_spec("pyiceberg") is None:
        raise EnvironmentMissing(
            "extra-missing",
            "Reading the manifests of an Iceberg table and committing to it need the pyiceberg library",
            hint="pip install pyiceberg",
        )
