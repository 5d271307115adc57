"""A PostgreSQL server of the tests' own, with a database for each test."""

import itertools
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import psycopg

from examples.demo import postgres_server as demo
from slackwater.core.errors import EnvironmentMissing

RESTART_S = 60


class PostgresServer(demo.PostgresServer):
    _numbers = itertools.count(1)

    @classmethod
    @contextmanager
    def running(cls, *, tcp: bool = False) -> Iterator[Self]:
        """A server that runs within the block. Its many files are removed in the background: it takes long."""
        with super().running(tcp=tcp) as server:
            yield server
            server.stop()
            removed = server._folder.rename(server._folder.with_name(f"{server._folder.name}-removed"))
            subprocess.run(["sh", "-c", 'rm -rf -- "$1" &', "sh", removed], check=True)

    def new_database(self, template: str = "template1") -> str:
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return name

    def execute(self, statement: str) -> None:
        """Run a statement outside any of the tested databases."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())

    def crash(self) -> None:
        """Kill the server and start it again: its recovery empties unlogged tables."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        deadline = time.monotonic() + RESTART_S
        while True:
            try:
                self.start()
            except EnvironmentMissing:
                # Its other processes hold the shared memory until they notice that it has exited.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                return


postgres_server = PostgresServer.running
