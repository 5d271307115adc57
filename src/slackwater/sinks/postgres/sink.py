"""``sinks.postgres``: checks the table before the start, then writes each batch exactly once; and the table's content.

Newest batch and owner are from the marker's row.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from slackwater.core.checkpoint import NONE_YET, Damage, Depth
from slackwater.core.commands import command
from slackwater.core.errors import PipelineError, Refused
from slackwater.core.sink import Cut, Identity, Owner, Swap, Traits, WriteContext, after_batch, newest_batch
from slackwater.sinks.common.batch_function import WriteBatch
from slackwater.sinks.common.changes import (
    SwapRecord,
    check_swap,
    check_unmoved,
    damaged,
    foreign_cut,
    incomplete,
    record,
    start,
    started,
)
from slackwater.sinks.common.contract import WITHOUT_CUT, LogEntries, LostMarker, Output, Sink, SwapPart, uncuttable
from slackwater.sinks.common.database import Address, address_in, address_of, no_streaming_source, require_table
from slackwater.sinks.common.marker import TABLE, MarkedTarget, Marker, check_logged, limit_wait
from slackwater.sinks.common.problem import refuse_partitions
from slackwater.sinks.postgres import changes, traits_of
from slackwater.sinks.postgres.changes import lock_writers_out, others_after, state_of_rows, unmarked_rows
from slackwater.sinks.postgres.table import (
    BATCH_COLUMN,
    Mode,
    PostgresName,
    Publication,
    check_keys,
    check_types,
    count_rows,
    create_statements,
    drop_orphans,
    literal,
    match_columns,
    read_columns,
    run,
    server_version,
    staged_columns,
    table_name,
)
from slackwater.storage.protocols import WriteStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from sqlalchemy import Connection


def open_postgres_output(identity: Identity) -> PostgresOutput:
    require_table("postgres", identity)
    kept = identity.get("keep_batch_id") == "true"
    return PostgresOutput(address_in(identity), table_name(identity["table"]), keep_batch_id=kept)


class PostgresOutput(Output):
    """A PostgreSQL table. Connections are opened on demand and not kept."""

    def __init__(self, address: Address, table: PostgresName, *, keep_batch_id: bool, marked: bool = True) -> None:
        self._table = table
        self._keep_batch_id = keep_batch_id
        self._marked = marked
        self.target = MarkedTarget(address, Marker(str(table), table.schema), f"{address.location} {table}")

    @property
    def traits(self) -> Traits:
        return traits_of(keep_batch_id=self._keep_batch_id)

    @property
    def location(self) -> str:
        return self.target.location

    def last_written(self) -> int:
        return self.target.last_written()

    def owner(self) -> Owner | None:
        return self.target.owner()

    def claim(self, owner: Owner) -> None:
        self.target.claim(owner)

    def lost_marker(self, marked: int) -> LostMarker | None:
        with self.target.reads() as connection:
            there = read_columns(connection, self._table)
            has_rows = marked >= 0 or (there and run(connection, f"SELECT 1 FROM {self._table.quoted} LIMIT 1"))
        return self.target.lost_marker(self._table.quoted, marked) if has_rows else None

    def _damage(self, depth: Depth) -> Iterator[Damage]:
        """A missing table, or rows of unmarked batches, which somebody else wrote."""
        written, newest = self.last_written(), None
        with self.target.reads() as connection:
            exists = bool(read_columns(connection, self._table))
            if exists and depth == "all" and self._keep_batch_id:
                newest = run(connection, f"SELECT max({BATCH_COLUMN}) FROM {self._table.quoted}")[0][0]
        expected = f"rows of batches up to {written}"
        if not exists and written >= 0:
            yield Damage(str(self._table), "missing", expected, "no table")
        elif newest is not None and newest > written:
            yield Damage(str(self._table), "foreign", expected, f"rows of batch {newest}")

    def cut_after(self, batch: int, _recorded: LogEntries) -> Cut:
        written = self.last_written()
        if batch >= written:
            return Cut(batch, ())
        self._check_cuttable()
        with self.target.reads() as connection:
            rows = count_rows(connection, self._table, f" WHERE {BATCH_COLUMN} > {batch}")
            found = others_after(connection, self._table, batch, written, keep_batch_id=True)
        return Cut(batch, tuple(range(batch + 1, written + 1)), rows=rows, others=found)

    def cut(self, cut: Cut, _recorded: LogEntries, backup: WriteStore) -> None:
        if not cut.batches:
            return
        self._check_cuttable()
        record = self._recorded_cut(cut, backup)
        if record is None:
            if cut != self.cut_after(cut.after, {}):
                raise Refused(
                    "cut-mismatch",
                    f"The table's rows {after_batch(cut.after)} differ from the cut's",
                    where=self.location,
                    expected=f"{cut.rows} rows of {len(cut.batches)} batches",
                    hint=f"make a new plan: {command('plan', 'rebuild', 'STREAM')}",
                )
            table = f"slackwater_cut_{uuid.uuid4().hex}"
            record = changes.PostgresCut(self.location, table, cut.after, cut.batches, cut.rows or 0)
            changes.RECORD.write(backup, record)
        with self.target.writes() as connection:
            changes.delete_batches(connection, self._table, self.target.marker, record, cut.others)

    def check_restore(self, cut: Cut, backup: WriteStore) -> None:
        record = self._recorded_cut(cut, backup)
        if record is not None:
            with self.target.reads() as connection:
                changes.check_restore(connection, self._table, self.target.marker, record)

    def restore(self, cut: Cut, backup: WriteStore) -> None:
        record = self._recorded_cut(cut, backup)
        if record is not None:
            with self.target.writes() as connection:
                changes.restore(connection, self._table, self.target.marker, record)

    def _recorded_cut(self, cut: Cut, backup: WriteStore) -> changes.PostgresCut | None:
        """The recorded cut; ``None``: interrupted before recording, so nothing was removed."""
        record = changes.RECORD.read(backup) if cut.batches else None
        if record and (record.output, record.after, record.batches) != (self.location, cut.after, cut.batches):
            raise foreign_cut(self.location, cut.after, f"a cut of {record.output} {after_batch(record.after)}")
        return record

    def staged(self, operation: str) -> PostgresOutput:
        staging = self._table.staging(operation)
        return PostgresOutput(self.target.address, staging, keep_batch_id=self._keep_batch_id)

    def without_marker(self) -> PostgresOutput:
        return PostgresOutput(self.target.address, self._table, keep_batch_id=self._keep_batch_id, marked=False)

    def stage(self, operation: str, after: int, _recorded: LogEntries) -> None:
        staging = self._table.staging(operation)
        with self.target.writes(create=True) as connection:
            if changes.state_of(connection, self._table, operation) is not None:
                return
            changes.check_supported(connection, self._table)
            run(connection, f"CREATE TABLE {staging.quoted} (LIKE {self._table.quoted} INCLUDING ALL)")
            comment = literal(changes.mark_of("staged", operation))
            run(connection, f"COMMENT ON TABLE {staging.quoted} IS {comment}")
            # While the row is locked no batch is published.
            limit_wait(connection)
            mark = self.target.marker.read(connection, lock=True)
            written, keep = NONE_YET if mark is None else mark.batch_id, self._keep_batch_id
            if after == NONE_YET:
                # Without batch ids rows can be kept only where the stream has written none of them.
                if keep or (written == NONE_YET and self._marked):
                    changes.fill(connection, self._table, staging, after if keep else None)
                return
            if mark is None or mark.owner is None or written < after:
                raise incomplete(self.location, f"batches up to {after}", f"{newest_batch(written)} as the newest")
            if written > after:
                self._check_cuttable()
            changes.fill(connection, self._table, staging, after if written > after else None)
            Marker(str(staging), staging.schema).record(connection, mark.owner, after)

    def swap_of(self, operation: str, stream_id: str, after: int = NONE_YET) -> Swap:
        written, keep = self.last_written(), self._keep_batch_id
        with self.target.reads() as connection:
            changes.check_supported(connection, self._table)
            state = state_of_rows(connection, self._table)
            found = (
                others_after(connection, self._table, after, written, keep_batch_id=keep)
                if self._marked
                else unmarked_rows(connection, self._table, keep_batch_id=keep)
            )
        return Swap(operation, stream_id, written, version=state, others=found)

    def whole(self, _recorded: LogEntries) -> Cut:
        """The whole table, without rows or files: no stream reads PostgreSQL, and a swap needs no batch ids."""
        return Cut(NONE_YET, tuple(range(self.last_written() + 1)))

    def check_swap(self, swap: Swap, backup: WriteStore) -> None:
        started(backup, self.location, swap)
        with self.target.reads() as connection:
            self._check_swap(connection, swap)

    def swap(self, swap: Swap, backup: WriteStore) -> None:
        self.check_swap(swap, backup)
        start(backup, self.location, swap)
        staging = self._table.staging(swap.operation)
        with self.target.writes() as connection:
            # The marker's row before the table, in the order in which a batch takes both.
            limit_wait(connection)
            self.target.marker.read(connection, lock=True)
            lock_writers_out(connection, self._table)
            # Again, now that nobody can write: other sessions may have changed rows since the first check.
            self._check_swap(connection, swap)
            if changes.state_of(connection, self._table, swap.operation) == "staged":
                # Their names are made from the staged table's, so that no later start of the stream would find them.
                drop_orphans(connection, staging, swap.stream_id)
                newest = self.staged(swap.operation).last_written()
                record(backup, self.location, swap, newest, state=state_of_rows(connection, staging))
                changes.exchange(connection, self._table, swap.operation, "replaced")

    def check_swap_back(self, swap: Swap, backup: WriteStore) -> None:
        known = started(backup, self.location, swap)
        if known is not None:
            with self.target.reads() as connection:
                self._has_to_go_back(connection, known, swap.operation, lock=False)

    def swap_back(self, swap: Swap, backup: WriteStore) -> None:
        known = started(backup, self.location, swap)
        if known is None:
            return  # The swap was interrupted before it recorded anything, so that nothing was changed.
        with self.target.writes() as connection:
            if self._has_to_go_back(connection, known, swap.operation, lock=True):
                changes.exchange(connection, self._table, swap.operation, "staged")

    def discard(self, operation: str, part: SwapPart) -> None:
        staging = self._table.staging(operation)
        with self.target.writes() as connection:
            if changes.state_of(connection, self._table, operation) == part:
                marker = Marker(str(staging), staging.schema)
                mark = marker.read(connection)
                if mark is not None:
                    drop_orphans(connection, staging, mark.stream_id)
                run(connection, f"DROP TABLE {staging.quoted}")
                marker.remove(connection)

    def reader_path(self) -> str:
        raise no_streaming_source(" of PostgreSQL", self.location)

    def _check_swap(self, connection: Connection, swap: Swap) -> None:
        state = changes.state_of(connection, self._table, swap.operation)
        if state != "replaced":
            check_swap(self, swap, state, "no table")
            changes.check_supported(connection, self._table)
            check_unmoved(self.location, swap, state_of_rows(connection, self._table))

    def _has_to_go_back(self, connection: Connection, known: SwapRecord, operation: str, *, lock: bool) -> bool:
        if lock:
            limit_wait(connection)
        mark = self.target.marker.read(connection, lock=lock)
        state = changes.state_of(connection, self._table, operation)
        if state is None:
            raise damaged(str(self._table.staging(operation)), "the table before the swap", "no table")
        if state != "replaced":
            return False
        changes.check_supported(connection, self._table)
        if lock:
            lock_writers_out(connection, self._table)
        written, keep = NONE_YET if mark is None else mark.batch_id, self._keep_batch_id
        since = written > known.version
        # Only a table with batch ids shows which rows the stream has written since.
        if known.state and (keep or not since):
            now = state_of_rows(connection, self._table, known.version if since else None)
            found = others_after(connection, self._table, known.version, written, keep_batch_id=keep)
            if now != known.state or found.any:
                raise Refused(
                    "restore-conflict",
                    "Other writers changed the table after the swap; going back would undo that",
                    where=self.location,
                    expected=known.state,
                    found=f"{now}, with {found.text} of others in later batches" if found.any else now,
                    hint="move the other writers' rows to a different table, then run the command again",
                )
        return True

    def _check_cuttable(self) -> None:
        if not self._keep_batch_id:
            raise uncuttable(
                self.location,
                f"Table {self._table} has no column with the batch id",
                f"keep_batch_id=True, with a column {BATCH_COLUMN}",
                "rows without a batch id",
                f"{WITHOUT_CUT} ({TABLE} has it)",
            )


MODES: dict[str, tuple[str, ...]] = {"insert": ("append",), "upsert": ("append", "update"), "replace": ("complete",)}
"""The output modes for which each way of writing is correct."""
_NEEDS = {"insert": ("INSERT",), "upsert": ("INSERT", "UPDATE", "SELECT"), "replace": ("INSERT", "DELETE")}
_MODE_OF: dict[str, Mode] = {"append": "insert", "update": "upsert", "complete": "replace"}


@dataclass(frozen=True, slots=True)
class PostgresSink(Sink):
    """``mode`` ``None``: the output mode decides."""

    address: Address
    table: PostgresName
    mode: Mode | None = None
    keys: tuple[str, ...] = ()
    create: bool = False
    keep_batch_id: bool = False

    kind = "postgres"

    @property
    def traits(self) -> Traits:
        return traits_of(keep_batch_id=self.keep_batch_id)

    @property
    def output_modes(self) -> tuple[str, ...]:
        """The output modes: with keys append and update, otherwise append and complete, unless ``mode`` decides."""
        if self.keep_batch_id:
            return ("append",)
        if self.mode is not None:
            return MODES[self.mode]
        return MODES["upsert"] if self.keys else (*MODES["insert"], *MODES["replace"])

    def identity(self) -> Identity:
        kept = {"keep_batch_id": "true"} if self.keep_batch_id else {}
        return {"kind": self.kind, **self.address.identity(), "table": str(self.table), **kept}

    def staged(self, operation: str, /) -> PostgresSink:
        return replace(self, table=self.table.staging(operation))

    def check(self, frame: DataFrame, context: WriteContext, /) -> None:
        """Check the table and refuse earlier runs; ``create=True`` creates it."""
        refuse_partitions(self.kind, context)
        columns = staged_columns(frame.schema)
        check_types(columns, self.table)
        missing = sorted(set(self.keys) - {column.name for column in columns})
        if missing:
            raise PipelineError(
                "sink-keys", "A key of the sink is no column of the query", where=str(self.table), found=missing[0]
            )
        target = self._output.target
        with target.writes(create=True) as connection:
            target.marker.begin_epoch(connection, context)
            # Earlier runs, which might still stage, are refused already.
            drop_orphans(connection, self.table, context.stream_id)
            if self.create:
                version = server_version(connection)
                for statement in create_statements(
                    self.table, columns, self.keys, batch=self.keep_batch_id, version=version
                ):
                    run(connection, statement)
            self._publication(connection, frame, context)
            check_logged(connection, self.table.quoted, target.location)
            self._check_privileges(connection, context)

    def batch_writer(self, context: WriteContext, /) -> WriteBatch:
        from slackwater.sinks.postgres.writer import PostgresWriter  # noqa: PLC0415 - heavy; only a run pays for it

        output = self._output
        writers: list[PostgresWriter] = []

        def write(frame: DataFrame, batch: int) -> None:
            if not writers:
                with output.target.writes() as connection:
                    publication = self._publication(connection, frame, context)
                columns = staged_columns(frame.schema)
                writers.append(PostgresWriter(output.target, context, columns, publication))
            writers[0].write(frame, batch)

        return write

    def _publication(self, connection: Connection, frame: DataFrame, context: WriteContext) -> Publication:
        found = read_columns(connection, self.table)
        if not found:
            raise PipelineError(
                "sink-table-missing",
                "The table of the sink does not exist",
                where=self._output.location,
                hint=f'create it, or let the sink do it: sinks.postgres(URL, "{self.table}", create=True)',
            )
        columns = staged_columns(frame.schema)
        filled = match_columns(self.table, columns, found, batch=self.keep_batch_id)
        mode = self._mode(context)
        if mode == "upsert":
            check_keys(connection, self.table, self.keys)
        return Publication(self.table, mode, self.keys, filled, self.keep_batch_id)

    def _mode(self, context: WriteContext) -> Mode:
        return self.mode or ("upsert" if self.keys else _MODE_OF[context.output_mode])

    def _check_privileges(self, connection: Connection, context: WriteContext) -> None:
        table, schema = literal(self.table.quoted), literal(self.table.schema)
        asked = {f"{one} ON {self.table}": f"table_privilege({table}, '{one}')" for one in _NEEDS[self._mode(context)]}
        asked[f"CREATE ON SCHEMA {self.table.schema}"] = f"schema_privilege({schema}, 'CREATE')"
        for privilege, function in asked.items():
            if not run(connection, f"SELECT has_{function}")[0][0]:
                raise Refused(
                    "sink-grant",
                    "The user of the sink lacks a privilege",
                    where=self._output.location,
                    expected=privilege,
                    hint=f"GRANT {privilege} TO the user in the url",
                )

    @property
    def _output(self) -> PostgresOutput:
        return PostgresOutput(self.address, self.table, keep_batch_id=self.keep_batch_id)


def postgres(
    url: str,
    table: str,
    *,
    mode: Mode | None = None,
    keys: str | Iterable[str] = (),
    create: bool = False,
    keep_batch_id: bool = False,
    password: str | None = None,
) -> PostgresSink:
    """A PostgreSQL table, exactly once: each batch is published with its id in one transaction.

    Append mode inserts, update mode updates rows by ``keys``, complete mode replaces all rows; ``keys`` in append mode
    updates rows that exist. ``mode`` refuses other output modes than those of ``"insert"`` (append), ``"upsert"``
    (append and update, by ``keys``) or ``"replace"`` (complete). ``create`` creates the table for the query if it does
    not exist. ``keep_batch_id`` needs a column ``_slackwater_batch`` of type bigint, and lets a rebuild cut batches.
    The password is found as libpq finds it (``PGPASSWORD``, ``~/.pgpass``, a service file), or ``password`` says where:
    ``"env:NAME"`` or ``"file:PATH"``. Raises PipelineError for what cannot be used.
    """
    address = address_of(url, password)
    if not address.is_postgresql:
        raise PipelineError(
            "sink-url",
            "The postgres sink writes to PostgreSQL only",
            expected="postgresql://user@host:5432/database",
            found=address.url.partition(":")[0],
            hint="use slackwater.sinks.jdbc(url, table) for other databases",
        )
    names: tuple[Any, ...] = (keys,) if isinstance(keys, str) else tuple(keys)
    if mode not in {None, *MODES}:
        raise PipelineError(
            "sink-mode", "The mode of a sink cannot be used", expected=", ".join(MODES), found=repr(mode)
        )
    if not all(isinstance(key, str) and key for key in names) or len(set(names)) < len(names):
        raise PipelineError(
            "sink-keys", "The keys of a sink cannot be used", expected="column names", found=repr(names)
        )
    if (mode == "upsert" and not names) or (mode in {"insert", "replace"} and names):
        raise PipelineError(
            "sink-keys",
            "keys and mode='upsert' require each other",
            expected="keys=(...) with mode upsert, no keys with other modes",
            found=f"mode={mode!r}, keys={names!r}",
        )
    if keep_batch_id and (names or mode not in {None, "insert"}):
        raise PipelineError(
            "sink-mode",
            "keep_batch_id needs rows that are inserted and never updated",
            expected="keep_batch_id=True without keys and in append mode",
            found=f"mode={mode!r}, keys={names!r}",
        )
    return PostgresSink(address, table_name(table), mode, names, bool(create), bool(keep_batch_id))
