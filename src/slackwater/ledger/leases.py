"""Lease rows, replaced by compare-and-set: only one of two concurrent requests succeeds."""

from __future__ import annotations

from typing import Any

from slackwater.core.records import Holder, LeaseRecord
from slackwater.ledger.database import Row
from slackwater.ledger.lease.lease import INTEGER_LIMIT
from slackwater.ledger.part import LedgerPart
from slackwater.ledger.tables import leases, unreadable

_MINE = "stream = :stream AND fence = :fence"


class LeasesPart(LedgerPart):
    def lease(self, stream: str) -> LeaseRecord | None:
        with self._database.read() as connection:
            row = connection.first(leases, "WHERE stream = :stream", {"stream": stream})
        return _lease(row) if row else None

    def take_lease(self, seen: LeaseRecord | None, taken: LeaseRecord) -> bool:
        with self._database.write() as connection:
            if seen is None:
                return connection.insert_absent(leases, _row(taken))
            # The heartbeat too: a holder that seemed dead and has just renewed its lease keeps it.
            unchanged = f"{_MINE} AND heartbeat_ms = :heartbeat_ms"
            values = {"stream": seen.stream, "fence": seen.fence, "heartbeat_ms": seen.heartbeat_ms}
            return connection.update(leases, _row(taken), unchanged, values) == 1

    def renew_lease(self, held: LeaseRecord) -> bool:
        """Renew a lease; ``False``, with nothing written, if the fence has changed."""
        mine = {"stream": held.stream, "fence": held.fence}
        with self._database.write() as connection:
            return connection.update(leases, _row(held), f"{_MINE} AND host IS NOT NULL", mine) == 1

    def release_lease(self, held: LeaseRecord) -> bool:
        """Clear the holder, keep the fence; ``False`` if the lease is held by a different process."""
        no_holder = dict.fromkeys(Holder._fields)
        with self._database.write() as connection:
            return connection.update(leases, no_holder, _MINE, {"stream": held.stream, "fence": held.fence}) == 1


def _row(record: LeaseRecord) -> dict[str, Any]:
    row = record._asdict()
    holder = row.pop("holder")
    return row | (holder._asdict() if holder else dict.fromkeys(Holder._fields))


def _lease(row: Row) -> LeaseRecord:
    fields = dict(row)
    if row["fence"] not in range(INTEGER_LIMIT):
        raise unreadable(f"a fence number below {INTEGER_LIMIT}", row["fence"])
    holder = {name: fields.pop(name) for name in Holder._fields}
    return LeaseRecord(**fields, holder=Holder(**holder) if holder["host"] is not None else None)
