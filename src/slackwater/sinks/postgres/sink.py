"""``sinks.postgres``: checks the table before the start, then writes each batch exactly once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from slackwater.core.errors import PipelineError, Refused
from slackwater.core.sink import Traits, WriteContext
from slackwater.sinks.common.contract import Sink
from slackwater.sinks.common.database import Address, address_of, writing
from slackwater.sinks.common.marker import check_logged
from slackwater.sinks.common.problem import refuse_partitions
from slackwater.sinks.postgres import traits_of
from slackwater.sinks.postgres.output import PostgresOutput
from slackwater.sinks.postgres.table import (
    Mode,
    PostgresName,
    Publication,
    check_keys,
    check_types,
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

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from sqlalchemy import Connection

MODES: dict[str, tuple[str, ...]] = {"insert": ("append",), "upsert": ("append", "update"), "replace": ("complete",)}
"""The output modes for which each way of writing is correct."""
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

    def identity(self) -> Mapping[str, str]:
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
        output, where = PostgresOutput(self.address, self.table, keep_batch_id=self.keep_batch_id), self._where
        with writing(where):
            output.target.marker.create_table(output.target.engine)
            with output.target.engine.begin() as connection:
                output.target.marker.begin_epoch(connection, context)
                # Earlier runs, which might still stage, are refused already.
                drop_orphans(connection, self.table, context.stream_id)
                if self.create:
                    version = server_version(connection)
                    for statement in create_statements(
                        self.table, columns, self.keys, batch=self.keep_batch_id, version=version
                    ):
                        run(connection, statement)
                self._publication(connection, frame, context)
                check_logged(connection, self.table.quoted, where)
                self._check_privileges(connection, context)

    def batch_writer(self, context: WriteContext, /) -> Callable[[DataFrame, int], None]:
        from slackwater.sinks.postgres.writer import PostgresWriter  # noqa: PLC0415 - heavy; only a run pays for it

        output = PostgresOutput(self.address, self.table, keep_batch_id=self.keep_batch_id)
        writers: list[PostgresWriter] = []

        def write(frame: DataFrame, batch: int) -> None:
            if not writers:
                with writing(self._where), output.target.engine.connect() as connection:
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
                where=self._where,
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
        wanted = {"insert": ("INSERT",), "upsert": ("INSERT", "UPDATE", "SELECT"), "replace": ("INSERT", "DELETE")}
        table, schema = literal(self.table.quoted), literal(self.table.schema)
        for privilege in wanted[self._mode(context)]:
            if not run(connection, f"SELECT has_table_privilege({table}, '{privilege}')")[0][0]:
                raise self._lacks(f"{privilege} ON {self.table}")
        if not run(connection, f"SELECT has_schema_privilege({schema}, 'CREATE')")[0][0]:
            raise self._lacks(f"CREATE ON SCHEMA {self.table.schema}")

    def _lacks(self, privilege: str) -> Refused:
        return Refused(
            "sink-grant",
            "The user of the sink lacks a privilege",
            where=self._where,
            expected=privilege,
            hint=f"GRANT {privilege} TO the user in the url",
        )

    @property
    def _where(self) -> str:
        return f"{self.address.location} {self.table}"


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
            hint="use slackwater.sinks.jdbc(url, table) for another database",
        )
    names = (keys,) if isinstance(keys, str) else tuple(keys)
    _check_mode(mode, names, keep_batch_id=keep_batch_id)
    return PostgresSink(address, table_name(table), mode, names, bool(create), bool(keep_batch_id))


def _check_mode(mode: object, keys: tuple[object, ...], *, keep_batch_id: bool) -> None:
    if mode is not None and mode not in MODES:
        raise PipelineError(
            "sink-mode", "The mode of a sink cannot be used", expected=", ".join(MODES), found=repr(mode)
        )
    if not all(isinstance(key, str) and key for key in keys) or len(set(keys)) < len(keys):
        raise PipelineError("sink-keys", "The keys of a sink cannot be used", expected="column names", found=repr(keys))
    if (mode == "upsert" and not keys) or (mode in {"insert", "replace"} and keys):
        raise PipelineError(
            "sink-keys",
            "keys and mode='upsert' require each other",
            expected="keys=(...) with mode upsert, none with another",
            found=f"mode={mode!r}, keys={keys!r}",
        )
    if keep_batch_id and (keys or mode not in {None, "insert"}):
        raise PipelineError(
            "sink-mode",
            "Only rows that are inserted and stay as they are belong to one batch",
            expected="keep_batch_id=True without keys and in append mode",
            found=f"mode={mode!r}, keys={keys!r}",
        )
