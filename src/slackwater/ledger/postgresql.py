"""PostgreSQL behind the ledger (psycopg 3): a shared clock, and read-only roles."""

from typing import Any

import psycopg
from psycopg.types.json import set_json_loads

from slackwater.core.errors import EnvironmentMissing
from slackwater.core.masking import mask
from slackwater.ledger.database import unusable_address

PsycopgConnection = psycopg.Connection[tuple[Any, ...]]

CONNECT_TIMEOUT_S = 10
_NO_PRIVILEGE = ("42501", "25006")
"""PostgreSQL's codes for a missing privilege and for a write in a read-only transaction."""


class PostgresqlServer:
    """A PostgreSQL server; ``url`` is a libpq connection URI."""

    dialect = "postgresql"
    errors = psycopg
    """The module that has the driver's exceptions."""

    def __init__(self, url: str) -> None:
        self.place = mask(url)
        self._url = url

    def connect(self) -> PsycopgConnection:
        # Transactions are started by ``begin``; else psycopg starts one at the first statement.
        try:
            driver = psycopg.connect(self._url, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S)
        except psycopg.ProgrammingError as error:
            # Of an address that cannot be parsed. After the colon it quotes a part, which may be that of the password.
            raise unusable_address("postgresql", str(error).partition(":")[0], self.place) from None
        except UnicodeError:
            long = "bytes that are no UTF-8, or a host with a part of more than 63 characters"
            raise unusable_address("postgresql", long, self.place) from None
        # JSON as it is stored: columns are decoded, and checked, in one place for both databases.
        set_json_loads(lambda stored: stored if isinstance(stored, str) else stored.decode(), driver)
        return driver

    def is_alive(self, driver: PsycopgConnection) -> bool:
        """Return whether a connection works: the server may have been restarted since the last use."""
        try:
            driver.execute("")
        except psycopg.OperationalError:
            return False
        return True

    def begin(self, driver: PsycopgConnection, *, writes: bool = False, unflushed: bool = False) -> None:
        """Begin a transaction that sees committed writes. ``unflushed``: does not wait for the disk."""
        driver.execute("BEGIN")
        if writes and unflushed:
            driver.execute("SET LOCAL synchronous_commit = off")

    def now_ms(self, driver: PsycopgConnection) -> int:
        """The server's clock: hosts' clocks differ."""
        # ``now()`` would be the time at which the transaction started.
        row = driver.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone()
        return int(row[0] * 1000) if row else 0

    def is_read_only(self, driver: PsycopgConnection) -> bool:
        # A standby has the privileges of its primary, and refuses each write all the same.
        may_write = "SELECT has_table_privilege('runs', 'INSERT') AND NOT pg_is_in_recovery()"
        return driver.execute(may_write).fetchone() != (True,)

    def is_unwritable(self, error: Exception) -> bool:
        return getattr(error, "sqlstate", None) in _NO_PRIVILEGE

    def not_writable(self, cause: str | None = None) -> EnvironmentMissing:
        return EnvironmentMissing(
            "ledger-read-only",
            "The ledger cannot be written: this user has only read access",
            where=self.place,
            found=cause,
            hint="use a PostgreSQL role that may write to the ledger's tables",
        )
