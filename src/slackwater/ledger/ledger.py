"""The ledger, composed of its parts."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from os import PathLike, fspath
from typing import Self

from slackwater.ledger.batches import BatchesPart, SinkMarksPart
from slackwater.ledger.database import Database, parse_url
from slackwater.ledger.runs import LeasesPart, OperationFilesPart, RunsPart
from slackwater.ledger.schema import ensure_schema
from slackwater.ledger.sqlite import Say
from slackwater.ledger.streams import StreamsPart


class Ledger(
    StreamsPart, RunsPart, OperationFilesPart, BatchesPart, SinkMarksPart, LeasesPart, AbstractContextManager["Ledger"]
):
    """A home's durable record; usable from several threads and processes.

    Every method is one transaction, and may raise ``EnvironmentMissing`` (``ledger-unreachable``,
    ``ledger-locked``; ``ledger-read-only`` for writes) or ``DataError`` (``ledger-unreadable``).
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

        Read-only without write permission. ``now_ms`` replaces the database's clock (epoch milliseconds); ``say``
        reports a held lock. Raises ``NotFound`` (``ledger-missing``) without ``create``, ``DataError``
        (``ledger-version``), and with ``create`` ``EnvironmentMissing`` (``ledger-read-only``).
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
        return self._database.read_only

    @property
    def place(self) -> str:
        return self._database.place

    @property
    def has_clock(self) -> bool:
        return not self._database.is_sqlite

    def close(self) -> None:
        self._database.close()

    def __exit__(self, *_: object) -> None:
        self.close()
