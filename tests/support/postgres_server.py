"""A PostgreSQL server of the tests' own, with a database for each test."""

from __future__ import annotations

import itertools

import psycopg

from slackwater.demo import postgres_server as demo


class PostgresServer(demo.PostgresServer):
    """One running server. Its databases are made by the tests."""

    _numbers = itertools.count(1)

    def new_database(self, template: str = "template1") -> str:
        """Make a database; its name."""
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return name

    def execute(self, statement: str) -> None:
        """Run a statement outside any of the tested databases."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())


postgres_server = PostgresServer.running
