"""The ledger's runs and operations: what was executed on a stream, how it ended, and whether a stop was requested."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, bindparam, insert, select, update

from slackwater.errors import NotFound
from slackwater.ledger.database import upsert
from slackwater.ledger.part import LedgerPart, as_row
from slackwater.ledger.tables import operations, runs
from slackwater.masking import mask
from slackwater.model.records import OperationRecord, RunRecord

KILLED = "killed"
"""The end of a run that could not record its own: its driver was killed, or the ledger was unreachable."""

# Built once: a run executes it every second.
_STOP_REQUESTED = select(runs.c.stop_requested_ms).where(runs.c.id == bindparam("run"))


class RunsPart(LedgerPart):
    """Runs and operations."""

    def begin_run(
        self,
        stream: str,
        generation: int,
        spark_version: str,
        *,
        settings: Mapping[str, str] | None = None,
        code: str | None = None,
    ) -> RunRecord:
        """Record the start of a run with its SQL settings and the SHA-256 of its pipeline file.

        The caller holds the lease, so an earlier run without an end has exited; it is ended as ``killed``.
        """
        now = self._now_ms()
        started = {
            "stream": stream,
            "generation": generation,
            "spark_version": spark_version,
            "started_ms": now,
            "settings": dict(settings) if settings is not None else None,
            "code": code,
        }
        with self._database.write() as connection:
            abandoned = (runs.c.stream == stream) & runs.c.ended_ms.is_(None)
            killed = {"ended_ms": now, "end": KILLED, "reason": "the driver exited without recording an end"}
            connection.execute(update(runs).where(abandoned).values(killed))
            number = connection.scalar(insert(runs).values(started).returning(runs.c.id))
            return _run(connection, number or 0)

    def end_run(
        self,
        run_id: int,
        end: str,
        reason: str | None = None,
        *,
        failure: str | None = None,
        failure_code: str | None = None,
    ) -> RunRecord:
        """Record how a run ended, in one word, and why. Raises ``NotFound`` (``run-unknown``).

        ``failure`` is ``transient`` or ``permanent``; ``failure_code`` a code of ``runtime.failures``. Secrets in the
        reason are masked.
        """
        ended = {
            "ended_ms": self._now_ms(),
            "end": end,
            "reason": mask(reason) if reason is not None else None,
            "failure": failure,
            "failure_code": failure_code,
        }
        with self._database.write() as connection:
            connection.execute(update(runs).where(runs.c.id == run_id).values(ended))
            return _run(connection, run_id)

    def run(self, run_id: int) -> RunRecord:
        """One run. Raises ``NotFound`` (``run-unknown``)."""
        with self._database.read() as connection:
            return _run(connection, run_id)

    def record_rows_digest(self, run_id: int, rows_digest: str | None) -> None:
        """Record which rows the query of a run reads, as ``QueryProfile.rows_digest``; known once it has started."""
        with self._database.write() as connection:
            connection.execute(update(runs).where(runs.c.id == run_id).values(rows_digest=rows_digest))

    def last_run(self, stream: str) -> RunRecord | None:
        """The newest run of a stream."""
        with self._database.read() as connection:
            newest = select(runs).where(runs.c.stream == stream).order_by(runs.c.id.desc()).limit(1)
            row = connection.execute(newest).mappings().first()
        return RunRecord(**row) if row else None

    def runs(self, stream: str) -> list[RunRecord]:
        """All runs of a stream, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(select(runs).where(runs.c.stream == stream).order_by(runs.c.id)).mappings()
            return [RunRecord(**row) for row in rows]

    def request_stop(self, stream: str) -> RunRecord | None:
        """Ask the active run to drain and end; ``None`` where no run is active. A second request changes nothing."""
        run = self.last_run(stream)
        if run is None or run.ended_ms is not None:
            return None
        not_requested = (runs.c.id == run.id) & runs.c.ended_ms.is_(None) & runs.c.stop_requested_ms.is_(None)
        with self._database.write() as connection:
            connection.execute(update(runs).where(not_requested).values(stop_requested_ms=self._now_ms()))
            requested = _run(connection, run.id)
        return requested if requested.ended_ms is None else None

    def stop_requested(self, run_id: int) -> bool:
        """Whether this run was asked to stop."""
        with self._database.read() as connection:
            requested = connection.scalar(_STOP_REQUESTED, {"run": run_id})
        return requested is not None

    def begin_operation(self, record: OperationRecord) -> None:
        """Record an operation before its first step; a repeated id (a resumed apply) replaces its record."""
        with self._database.write() as connection:
            upsert(connection, operations, [as_row(record)])

    def end_operation(self, operation_id: str, status: str, summary: str) -> None:
        """Record the outcome: applied, refused or unknown. Raises ``NotFound`` (``operation-unknown``)."""
        values = {"status": status, "summary": mask(summary), "ended_ms": self._now_ms()}
        with self._database.write() as connection:
            done = connection.execute(update(operations).where(operations.c.id == operation_id).values(values))
        if done.rowcount == 0:
            raise NotFound("operation-unknown", f"The ledger has no operation {operation_id}")

    def open_operation(self, stream: str) -> OperationRecord | None:
        """The operation on a stream without an end: it is in progress, or its apply was killed."""
        unfinished = [record for record in self.operations(stream) if record.ended_ms is None]
        return unfinished[-1] if unfinished else None

    def operations(self, stream: str) -> list[OperationRecord]:
        """All operations on a stream, oldest first."""
        query = select(operations).where(operations.c.stream == stream)
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(operations.c.started_ms, operations.c.id)).mappings()
            return [OperationRecord(**row) for row in rows]


def _run(connection: Connection, run_id: int) -> RunRecord:
    row = connection.execute(select(runs).where(runs.c.id == run_id)).mappings().first()
    if row is None:
        raise NotFound("run-unknown", f"The ledger has no run {run_id}")
    return RunRecord(**row)
