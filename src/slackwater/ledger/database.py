"""One database behind the ledger: SQLite by default, PostgreSQL for teams. Only this module and ``sqlite`` know which.

What may not happen: a driver's exception reaching a caller; a password in a message; a write transaction that starts as
a read and then finds the database locked.
"""

from __future__ import annotations

import functools
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, Table, create_engine, make_url, select, text
from sqlalchemy.exc import ArgumentError, DatabaseError, DBAPIError, IntegrityError, OperationalError
from sqlalchemy.sql import func

from slackwater.errors import DataError, EnvironmentMissing, NotFound, SettingsError
from slackwater.ledger.sqlite import UNFLUSHED, WRITES, Say, SqliteFile
from slackwater.masking import mask

CONNECT_TIMEOUT_S = 10
_NO_PRIVILEGE = ("42501", "25006")
"""PostgreSQL's codes for a missing privilege and for a write in a read-only transaction."""


def parse_url(url_or_path: str) -> URL:
    """A path is a SQLite file; ``postgresql://`` goes through psycopg 3. Raises SettingsError (``ledger-url``)."""
    if "://" not in url_or_path:
        return URL.create("sqlite", database=str(Path(url_or_path).expanduser().absolute()))
    scheme = url_or_path.partition("://")[0]
    try:
        url = make_url(url_or_path)
    except (ArgumentError, ValueError):
        # Not chained: the exception quotes a part of the address, which may be the password.
        raise _unusable(scheme) from None
    backend = url.get_backend_name()
    if backend == "postgresql":
        if "@" in (url.host or ""):
            # An unescaped @ in the password: its second half would be looked up, and reported, as a host.
            raise _unusable(scheme, "an @ in the host; write an @ in a password as %40")
        return url.set(drivername="postgresql+psycopg")
    if backend == "sqlite" and url.database:
        return url
    raise _unusable(backend)


def _unusable(scheme: str, detail: str | None = None) -> SettingsError:
    return SettingsError(
        "ledger-url",
        "The ledger's address cannot be used",
        expected="a file path or postgresql://user@host/database",
        found=f"{scheme}://..." + (f" with {detail}" if detail else ""),
        hint="set ledger in slackwater.toml to a path or a postgresql:// address",
    )


class Database:
    """Read and write transactions on one engine; usable from several threads and processes at once."""

    def __init__(self, url: URL, say: Say = lambda _: None) -> None:
        self.file = SqliteFile(url, say) if url.get_backend_name() == "sqlite" else None
        self.place = url.database or "" if self.file else mask(url.render_as_string())
        self.engine = self.file.engine() if self.file else _postgresql_engine(url)
        self._writer = self.engine.execution_options(**{WRITES: True})
        self._quick_writer = self._writer.execution_options(**{UNFLUSHED: True})

    @property
    def is_sqlite(self) -> bool:
        """Whether this is SQLite: one writer at a time, one host."""
        return self.file is not None

    @functools.cached_property
    def read_only(self) -> bool:
        """Whether this user may read but not write: the file's permissions, or the role's privileges."""
        if self.file:
            return self.file.read_only
        with self.read() as connection:
            may_write = text("SELECT has_table_privilege('runs', 'INSERT') AND NOT pg_is_in_recovery()")
            return not connection.scalar(may_write)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one snapshot (SQLite) or only committed writes (PostgreSQL)."""
        with self.translated():
            with self.engine.begin() as connection:
                yield connection
            if self.file:
                self.file.check_unchanged()

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that is committed as a whole, or not at all. Raises ``ledger-read-only``."""
        with self.translated(), self._writer.begin() as connection:
            yield connection

    @contextmanager
    def write_unflushed(self) -> Iterator[Connection]:
        """The same without waiting for the disk: it survives any kill, but a power failure may lose the newest ones.

        For what the checkpoint has as well; Spark does not flush its logs to a local disk either.
        """
        with self.translated(), self._quick_writer.begin() as connection:
            if not self.is_sqlite:
                connection.exec_driver_sql("SET LOCAL synchronous_commit = off")
            yield connection

    def now_ms(self) -> int:
        """The clock that all lease holders share: the server's where there is one, because hosts' clocks differ."""
        if self.is_sqlite:
            return time.time_ns() // 1_000_000
        with self.read() as connection:
            seconds: Any = connection.scalar(select(func.extract("epoch", func.clock_timestamp())))
        return int(seconds * 1000)

    def require_writable(self) -> None:
        """Raise EnvironmentMissing (``ledger-read-only``) unless this user may write."""
        if self.read_only:
            raise self.file.not_writable() if self.file else self._no_privilege(None)

    def close(self) -> None:
        """Close all connections. A closed database opens new ones when it is used again."""
        self.engine.dispose()

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Translate the driver's exceptions to Slackwater's."""
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
            if _is_of_the_schema(error):
                raise self._unreadable(_cause(error)) from error
            raise self.unreachable(_cause(error)) from error
        except DatabaseError as error:
            if getattr(error.orig, "sqlstate", None) in _NO_PRIVILEGE:
                raise self._no_privilege(_cause(error)) from error
            raise self._unreadable(_cause(error)) from error

    def unreachable(self, cause: str) -> EnvironmentMissing:
        """The error for a database that cannot be opened, reached or written; ``cause`` is the driver's message."""
        needs = "this user may read and write the file and its folder" if self.file else "the PostgreSQL server runs"
        return EnvironmentMissing(
            "ledger-unreachable", "The ledger cannot be used", where=self.place, found=cause, hint=f"check that {needs}"
        )

    def _unreadable(self, cause: str) -> DataError:
        return DataError(
            "ledger-unreadable",
            "The ledger's tables are not those that Slackwater wrote",
            where=self.place,
            found=cause,
            hint="restore the ledger from a backup",
        )

    def _no_privilege(self, cause: str | None) -> EnvironmentMissing:
        return EnvironmentMissing(
            "ledger-read-only",
            "The ledger cannot be written: this user has read access only",
            where=self.place,
            found=cause,
            hint="use a PostgreSQL role that may write to the ledger's tables",
        )


def _is_of_the_schema(error: OperationalError) -> bool:
    """Whether a table or column is missing: SQLite's generic code; files, locks and disks have codes of their own."""
    return getattr(error.orig, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR


def _cause(error: DBAPIError) -> str:
    return " ".join(str(error.orig).split())


def _postgresql_engine(url: URL) -> Engine:
    try:
        # A pre-ping replaces connections that were lost when the server restarted.
        return create_engine(url, pool_pre_ping=True, connect_args={"connect_timeout": CONNECT_TIMEOUT_S})
    except ModuleNotFoundError as error:
        raise EnvironmentMissing(
            "extra-missing", "A PostgreSQL ledger needs psycopg", hint="pip install 'slackwater[postgres]'"
        ) from error


def upsert(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows with equal columns; a row whose primary key exists is updated."""
    if not rows:
        return
    connection.execute(_upsert_statement(connection.dialect.name, table, tuple(rows[0])), rows)


@functools.cache
def _upsert_statement(dialect: str, table: Table, columns: tuple[str, ...]) -> Any:
    # Cached: for a batch of a running stream, building the statement takes as long as running it.
    statement = insert_for(dialect, table)
    keys = [column.name for column in table.primary_key]
    changed = {name: statement.excluded[name] for name in columns if name not in keys}
    return statement.on_conflict_do_update(index_elements=keys, set_=changed)


def insert_for(dialect: str, table: Table) -> Any:
    """The dialect's own INSERT, which has ON CONFLICT in both dialects."""
    if dialect == "sqlite":
        from sqlalchemy.dialects.sqlite import insert as sqlite_insert  # noqa: PLC0415 - only one of them is ever needed

        return sqlite_insert(table)
    from sqlalchemy.dialects.postgresql import insert as postgresql_insert  # noqa: PLC0415

    return postgresql_insert(table)
