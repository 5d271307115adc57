"""The cache of jars: only locked hashes are admitted, and checked again when a process uses a file.

Size and modification time prove nothing. Files are moved in atomically, under a lock between processes.
"""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from slackwater.connectors.download import WAYS, Download, sha256_of
from slackwater.connectors.locked import Jar, jars_of
from slackwater.connectors.machine import cache_folder
from slackwater.core.errors import EnvironmentMissing

Say = Callable[[str], None]
NAMED_MAX = 3

_verified: dict[Path, tuple[str, tuple[int, ...]]] = {}
"""Hashes of this process, with file attributes that would change with the file. Hashing 100 MB takes 0.1 s."""


def resolve(names: Iterable[str], spark_version: str, on_progress: Say | None = None) -> list[Path]:
    """The jars of these connectors, fetched if not cached.

    Each cached jar is hashed once in a process. Raises UsageError for an unknown name, EnvironmentMissing if a jar
    cannot be fetched.
    """
    wanted = {name: jars_of(name, spark_version) for name in names}
    cache = JarCache(default_folder(), say=on_progress)
    for name, jars in wanted.items():
        cache.complete(name, jars)
    # Two connectors may share a jar.
    return list(dict.fromkeys(cache.path(jar) for jars in wanted.values() for jar in jars))


def default_folder() -> Path:
    return cache_folder() / "jars"


class JarCache:
    """Jars in a folder, in Maven's layout."""

    def __init__(self, folder: Path, *, ways: Sequence[Download] = WAYS, say: Say | None = None) -> None:
        self._folder = folder
        self._ways = ways
        self._say: Say = say or (lambda _: None)

    def path(self, jar: Jar) -> Path:
        return self._folder / jar.repository_path

    def has(self, jar: Jar) -> bool:
        path = self.path(jar)
        try:
            # Taken before the file is hashed: what changes it meanwhile changes its identity, too.
            before = _identity(path)
            known = _verified.get(path)
            if known is None or known[1] != before:
                known = _verified[path] = (sha256_of(path), before)
        except (FileNotFoundError, IsADirectoryError):
            return False
        return known[0] == jar.sha256

    def complete(self, name: str, jars: Sequence[Jar]) -> None:
        """Fetch missing jars. Raises EnvironmentMissing; a wrong file is never kept."""
        if all(self.has(jar) for jar in jars):
            return
        with self._only_one_fetching():
            # Another process may have fetched them while this one waited for the lock.
            missing = [jar for jar in jars if not self.has(jar)]
            for path in filter(Path.exists, map(self.path, missing)):
                self._say(f"{path} does not have the locked hash; fetching it again")
            if missing:
                self._fetch(name, missing)

    def _fetch(self, name: str, jars: Sequence[Jar]) -> None:
        # In the cache itself: a rename within one file system shows a jar only when it is complete.
        with tempfile.TemporaryDirectory(prefix=".fetching-", dir=self._folder) as staging:
            output, wrong = "", dict[Jar, str]()
            problem: EnvironmentMissing | None = None
            for number, way in enumerate(self._ways):
                missing = [jar for jar in jars if not self.has(jar)]
                if not missing:
                    break
                if number == 1:
                    # The first way only copies from this machine's own stores.
                    self._say(f"fetching {_count(missing)} for {name}")
                try:
                    output = way(missing, Path(staging)) or output
                except EnvironmentMissing as error:
                    # Without Java or PySpark there may still be Maven.
                    problem = error
                wrong |= self._admit(missing, Path(staging))
        if problem is not None and not output and not all(self.has(jar) for jar in jars):
            raise problem
        self._refuse_unless_complete(name, jars, wrong, output)

    def _admit(self, jars: Sequence[Jar], staging: Path) -> dict[Jar, str]:
        wrong = {}
        for jar in jars:
            arrived = staging / jar.file_name
            if not arrived.is_file():
                continue
            found = sha256_of(arrived)
            if found != jar.sha256:
                wrong[jar] = found
                arrived.unlink()
                continue
            target = self.path(jar)
            target.parent.mkdir(parents=True, exist_ok=True)
            arrived.replace(target)
        return wrong

    def _refuse_unless_complete(self, name: str, jars: Sequence[Jar], wrong: dict[Jar, str], output: str) -> None:
        missing = [jar for jar in jars if not self.has(jar)]
        altered = next((jar for jar in missing if jar in wrong), None)
        if altered:
            raise EnvironmentMissing(
                "connector-hash-mismatch",
                f"A jar that was fetched for connector {name!r} does not have the locked hash and was not kept",
                where=altered.coordinate,
                expected=f"sha256 {altered.sha256}",
                found=f"sha256 {wrong[altered]}",
                hint="check the Maven repository or mirror that this machine uses: it serves a different file",
            )
        if missing:
            raise EnvironmentMissing(
                "connector-unavailable",
                f"{_count(missing)} of connector {name!r} could not be fetched",
                where=_some(missing),
                found=_last_lines(output),
                hint=f"run again with network access, or copy the files into {self.path(missing[0]).parent}",
            )

    @contextmanager
    def _only_one_fetching(self) -> Iterator[None]:
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / ".lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._say("waiting for another process that is fetching jars")
                fcntl.flock(lock, fcntl.LOCK_EX)
            # Left by a process that was killed: only the holder of the lock has such a folder.
            for abandoned in self._folder.glob(".fetching-*"):
                shutil.rmtree(abandoned)
            yield


def _identity(path: Path) -> tuple[int, ...]:
    status = path.stat()
    # The change time is set by the kernel alone, unlike the size and the modification time.
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _count(jars: Sequence[Jar]) -> str:
    return f"{len(jars)} jar{'s' if len(jars) != 1 else ''}"


def _some(jars: Sequence[Jar]) -> str:
    named = ", ".join(jar.coordinate for jar in jars[:NAMED_MAX])
    return named if len(jars) <= NAMED_MAX else f"{named} and {len(jars) - NAMED_MAX} more"


def _last_lines(output: str) -> str | None:
    lines = [line.strip() for line in output.splitlines() if line.strip(" \t:-|")]
    return " / ".join(lines[-2:]) or None
