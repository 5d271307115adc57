"""The ledger as one object. Its parts are the modules that it imports."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike, fspath
from types import TracebackType
from typing import Self

from slackwater.ledger.batches import BatchesPart, SinkMarksPart
from slackwater.ledger.database import Database, parse_url
from slackwater.ledger.leases import LeasesPart
from slackwater.ledger.runs import OperationFilesPart, RunsPart
from slackwater.ledger.schema import ensure_schema
from slackwater.ledger.sqlite import Say
from slackwater.ledger.streams import StreamsPart


class Ledger(StreamsPart, RunsPart, OperationFilesPart, BatchesPart, SinkMarksPart, LeasesPart):
    """The durable record of a home, on SQLite or PostgreSQL; safe for several threads and several processes.

    Every method is one transaction, committed when it returns. Any of them may raise ``EnvironmentMissing``
    (``ledger-unreachable``, ``ledger-locked``; ``ledger-read-only`` if it writes) or ``DataError``
    (``ledger-unreadable``).
    """

    @classmethod
    def open(
        cls,
        url_or_path: str | PathLike[str],
        *,
        create: bool,
        now_ms: Callable[[], int] | None = None,
        say: Say = lambda _: None,
    ) -> Self:
        """Open a ledger: a path is SQLite, ``postgresql://...`` a server.

        Without write permission it is opened read-only. ``now_ms`` returns epoch milliseconds in place of the
        database's own clock; ``say`` gets a message while another process holds the lock.
        Raises ``NotFound`` (``ledger-missing``) if there is none and ``create`` is false, ``DataError``
        (``ledger-version``) if it has another version of the schema, and ``EnvironmentMissing`` (``ledger-read-only``)
        if ``create`` is true and it cannot be written.
        """
        database = Database(parse_url(fspath(url_or_path)), say)
        try:
            ensure_schema(database, create=create)
            if create:
                database.require_writable()
        except BaseException:
            database.close()
            raise
        return cls(database, now_ms or database.now_ms)

    @property
    def read_only(self) -> bool:
        """Whether this user may read the ledger but not write to it."""
        return self._database.read_only

    @property
    def place(self) -> str:
        """The path or address of the ledger, with passwords masked."""
        return self._database.place

    @property
    def has_clock(self) -> bool:
        """Whether all processes take the time from the database, and not each from its own host."""
        return not self._database.is_sqlite

    def now_ms(self) -> int:
        """The time at which runs, operations and leases are recorded, in epoch milliseconds."""
        return self._now_ms()

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
