"""The cache of jars: only locked hashes are admitted, and checked again when a process uses a file.

Size and modification time prove nothing. Files are moved in atomically, under a lock between processes.
"""

import fcntl
import hashlib
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from pathlib import Path

from slackwater.connectors.machine import cache_folder, java_program, spark_jars_folder
from slackwater.core.errors import EnvironmentMissing, UsageError
from slackwater.core.units import counted

FILE_NAME = "locked.toml"
ANY_SPARK = "any"
"""Connectors that are the same for every Spark."""


@dataclass(frozen=True, slots=True)
class Jar:
    """A file of a Maven repository, with the only accepted hash."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def coordinate(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    @property
    def repository_path(self) -> str:
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.file_name}"


def known(spark_version: str) -> tuple[str, ...]:
    """Sorted names of the connectors locked for this Spark (``4.1`` or ``4.1.3``)."""
    return tuple(sorted(_connectors(spark_version)))


def jars_of(name: str, spark_version: str) -> tuple[Jar, ...]:
    """Raises UsageError for an unknown name, EnvironmentMissing for an unknown Spark."""
    connectors = _connectors(spark_version)
    if name in connectors:
        return connectors[name]
    if any(name in table for table in _locked().values()):
        raise EnvironmentMissing(
            "connector-not-locked",
            f"The jars of connector {name!r} are not locked for Spark {_minor(spark_version)}",
            expected=f"Spark {', '.join(minor for minor, table in _locked().items() if name in table)}",
            found=spark_version,
            hint="install a PySpark of an expected version, or provide the jars: set spark.jars or "
            "spark.jars.packages in slackwater.toml under [spark]",
        )
    raise UsageError(
        "connector-unknown",
        f"There is no connector named {name!r}",
        expected=f"one of {', '.join(known(spark_version))}",
        found=name,
        hint="for other jars, set spark.jars or spark.jars.packages in slackwater.toml under [spark]",
    )


def parse(text: str) -> Mapping[str, Mapping[str, tuple[Jar, ...]]]:
    """The jars by Spark's minor version (or ``any``) and connector."""
    return {
        minor: {name: tuple(_jar(*entry) for entry in entries) for name, entries in connectors.items()}
        for minor, connectors in tomllib.loads(text).items()
    }


def _jar(coordinate: str, sha256: str) -> Jar:
    group, artifact, version = coordinate.split(":")
    return Jar(group, artifact, version, sha256)


@cache
def _locked() -> Mapping[str, Mapping[str, tuple[Jar, ...]]]:
    return parse(resources.files("slackwater.connectors").joinpath(FILE_NAME).read_text(encoding="utf-8"))


def _connectors(spark_version: str) -> dict[str, tuple[Jar, ...]]:
    return {**_locked()[ANY_SPARK], **_locked().get(_minor(spark_version), {})}


def _minor(spark_version: str) -> str:
    return ".".join(spark_version.split(".")[:2])


Download = Callable[[Sequence[Jar], Path], str]
"""Puts jars into a folder, under their ``file_name``; returns the tool's output."""

DOWNLOAD_S_MAX = 900

# One resolver with Ivy's own default address, and no poms: the locked list is complete.
# Ivy checks the sha1 next to each file; the cache checks the locked sha256.
_IVY_SETTINGS = """<ivysettings>
  <settings defaultResolver="public"/>
  <caches defaultCacheDir={cache}/>
  <resolvers><ibiblio name="public" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""


def sha256_of(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def from_local_stores(jars: Sequence[Jar], folder: Path) -> str:
    """Copy earlier downloads of Maven or Ivy; a damaged file is passed over."""
    home = Path.home()
    for jar in jars:
        candidates = (
            home / ".m2/repository" / jar.repository_path,
            # Spark 4 keeps its Ivy cache in `~/.ivy2.5.2`, Spark 3.5 in `~/.ivy2`.
            home / ".ivy2.5.2/cache" / jar.group / jar.artifact / "jars" / jar.file_name,
            home / ".ivy2/cache" / jar.group / jar.artifact / "jars" / jar.file_name,
        )
        found = next((path for path in candidates if path.is_file() and sha256_of(path) == jar.sha256), None)
        if found:
            shutil.copyfile(found, folder / jar.file_name)
    return ""


def by_ivy(jars: Sequence[Jar], folder: Path) -> str:
    """Fetch all jars in a single JVM, by the user's ``~/.ivy2/ivysettings.xml``. Ivy copies jars when it has all. Until
    then its cache stays next to ``folder``, so that the next try continues.
    """
    work = folder / ".ivy"
    work.mkdir(exist_ok=True)
    module = work / "ivy.xml"
    module.write_text(_ivy_module(jars), encoding="utf-8")
    cache = folder.parent / ".ivy-cache"
    settings = Path.home() / ".ivy2" / "ivysettings.xml"
    if not settings.is_file():
        settings = work / "ivysettings.xml"
        settings.write_text(_IVY_SETTINGS.format(cache=_quoted(str(cache))), encoding="utf-8")
    output = _run(
        str(java_program()),
        "-cp",
        f"{spark_jars_folder()}/*",
        "org.apache.ivy.Main",
        *("-settings", str(settings), "-ivy", str(module), "-types", "jar"),
        *("-retrieve", f"{folder}/[artifact]-[revision].[ext]"),
    )
    if all((folder / jar.file_name).is_file() for jar in jars):
        # Also where one of them is a wrong file: it is fetched again.
        shutil.rmtree(cache, ignore_errors=True)
    return output


def by_maven(jars: Sequence[Jar], folder: Path) -> str:
    """Fetch with Maven and the user's ``~/.m2/settings.xml``; does nothing without ``mvn``."""
    program = shutil.which("mvn")
    if program is None:
        return ""
    messages = [
        _run(
            *(program, "--batch-mode", "--quiet", "dependency:copy"),
            *(f"-Dartifact={jar.coordinate}", f"-DoutputDirectory={folder}"),
        )
        for jar in jars
    ]
    return "\n".join(messages)


WAYS: tuple[Download, ...] = (from_local_stores, by_ivy, by_maven)
"""The cheapest first."""


def _ivy_module(jars: Sequence[Jar]) -> str:
    dependencies = "\n".join(
        f"    <dependency org={_quoted(jar.group)} name={_quoted(jar.artifact)} rev={_quoted(jar.version)}"
        f' transitive="false" conf="*->*"><artifact name={_quoted(jar.artifact)} type="jar" ext="jar"/></dependency>'
        for jar in jars
    )
    return (
        '<ivy-module version="2.0">\n  <info organisation="slackwater" module="connectors"/>\n'
        f"  <dependencies>\n{dependencies}\n  </dependencies>\n</ivy-module>\n"
    )


def _run(*command: str) -> str:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=DOWNLOAD_S_MAX,
            check=False,
            text=True,
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        return f"{Path(command[0]).name} did not end within {DOWNLOAD_S_MAX} s"
    return done.stdout


def _quoted(value: str) -> str:
    return f'"{escape(value)}"'


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
                    self._say(f"fetching {counted(len(missing), 'jar')} for {name}")
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
            more = f" and {len(missing) - NAMED_MAX} more" if len(missing) > NAMED_MAX else ""
            lines = [line.strip() for line in output.splitlines() if line.strip(" \t:-|")]
            raise EnvironmentMissing(
                "connector-unavailable",
                f"{counted(len(missing), 'jar')} of connector {name!r} could not be fetched",
                where=", ".join(jar.coordinate for jar in missing[:NAMED_MAX]) + more,
                found=" / ".join(lines[-2:]) or None,
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
