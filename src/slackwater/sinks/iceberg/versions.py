"""The versions of an Iceberg table in a directory, as ``HadoopTableOperations`` of Iceberg keeps them.

Each version is a file ``metadata/vN.metadata.json`` that is renamed into place and never replaced; the highest number
counts. ``version-hint.text`` saves readers the listing and may be absent (specification, section "File System Tables").
"""

from __future__ import annotations

import gzip
import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from slackwater.errors import FormatError
from slackwater.sinks.iceberg.metadata import Metadata, parse
from slackwater.storage.protocols import LEFTOVER, WriteStore

FOLDER = "metadata"
HINT = "version-hint.text"
_VERSION = re.compile(r"v(\d+)((?:\.gz)?\.metadata\.json(?:\.gz)?)")


@dataclass(frozen=True, slots=True)
class Version:
    """The number of a version and how the name of its file ends."""

    number: int
    ending: str

    @property
    def path(self) -> str:
        """The path of its file, relative to the table."""
        return f"{FOLDER}/v{self.number}{self.ending}"


class Versions:
    """The versions of one table."""

    def __init__(self, store: WriteStore) -> None:
        self._store = store

    def newest(self) -> Version | None:
        """The newest version, ``None`` where there is no table."""
        names = (_VERSION.fullmatch(entry.name) for entry in self._store.list(FOLDER))
        found = [Version(int(match[1]), match[2]) for match in names if match]
        return max(found, key=lambda version: version.number, default=None)

    def read(self, version: Version) -> Metadata:
        """The metadata of one version. Raises FormatError, FileNotFoundError."""
        return self._read(version.path)

    def older(self, newest: Metadata) -> Iterator[Metadata]:
        """Older metadata as far as it is kept, the newest first. Raises FormatError."""
        for file in newest.log:
            try:
                yield self._read(f"{FOLDER}/{file.rpartition('/')[2]}")
            except FileNotFoundError:
                continue  # write.metadata.delete-after-commit.enabled deletes them.

    def commit(self, base: Version, fields: dict[str, Any]) -> None:
        """Add the version after ``base``. Raises FileExistsError where another writer has added it."""
        following = Version(base.number + 1, base.ending)
        data = json.dumps(fields).encode()
        temporary = f"{FOLDER}/.{uuid.uuid4()}{LEFTOVER}"
        self._store.write(temporary, gzip.compress(data) if ".gz" in following.ending else data)
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
        """Iceberg refuses to commit while the hint names another version than the newest; without one it lists."""
        self._store.delete(f"{FOLDER}/.{HINT}.crc")
        self._store.delete(f"{FOLDER}/{HINT}")

    def _read(self, path: str) -> Metadata:
        data = self._store.read(path)
        try:
            return parse(gzip.decompress(data) if ".gz" in path else data)
        except FormatError as error:
            error.where = path
            raise
        except (OSError, EOFError) as error:
            raise FormatError(
                "iceberg-metadata", "The metadata of an Iceberg table is malformed", where=path, found=str(error)
            ) from error
