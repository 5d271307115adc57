"""The ledger as one object. Its parts are in ``streams``, ``runs``, ``batches``, ``sink_marks`` and ``leases``."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike, fspath
from types import TracebackType
from typing import Self

from slackwater.ledger.batches import BatchesPart
from slackwater.ledger.database import Database, parse_url
from slackwater.ledger.leases import LeasesPart
from slackwater.ledger.runs import RunsPart
from slackwater.ledger.schema import ensure_schema
from slackwater.ledger.sink_marks import SinkMarksPart
from slackwater.ledger.streams import StreamsPart


class Ledger(StreamsPart, RunsPart, BatchesPart, SinkMarksPart, LeasesPart):
    """The durable record of a home, on SQLite or PostgreSQL; safe for several threads and several processes.

    Every method is one transaction. A method that writes has written for good when it returns. Any of them may raise
    ``EnvironmentMissing`` (``ledger-unreachable``) or ``DataError`` (``ledger-unreadable``).
    """

    @classmethod
    def open(cls, url_or_path: str | PathLike[str], *, create: bool, now_ms: Callable[[], int] | None = None) -> Self:
        """Open a ledger: a path is SQLite, ``postgresql://...`` a server. An older schema is brought up to date.

        ``now_ms`` gives the time in epoch milliseconds in place of the database's own clock.
        Raises ``NotFound`` (``ledger-missing``) where there is none and ``create`` is false, and ``DataError``
        (``ledger-too-new``) where a newer Slackwater has written it.
        """
        database = Database(parse_url(fspath(url_or_path)))
        try:
            ensure_schema(database, create=create)
        except BaseException:
            database.close()
            raise
        return cls(database, now_ms or database.now_ms)

    @property
    def place(self) -> str:
        """Where the ledger is, as a user would write it, without a password."""
        return self._database.place

    def now_ms(self) -> int:
        """The time by which runs, operations and leases are recorded, in epoch milliseconds."""
        return self._now_ms()

    def close(self) -> None:
        """Give back every connection."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
