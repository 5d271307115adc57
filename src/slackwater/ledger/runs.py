"""Runs, operations and leases: starts, ends, requested stops; of two concurrent requests for a lease one succeeds."""

from collections.abc import Mapping
from typing import Any

from slackwater.core.commands import command
from slackwater.core.errors import NotFound
from slackwater.core.masking import mask
from slackwater.core.records import Holder, LeaseRecord, OperationFiles, OperationRecord, RunRecord
from slackwater.ledger.database import Connection
from slackwater.ledger.lease import INTEGER_LIMIT, KILLED
from slackwater.ledger.lineage import LedgerPart
from slackwater.ledger.tables import leases, operation_files, operations, runs, unreadable

REFUSED = "refused"
"""The end of a start that was refused: no query has run."""


class RunsPart(LedgerPart):
    def begin_run(
        self,
        stream: str,
        generation: int,
        spark_version: str,
        *,
        settings: Mapping[str, str] | None = None,
        code: str | None = None,
        program: str | None = None,
        accepted: Mapping[str, object] | None = None,
        end: str | None = None,
        trigger_ms: int | None = None,
    ) -> RunRecord:
        """Begin a run; the caller holds the lease, so an earlier run without an end is ended as ``killed``.

        A run without a lease gets its ``end`` at once, as nothing else shows whether it runs. A run never starts before
        its lease was taken, even if the clock was set back: ``is_running`` relies on it.
        """
        now = self.now_ms()
        started: dict[str, Any] = {
            "stream": stream,
            "generation": generation,
            "spark_version": spark_version,
            "settings": settings,
            "code": code,
            "program": program,
            "accepted": accepted,
            "end": end,
            "trigger_ms": trigger_ms,
        }
        with self._database.write() as connection:
            killed = {"ended_ms": now, "end": KILLED, "reason": "the driver exited without recording an end"}
            connection.update(runs, killed, "stream = :stream AND ended_ms IS NULL", {"stream": stream})
            taken = connection.column(leases, "acquired_ms", "WHERE stream = :stream", {"stream": stream})
            started["started_ms"] = max([now, *taken])
            return _run(connection, connection.insert_numbered(runs, started))

    def end_run(
        self,
        run_id: int,
        end: str,
        reason: str | None = None,
        *,
        failure: str | None = None,
        failure_code: str | None = None,
    ) -> RunRecord:
        """End a run. Raises ``NotFound`` (``run-unknown``).

        ``failure`` is ``transient`` or ``permanent``; ``failure_code`` is from ``runtime.run.failures``. Secrets in the
        reason are masked.
        """
        ended = {
            "ended_ms": self.now_ms(),
            "end": end,
            "reason": mask(reason) if reason is not None else None,
            "failure": failure,
            "failure_code": failure_code,
        }
        with self._database.write() as connection:
            connection.update(runs, ended, "id = :id", {"id": run_id})
            return _run(connection, run_id)

    def run(self, run_id: int) -> RunRecord:
        with self._database.read() as connection:
            return _run(connection, run_id)

    def record_rows_digest(
        self,
        run_id: int,
        rows_digest: str | None,
        program: str | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Record the digest, which is known after the start. Also ``program`` and ``settings``, if unknown before."""
        late: dict[str, Any] = {"program": program, "settings": settings}
        known = {"rows_digest": rows_digest} | {name: value for name, value in late.items() if value is not None}
        with self._database.write() as connection:
            connection.update(runs, known, "id = :id", {"id": run_id})

    def record_refusal(self, stream: str, generation: int, code: str, reason: str) -> None:
        """Record a refused start; secrets in the reason are masked."""
        now = self.now_ms()
        refused = {
            "stream": stream,
            "generation": generation,
            "spark_version": "",
            "started_ms": now,
            "ended_ms": now,
            "end": REFUSED,
            "reason": mask(reason),
            "failure_code": code,
        }
        with self._database.write() as connection:
            connection.insert_numbered(runs, refused)

    def last_refusal(self, stream: str) -> RunRecord | None:
        with self._database.read() as connection:
            row = connection.first(runs, "WHERE stream = :stream ORDER BY id DESC", {"stream": stream})
        return RunRecord(**row) if row and row["end"] == REFUSED else None

    def last_run(self, stream: str) -> RunRecord | None:
        started = """WHERE stream = :stream AND ("end" IS NULL OR "end" <> :refused) ORDER BY id DESC"""
        with self._database.read() as connection:
            row = connection.first(runs, started, {"stream": stream, "refused": REFUSED})
        return RunRecord(**row) if row else None

    def runs(self, stream: str) -> list[RunRecord]:
        with self._database.read() as connection:
            rows = connection.rows(runs, "WHERE stream = :stream ORDER BY id", {"stream": stream})
        return [RunRecord(**row) for row in rows if row["end"] != REFUSED]

    def request_stop(self, stream: str) -> RunRecord | None:
        """Ask the active run to drain and end; ``None`` without an active run. Idempotent."""
        run = self.last_run(stream)
        if run is None or run.ended_ms is not None:
            return None
        # In the statement itself: the run may have ended since it was read.
        not_requested = "id = :id AND ended_ms IS NULL AND stop_requested_ms IS NULL"
        with self._database.write() as connection:
            connection.update(runs, {"stop_requested_ms": self.now_ms()}, not_requested, {"id": run.id})
            requested = _run(connection, run.id)
        return requested if requested.ended_ms is None else None

    def stop_requested(self, run_id: int) -> bool:
        with self._database.read() as connection:
            requested = connection.column(runs, "stop_requested_ms", "WHERE id = :id", {"id": run_id})
        return requested not in ([], [None])

    def begin_operation(self, record: OperationRecord) -> None:
        """Record an operation before its first step; a resumed apply replaces its record."""
        with self._database.write() as connection:
            connection.upsert(operations, [record._asdict()])

    def end_operation(self, operation_id: str, status: str, summary: str) -> None:
        """End an operation once: applied, refused, unknown, pruned. Raises NotFound (``operation-unknown``)."""
        values, this = {"status": status, "summary": mask(summary)}, {"id": operation_id}
        with self._database.write() as connection:
            changed = connection.update(operations, values, "id = :id", this)
            connection.update(operations, {"ended_ms": self.now_ms()}, "id = :id AND ended_ms IS NULL", this)
        if changed == 0:
            raise NotFound("operation-unknown", f"The ledger has no operation {operation_id}")

    def open_operation(self, stream: str) -> OperationRecord | None:
        """The operation without an end: in progress, or its apply was killed."""
        unfinished = [record for record in self.operations(stream) if record.ended_ms is None]
        return unfinished[-1] if unfinished else None

    def operations(self, stream: str) -> list[OperationRecord]:
        with self._database.read() as connection:
            rows = connection.rows(operations, "WHERE stream = :stream ORDER BY started_ms, id", {"stream": stream})
        return [OperationRecord(**row) for row in rows]


class OperationFilesPart(LedgerPart):
    def record_operation_files(self, files: OperationFiles) -> None:
        """Record the files before the first step; a repeated id replaces the record."""
        with self._database.write() as connection:
            connection.upsert(operation_files, [files._asdict()])

    def record_journal(self, operation: str, text: str) -> None:
        """Record the whole journal before its new line is written to the file. Raises ``NotFound``
        (``operation-unknown``).
        """
        with self._database.write() as connection:
            changed = connection.update(operation_files, {"journal": text}, "operation = :id", {"id": operation})
        if changed == 0:
            raise NotFound("operation-unknown", f"The ledger has no operation {operation}")

    def operation_files(self, operation: str) -> OperationFiles | None:
        with self._database.read() as connection:
            row = connection.first(operation_files, "WHERE operation = :operation", {"operation": operation})
        return OperationFiles(**row) if row else None

    def home_of_operations(self) -> str | None:
        with self._database.read() as connection:
            # An id starts with the time at which its plan was made.
            newest = connection.first(operation_files, "ORDER BY operation DESC")
        return newest["home"] if newest else None


def _run(connection: Connection, run_id: int) -> RunRecord:
    row = connection.first(runs, "WHERE id = :id", {"id": run_id})
    if row is None:
        raise NotFound("run-unknown", f"The ledger has no run {run_id}", hint=f"{command('ledger')} lists the streams")
    return RunRecord(**row)


_MINE = "stream = :stream AND fence = :fence"


class LeasesPart(LedgerPart):
    def lease(self, stream: str) -> LeaseRecord | None:
        with self._database.read() as connection:
            row = connection.first(leases, "WHERE stream = :stream", {"stream": stream})
        if row is None:
            return None
        if row["fence"] not in range(INTEGER_LIMIT):
            raise unreadable(f"a fence number below {INTEGER_LIMIT}", row["fence"])
        holder = {name: row.pop(name) for name in Holder._fields}
        return LeaseRecord(**row, holder=Holder(**holder) if holder["host"] is not None else None)

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
