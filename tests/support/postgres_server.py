"""A PostgreSQL server of our own: its data in a temporary folder, reached by a unix socket, ended by its pid."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

_START_S = 30
_STOP_S = 30
_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "60"}
"""What is tested is what we write, not that the server survives a loss of power."""


class PostgresServer:
    """One running server. Its databases are made and dropped by the tests."""

    def __init__(self, folder: Path, *, tcp: bool = False) -> None:
        self._folder = folder
        self._port = _free_port() if tcp else None
        self._account = _account()
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)

    def initialise(self) -> None:
        """Lay down an empty data folder."""
        if "user" in self._account:
            shutil.chown(self._folder, self._account["user"])
        command = [_program("initdb"), "-D", str(self._data), "-U", "slackwater", "-A", "trust", "-E", "UTF8", "-N"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/", **self._account)

    def start(self) -> None:
        """Start it and wait until it answers."""
        settings = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
        command = [_program("postgres"), "-D", str(self._data), "-k", str(self._folder), *self._listening, *settings]
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", **self._account)
        deadline = time.monotonic() + _START_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start: {(self._folder / 'server.log').read_text()[-2000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Break off all connections and end it."""
        if self._process is not None:
            # "Fast shutdown": SIGTERM would wait for clients to leave.
            self._process.send_signal(signal.SIGINT)
            self._process.wait(_STOP_S)
            self._process = None

    def new_database(self, template: str = "template1") -> str:
        """Make a database; its name."""
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return name

    def url(self, database: str) -> str:
        """The address of a database."""
        if self._port is not None:
            return f"postgresql://slackwater@127.0.0.1:{self._port}/{database}"
        return f"postgresql://slackwater@/{database}?host={self._folder}"

    def execute(self, statement: str) -> None:
        """Run a statement outside any of the tested databases."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())

    @property
    def _listening(self) -> list[str]:
        return ["-h", ""] if self._port is None else ["-h", "127.0.0.1", "-p", str(self._port)]

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url("postgres"), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True


@contextmanager
def postgres_server(*, tcp: bool = False) -> Iterator[PostgresServer]:
    """A server that runs within the block; ``tcp`` for clients that know no sockets of Unix, such as Java's."""
    # Not below pytest's own folder: only its owner may enter that one.
    folder = Path(tempfile.mkdtemp(prefix="slackwater-postgres-"))
    server = PostgresServer(folder, tcp=tcp)
    try:
        server.initialise()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _account() -> dict[str, Any]:
    """The server refuses to run as root: then it runs as Debian's account for it, or as nobody."""
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name for entry in pwd.getpwall()}
    return {"user": "postgres" if "postgres" in names else "nobody", "extra_groups": []}


def _program(name: str) -> str:
    # Debian keeps the server's programs off PATH.
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda place: place.parent.name, reverse=True)
    found = shutil.which(name) or next((str(place / name) for place in places if (place / name).exists()), None)
    if found is None:
        raise RuntimeError(f"{name} is missing: scripts/setup --dev installs Debian's package postgresql as root")
    return found
