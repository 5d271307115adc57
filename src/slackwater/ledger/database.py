"""One database behind the ledger: SQLite by default, PostgreSQL for teams. What differs between them is kept in here.

What may not happen: a driver's exception reaching a caller; a password in a message; a write transaction that begins as
a read and then finds the database locked.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, Table, create_engine, event, make_url, select
from sqlalchemy.exc import ArgumentError, DatabaseError, DBAPIError, IntegrityError, OperationalError
from sqlalchemy.sql import func

from slackwater.errors import DataError, EnvironmentMissing, NotFound, SettingsError

BUSY_TIMEOUT_S = 30
"""How long a SQLite writer waits for another one; the longest write here is one reconcile of a whole checkpoint."""

CONNECT_TIMEOUT_S = 10
_WRITES = "slackwater_writes"
_UNFLUSHED = "slackwater_unflushed"


def parse_url(url_or_path: str) -> URL:
    """A path is a SQLite file; ``postgresql://`` goes through psycopg 3."""
    if "://" not in url_or_path:
        return URL.create("sqlite", database=str(Path(url_or_path).expanduser().absolute()))
    try:
        url = make_url(url_or_path)
    except ArgumentError as error:
        raise _unusable(url_or_path.partition("://")[0]) from error
    backend = url.get_backend_name()
    if backend == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    if backend == "sqlite" and url.database:
        return url
    raise _unusable(backend)


def _unusable(scheme: str) -> SettingsError:
    return SettingsError(
        "ledger-url",
        "The ledger's address cannot be used",
        expected="a file path or postgresql://user@host/database",
        found=f"{scheme}://...",
        hint="set ledger in slackwater.toml to a path or a postgresql:// address",
    )


class Database:
    """Read and write transactions on one engine; usable from several threads and processes at once."""

    def __init__(self, url: URL) -> None:
        self.place = url.database or "" if url.get_backend_name() == "sqlite" else url.render_as_string()
        self.engine = _create_engine(url)
        self._writer = self.engine.execution_options(**{_WRITES: True})
        self._quick_writer = self._writer.execution_options(**{_UNFLUSHED: True})

    @property
    def is_sqlite(self) -> bool:
        """Whether this is SQLite: one writer at a time, one host."""
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one moment (SQLite) or only finished writes (PostgreSQL)."""
        with self.translated(), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that is done as a whole, or not at all."""
        with self.translated(), self._writer.begin() as connection:
            yield connection

    @contextmanager
    def write_unflushed(self) -> Iterator[Connection]:
        """The same without waiting for the disk: any kill leaves it there, a loss of power may take the last ones.

        For what a checkpoint holds as well; Spark does not flush its logs to a local disk either.
        """
        with self.translated(), self._quick_writer.begin() as connection:
            if not self.is_sqlite:
                connection.exec_driver_sql("SET LOCAL synchronous_commit = off")
            yield connection

    def now_ms(self) -> int:
        """The time all holders of leases agree on: the server's where there is one, because hosts' clocks differ."""
        if self.is_sqlite:
            return time.time_ns() // 1_000_000
        with self.read() as connection:
            moment: Any = connection.scalar(select(func.extract("epoch", func.clock_timestamp())))
        return int(moment * 1000)

    def close(self) -> None:
        """Give back every connection. A closed database opens new ones when it is used again."""
        self.engine.dispose()

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Foreign exceptions become ours, once, here."""
        try:
            yield
        except IntegrityError as error:
            raise NotFound(
                "generation-unknown",
                "The ledger has no such stream or generation",
                where=self.place,
                found=_cause(error),
            ) from error
        except OperationalError as error:
            raise self.unreachable(_cause(error)) from error
        except DatabaseError as error:
            raise DataError(
                "ledger-unreadable", "The ledger is not as Slackwater wrote it", where=self.place, found=_cause(error)
            ) from error

    def unreachable(self, cause: str) -> EnvironmentMissing:
        """The database cannot be reached or written; ``cause`` is the driver's own sentence."""
        needs = "the file and its folder are writable" if self.is_sqlite else "the PostgreSQL server runs"
        return EnvironmentMissing(
            "ledger-unreachable", "The ledger cannot be used", where=self.place, found=cause, hint=f"check that {needs}"
        )


def _cause(error: DBAPIError) -> str:
    return " ".join(str(error.orig).split())


def _create_engine(url: URL) -> Engine:
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url)
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    try:
        # A pre-ping replaces connections that died with the server they were made to.
        return create_engine(url, pool_pre_ping=True, connect_args={"connect_timeout": CONNECT_TIMEOUT_S})
    except ModuleNotFoundError as error:
        raise EnvironmentMissing(
            "extra-missing", "A PostgreSQL ledger needs psycopg", hint="pip install 'slackwater[postgres]'"
        ) from error


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # The module's own transaction control begins a transaction only at the first write: see _begin_sqlite.
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_S * 1000}")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin_sqlite(connection: Connection) -> None:
    # A deferred transaction that turns into a write fails when another writer came first; an immediate one waits.
    options = connection.get_execution_options()
    if not options.get(_WRITES):
        connection.exec_driver_sql("BEGIN DEFERRED")
        return
    level = "NORMAL" if options.get(_UNFLUSHED) else "FULL"
    connection.exec_driver_sql(f"PRAGMA synchronous = {level}")
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def upsert(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows of equal columns; a row whose primary key is there already takes the new values."""
    if not rows:
        return
    connection.execute(_upsert_statement(connection.dialect.name, table, tuple(rows[0])), rows)


@functools.cache
def _upsert_statement(dialect: str, table: Table, columns: tuple[str, ...]) -> Any:
    # Built once: for a batch of a running stream, building it takes as long as running it.
    statement = insert_for(dialect, table)
    keys = [column.name for column in table.primary_key]
    changed = {name: statement.excluded[name] for name in columns if name not in keys}
    return statement.on_conflict_do_update(index_elements=keys, set_=changed)


def insert_for(dialect: str, table: Table) -> Any:
    """The dialect's INSERT, which knows ON CONFLICT; both dialects spell it the same way."""
    if dialect == "sqlite":
        from sqlalchemy.dialects.sqlite import insert as sqlite_insert  # noqa: PLC0415 - only one of them is ever needed

        return sqlite_insert(table)
    from sqlalchemy.dialects.postgresql import insert as postgresql_insert  # noqa: PLC0415

    return postgresql_insert(table)
