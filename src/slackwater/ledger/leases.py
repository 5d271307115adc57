"""The ledger's leases: rows that are replaced by compare-and-set, so that of two requests at once only one succeeds."""

from __future__ import annotations

from typing import Any

from sqlalchemy import RowMapping, select, update

from slackwater.ledger.database import insert_for
from slackwater.ledger.part import LedgerPart, as_row
from slackwater.ledger.tables import leases
from slackwater.model.records import Holder, LeaseRecord

_HOLDER_FIELDS = ("host", "pid", "pid_started", "jvm_pid", "jvm_started", "pid_space")


class LeasesPart(LedgerPart):
    """Leases. ``lease.Lease`` decides who may take one."""

    def lease(self, stream: str) -> LeaseRecord | None:
        """The stream's lease; ``None`` if none was ever taken."""
        with self._database.read() as connection:
            row = connection.execute(select(leases).where(leases.c.stream == stream)).mappings().first()
        return _lease(row) if row else None

    def take_lease(self, seen: LeaseRecord | None, taken: LeaseRecord) -> bool:
        """Replace ``seen`` by ``taken`` if it is unchanged; whether it was replaced."""
        with self._database.write() as connection:
            if seen is None:
                statement = insert_for(connection.dialect.name, leases).values(_row(taken)).on_conflict_do_nothing()
            else:
                # The heartbeat too: a holder that seemed dead and has just renewed its lease keeps it.
                unchanged = (leases.c.fence == seen.fence) & (leases.c.heartbeat_ms == seen.heartbeat_ms)
                statement = update(leases).where(leases.c.stream == seen.stream, unchanged).values(_row(taken))
            # Not the row count: psycopg does not report it for an insert.
            return connection.scalar(statement.returning(leases.c.fence)) is not None

    def renew_lease(self, held: LeaseRecord) -> bool:
        """Update the holder's own row; ``False``, with nothing written, if the fence has changed."""
        mine = (leases.c.stream == held.stream) & (leases.c.fence == held.fence) & leases.c.host.is_not(None)
        with self._database.write() as connection:
            return connection.execute(update(leases).where(mine).values(_row(held))).rowcount == 1

    def release_lease(self, held: LeaseRecord) -> bool:
        """Clear the holder and keep the fence; ``False`` if another process holds the lease."""
        no_holder = dict.fromkeys(_HOLDER_FIELDS)
        mine = (leases.c.stream == held.stream) & (leases.c.fence == held.fence)
        with self._database.write() as connection:
            return connection.execute(update(leases).where(mine).values(no_holder)).rowcount == 1


def _row(record: LeaseRecord) -> dict[str, Any]:
    row = as_row(record)
    holder = row.pop("holder")
    return row | (as_row(holder) if holder else dict.fromkeys(_HOLDER_FIELDS))


def _lease(row: RowMapping) -> LeaseRecord:
    fields = dict(row)
    holder = {name: fields.pop(name) for name in _HOLDER_FIELDS}
    return LeaseRecord(**fields, holder=Holder(**holder) if holder["host"] is not None else None)
