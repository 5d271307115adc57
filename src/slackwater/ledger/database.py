"""The database behind the ledger: SQLite by default, PostgreSQL for teams.

Must not happen: a driver's exception or type reaching a caller; a password in a message; a write transaction that
starts as a read and then finds the database locked; a value inside a statement. ``:name`` stands for a value.
"""

from __future__ import annotations

import functools
import os
import re
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from slackwater.core.commands import command
from slackwater.core.errors import DataError, EnvironmentMissing, NotFound, SettingsError, UsageError
from slackwater.core.escaping import quoted
from slackwater.ledger.sqlite import Say, SqliteFile
from slackwater.ledger.tables import Table

if TYPE_CHECKING:
    from slackwater.ledger.postgresql import PostgresqlServer


Row = dict[str, Any]
Values = Mapping[str, Any]

_NONE: Values = {}
_TYPES = {
    "sqlite": {"SERIAL": "INTEGER", "BYTES": "BLOB", "OBJECT": "JSON", "LIST": "JSON"},
    "postgresql": {"BYTES": "BYTEA", "OBJECT": "JSON", "LIST": "JSON"},
}
_TABLE_EXISTS = {
    "sqlite": "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = :name",
    # Not to_regclass: it may answer from a cache of before another process created the table.
    "postgresql": "SELECT count(*) FROM pg_class WHERE relname = :name AND pg_table_is_visible(oid)",
}


class Connection:
    """A transaction; ``driver`` is a connection of sqlite3 or psycopg."""

    def __init__(self, dialect: str, driver: Any) -> None:
        self._dialect = dialect
        self._driver = driver

    def with_types(self, statement: str) -> str:
        """A statement of ``tables`` with the types of this database."""
        types = _TYPES[self._dialect]
        return re.sub(rf"\b({'|'.join(types)})\b", lambda match: types[match[1]], statement)

    def other_than_tables(self) -> list[str]:
        """Views and the like in a SQLite file: reading them can take forever."""
        others = "SELECT name FROM sqlite_master WHERE type NOT IN ('table', 'index') ORDER BY name"
        return [str(name) for (name,) in self._cursor(others, _NONE).fetchall()]

    def has_table(self, name: str) -> bool:
        return bool(self.scalar(_TABLE_EXISTS[self._dialect], {"name": name}))

    def execute(self, statement: str, values: Values = _NONE) -> int:
        return int(self._cursor(statement, values).rowcount)

    def scalar(self, statement: str, values: Values = _NONE) -> Any:
        row = self._cursor(statement, values).fetchone()
        return row[0] if row else None

    def rows(self, table: Table, tail: str, values: Values = _NONE, *, only: Sequence[str] = ()) -> list[Row]:
        names = tuple(only or table.columns)
        return [dict(zip(names, row, strict=True)) for row in self.tuples(table, names, tail, values)]

    def tuples(self, table: Table, names: tuple[str, ...], tail: str, values: Values = _NONE) -> list[tuple[Any, ...]]:
        # With the table's name: SQLite takes a quoted name that is no column for a string.
        columns = ", ".join(f'{table.name}."{name}"' for name in names)
        found = self._cursor(f"SELECT {columns} FROM {table.name} {tail}", values).fetchall()
        if not found:
            return []
        # By columns: a long history has hundreds of thousands of values.
        stored = zip(names, zip(*found, strict=True), strict=True)
        return list(zip(*(table.columns[name].read_all(column) for name, column in stored), strict=True))

    def first(self, table: Table, tail: str, values: Values = _NONE) -> Row | None:
        return next(iter(self.rows(table, f"{tail} LIMIT 1", values)), None)

    def column(self, table: Table, name: str, tail: str, values: Values = _NONE) -> list[Any]:
        return [value for (value,) in self.tuples(table, (name,), tail, values)]

    def update(self, table: Table, changes: Values, condition: str, values: Values = _NONE) -> int:
        stored = {f"new_{name}": value for name, value in _stored(table, changes).items()}
        assignments = ", ".join(f'"{name}" = :new_{name}' for name in changes)
        return self.execute(f"UPDATE {table.name} SET {assignments} WHERE {condition}", {**stored, **values})

    def delete(self, table: Table, condition: str, values: Values) -> None:
        self.execute(f"DELETE FROM {table.name} WHERE {condition}", values)

    def insert_numbered(self, table: Table, row: Values) -> int:
        return int(self.scalar(f"{_insert(table, row)} RETURNING id", _stored(table, row)))

    def insert_absent(self, table: Table, row: Values) -> bool:
        return self.execute(f"{_insert(table, row)} ON CONFLICT DO NOTHING", _stored(table, row)) == 1

    def upsert(self, table: Table, rows: Sequence[Values]) -> None:
        if rows:
            changes = ", ".join(f'"{name}" = excluded."{name}"' for name in rows[0] if name not in table.key)
            statement = f"{_insert(table, rows[0])} ON CONFLICT ({_quoted(table.key)}) DO UPDATE SET {changes}"
            stored = [_stored(table, row) for row in rows]
            self._driver.cursor().executemany(_in_dialect(statement, self._dialect), stored)

    def _cursor(self, statement: str, values: Values) -> Any:
        return self._driver.cursor().execute(_in_dialect(statement, self._dialect), values)


def _stored(table: Table, row: Values) -> Row:
    return {name: table.columns[name].to_store(value) for name, value in row.items()}


# Cached: a running stream executes the same few statements for each batch.
@functools.cache
def _in_dialect(statement: str, dialect: str) -> str:
    return statement if dialect == "sqlite" else re.sub(r":(\w+)", r"%(\1)s", statement)


def _insert(table: Table, columns: Iterable[str]) -> str:
    values = ", ".join(f":{name}" for name in columns)
    return f"INSERT INTO {table.name} ({_quoted(columns)}) VALUES ({values})"


def _quoted(columns: Iterable[str]) -> str:
    # "end" is a word of SQL.
    return ", ".join(f'"{name}"' for name in columns)


LONGEST_PATH = 500
"""The longest path: SQLite allows 512 bytes, including suffixes such as ``-journal``."""


def parse_url(url_or_path: str) -> Path | str:
    """The path of a SQLite file, or a PostgreSQL URI. Raises SettingsError (``ledger-url``)."""
    scheme, separator, rest = url_or_path.partition("://")
    if not separator:
        return _sqlite_path(Path(url_or_path).expanduser().absolute())
    backend = scheme.partition("+")[0]
    if backend == "postgresql":
        # Up to the last @ the login: an unescaped one in the password would make its second half a host to look up.
        if rest.partition("?")[0].count("@") > 1:
            raise unusable_address(backend, "an @ in the host; write an @ in a password as %40")
        url = f"{backend}://{rest}"
        try:
            _ = urlsplit(url).port
        except ValueError:
            # Not chained: the exception quotes a part of the address, which may be the password.
            raise unusable_address(scheme) from None
        return url
    file = rest.partition("?")[0].removeprefix("/")
    if backend == "sqlite" and file:
        return _sqlite_path(Path(file).absolute())
    raise unusable_address(backend)


def _sqlite_path(path: Path) -> Path:
    size = len(os.fsencode(path))
    if size > LONGEST_PATH:
        raise SettingsError(
            "ledger-url",
            "The path of the ledger is too long for SQLite",
            where=str(path),
            expected=f"a path of at most {LONGEST_PATH} bytes",
            found=f"{size} bytes",
            hint="choose a shorter home, or set ledger in slackwater.toml, or SLACKWATER_LEDGER, to a different path",
        )
    return path


def unusable_address(scheme: str, detail: str | None = None, where: str | None = None) -> SettingsError:
    """The error for an address; ``detail`` must not quote any of it: it may be the password."""
    return SettingsError(
        "ledger-url",
        "The ledger's address cannot be used",
        where=where,
        expected="a file path or postgresql://user@host/database",
        found=f"{scheme}://..." + (f" with {detail}" if detail else ""),
        hint="set ledger in slackwater.toml, or SLACKWATER_LEDGER, to a path or a postgresql:// address",
    )


class Database:
    """Transactions on a database; usable from several threads and processes."""

    def __init__(self, address: Path | str, say: Say = lambda _: None) -> None:
        self.file = SqliteFile(address, say) if isinstance(address, Path) else None
        self._driver: SqliteFile | PostgresqlServer = self.file or _server(str(address))
        self.place = self._driver.place
        self._idle: list[Any] = []
        self._lock = threading.Lock()

    @property
    def is_sqlite(self) -> bool:
        """Return whether this is SQLite, which has one writer at a time, on one host."""
        return self.file is not None

    @functools.cached_property
    def read_only(self) -> bool:
        """Return whether this user may read but not write (file permissions or role privileges)."""
        with self._connection() as driver:
            return self._driver.is_read_only(driver)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one snapshot (SQLite) or only committed writes (PostgreSQL)."""
        with self._transaction() as connection:
            yield connection
        if self.file:
            self.file.check_unchanged()

    def write(self, *, unflushed: bool = False) -> AbstractContextManager[Connection]:
        """An atomic transaction. Raises ``ledger-read-only``.

        ``unflushed``: without fsync, it survives any kill, but not always a power failure. For data that the checkpoint
        has as well; Spark does not fsync its logs on local disks either.
        """
        return self._transaction(writes=True, unflushed=unflushed)

    def now_ms(self) -> int:
        """Epoch milliseconds of the clock that all lease holders share."""
        if isinstance(self._driver, SqliteFile):
            return time.time_ns() // 1_000_000
        with self._connection() as driver:
            return self._driver.now_ms(driver)

    def require_writable(self) -> None:
        if self.read_only:
            raise self._driver.not_writable()

    def close(self) -> None:
        """Close idle connections. A closed database can be used again."""
        with self._lock:
            idle, self._idle = self._idle, []
        for driver in idle:
            driver.close()

    @contextmanager
    def _transaction(self, *, writes: bool = False, unflushed: bool = False) -> Iterator[Connection]:
        with self._connection() as driver:
            self._driver.begin(driver, writes=writes, unflushed=unflushed)
            yield Connection(self._driver.dialect, driver)
            driver.commit()

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        """A connection for a thread; after an error it is closed, and so rolled back."""
        with self._translated():
            driver = self._open()
            try:
                yield driver
            except BaseException:
                # The error that ended the transaction is the one to report.
                with suppress(self._driver.errors.Error):
                    driver.rollback()
                driver.close()
                raise
            # Only after success: a connection in an unknown state must not be used for another transaction.
            with self._lock:
                self._idle.append(driver)

    def _open(self) -> Any:
        while True:
            with self._lock:
                driver = self._idle.pop() if self._idle else None
            if driver is None:
                return self._driver.connect()
            if self._driver.is_alive(driver):
                return driver
            driver.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        errors = self._driver.errors
        try:
            yield
        # Rows with given keys are inserted with ON CONFLICT: what can be violated are references to other tables.
        except errors.IntegrityError as error:
            raise NotFound(
                "generation-unknown",
                "The ledger has no such stream or generation",
                where=self.place,
                found=cause_of(error),
                hint=f"{command('ledger')} lists the streams",
            ) from error
        except errors.OperationalError as error:
            # SQLite uses its generic code only for a missing table or column.
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR:
                raise self.unreadable(cause_of(error)) from error
            raise self.unreachable(cause_of(error)) from error
        except (OverflowError, UnicodeError) as error:
            raise UsageError(
                "ledger-value",
                "The ledger cannot record a value",
                where=self.place,
                expected="integers of 64 bits, and text in UTF-8",
                found=cause_of(error),
                hint="rename the file or folder whose name is not valid UTF-8, or correct the number",
            ) from error
        except errors.Error as error:
            if self._driver.is_unwritable(error):
                raise self._driver.not_writable(cause_of(error)) from error
            raise self.unreadable(cause_of(error)) from error

    def unreachable(self, cause: str) -> EnvironmentMissing:
        if self.file and self.file.is_disk_full():
            return EnvironmentMissing(
                "disk-full",
                "There is no space left for the ledger, which needs space even for reads",
                where=self.place,
                found=cause,
                hint="free some space and try again",
            )
        needs = "this user may read and write the file and its folder" if self.file else "the PostgreSQL server runs"
        return EnvironmentMissing(
            "ledger-unreachable", "The ledger cannot be used", where=self.place, found=cause, hint=f"check that {needs}"
        )

    def unreadable(self, cause: str) -> DataError:
        hint = "restore the ledger from a backup"
        if self.file:
            folder = quoted(f"{self.place}.damaged")
            files = (f"{self.place}{ending}" for ending in ("", "-wal", "-shm"))
            present = " ".join(quoted(file) for file in files if Path(file).exists())
            hint += (
                f"; without one: mkdir {folder} && mv {present} {folder}, and the next run or plan registers the "
                "streams again from stream.json and the logs of their checkpoints"
            )
        return DataError(
            "ledger-unreadable",
            "The ledger's tables are not as Slackwater made them",
            where=self.place,
            found=cause,
            hint=hint,
        )


def _server(url: str) -> PostgresqlServer:
    try:
        from slackwater.ledger.postgresql import PostgresqlServer  # noqa: PLC0415 - needs an optional dependency
    except ModuleNotFoundError as error:
        raise EnvironmentMissing(
            "extra-missing",
            "A PostgreSQL ledger needs psycopg",
            hint="pip install 'psycopg[binary]' adbc-driver-postgresql",
        ) from error
    return PostgresqlServer(url)


def cause_of(error: Exception) -> str:
    """The cause in a line. SQLite's texts are not shown: they can quote file content."""
    if not isinstance(error, sqlite3.Error):
        return " ".join(str(error).split())
    name = getattr(error, "sqlite_errorname", "") or "no error code"
    words = _OF_SQLITE.get("_".join(name.split("_")[:2]), "an error of SQLite")
    return f"{words} ({name})"


_OF_SQLITE = {
    "SQLITE_NOTADB": "a file that is no SQLite database",
    "SQLITE_CORRUPT": "a damaged SQLite database",
    "SQLITE_ERROR": "a table or a column that is missing, or not of this schema",
    "SQLITE_CONSTRAINT": "a reference to a row that is missing",
    "SQLITE_FULL": "a full disk",
    "SQLITE_IOERR": "a file that the system cannot read or write",
    "SQLITE_CANTOPEN": "a file that cannot be opened",
    "SQLITE_READONLY": "a file that this user may not write",
    "SQLITE_BUSY": "a lock of another process",
}
"""Causes by the first two words of SQLite's error codes."""
