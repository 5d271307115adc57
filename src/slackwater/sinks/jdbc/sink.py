"""``sinks.jdbc``: a table in any database, with newest batch and owner from the marker's row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

from sqlalchemy import Connection, MetaData, Table, inspect, select
from sqlalchemy.exc import NoSuchTableError

from slackwater.core.errors import PipelineError, StreamFailed
from slackwater.core.masking import is_secret_name
from slackwater.core.sink import Identity, WriteContext
from slackwater.sinks.common.batch_function import WriteBatch
from slackwater.sinks.common.contract import LostMarker, Sink
from slackwater.sinks.common.database import (
    Address,
    address_in,
    address_of,
    no_streaming_source,
    require_table,
    writing,
)
from slackwater.sinks.common.directory import AppendOnlyOutput
from slackwater.sinks.common.marker import MarkedTarget, Marker, check_logged, limit_wait
from slackwater.sinks.common.problem import refuse_partitions
from slackwater.sinks.jdbc import JDBC_TRAITS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def reflected(connection: Connection, name: str) -> Table:
    schema, _, table = name.rpartition(".")
    try:
        return Table(table, MetaData(), schema=schema or None, autoload_with=connection)
    except NoSuchTableError as error:
        raise StreamFailed("sink-table-changed", f"The table {name} no longer exists") from error


def staged_prefix(stream_id: str, table: str) -> str:
    """The prefix of a stream's staged tables; eight characters follow."""
    return f"slackwater_stage_{sha256(f'{stream_id}/{table}'.encode()).hexdigest()[:12]}"


def open_jdbc_output(identity: Identity) -> JdbcOutput:
    require_table("jdbc", identity)
    return JdbcOutput(address_in(identity), identity["table"])


class JdbcOutput(AppendOnlyOutput[MarkedTarget]):
    """A database table. Rows have no batch ids, so no batch can be cut."""

    def __init__(self, address: Address, table: str) -> None:
        self._table = table
        location = f"{address.location} {table}"
        super().__init__(
            "jdbc",
            JDBC_TRAITS,
            location,
            lambda: MarkedTarget(address, Marker(table), location),
            f"Table {table} does not show to which batch a row belongs",
        )

    def lost_marker(self, marked: int) -> LostMarker | None:
        schema, _, name = self._table.rpartition(".")
        with self.target.reads() as connection:
            empty = not inspect(connection).has_table(name, schema or None)
            if not empty:
                empty = connection.execute(select(reflected(connection, self._table)).limit(1)).first() is None
        return self.target.lost_marker(self._table, marked) if marked >= 0 or not empty else None

    def reader_path(self) -> str:
        raise no_streaming_source("", self.location)


NAME_MAX = 200
"""The longest name that fits into the marker's key."""
POSTGRESQL_DRIVER = "org.postgresql.Driver"
RESERVED_OPTIONS = frozenset({"url", "dbtable", "query", "isolationlevel", "truncate"})
"""Options set by Slackwater; without transactions (``isolationLevel=NONE``) half an attempt could be published."""
NUM_PARTITIONS = "numpartitions"


@dataclass(frozen=True, slots=True)
class JdbcSink(Sink):
    """With ``jdbc_url`` executors stage; otherwise rows pass through the driver."""

    address: Address
    table: str
    jdbc_url: str | None = field(default=None, repr=False)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    partitions_max: int | None = None

    kind = "jdbc"
    traits = JDBC_TRAITS
    output_modes = ("append", "complete")

    @property
    def connectors(self) -> tuple[str, ...]:
        return ("postgresql",) if (self.jdbc_url or "").startswith("jdbc:postgresql:") else ()

    def identity(self) -> Identity:
        return {"kind": self.kind, **self.address.identity(), "table": self.table}

    def check(self, frame: DataFrame, context: WriteContext, /) -> None:
        refuse_partitions(self.kind, context)
        target = JdbcOutput(self.address, self.table).target
        target.begin_epoch(context)
        schema, _, name = self.table.rpartition(".")
        with writing(target.location):
            # Tables of interrupted batches: earlier runs, which might still stage, are refused already.
            for staged in inspect(target.engine).get_table_names():
                if staged.startswith(staged_prefix(context.stream_id, self.table)):
                    with target.engine.begin() as connection:
                        limit_wait(connection)
                        reflected(connection, staged).drop(connection)
            tables = inspect(target.engine)
            exists = tables.has_table(name, schema or None)
            found = {column["name"] for column in tables.get_columns(name, schema or None)} if exists else set[str]()
        if not exists:
            raise PipelineError(
                "sink-table-missing", "The table of the sink does not exist", where=target.location, hint="create it"
            )
        missing = sorted(set(frame.columns) - found)
        if missing:
            raise PipelineError(
                "sink-columns",
                "The columns of the query and of the table do not match",
                where=target.location,
                expected=f"columns {', '.join(missing)} of the query in the table",
                found=", ".join(sorted(found)),
                hint="change the query or the table",
            )
        with target.writes() as connection:
            quote = connection.dialect.identifier_preparer.quote_identifier
            check_logged(connection, ".".join(map(quote, self.table.rsplit(".", 1))), target.location)

    def batch_writer(self, context: WriteContext, /) -> WriteBatch:
        from slackwater.sinks.jdbc.writer import JdbcWriter  # noqa: PLC0415 - heavy; only a run pays for it

        return JdbcWriter(JdbcOutput(self.address, self.table).target, context, self).write


def jdbc(url: str, table: str, *, jdbc_url: str | None = None, password: str | None = None, **options: str) -> JdbcSink:
    """A table of the database at ``url``, an address of SQLAlchemy: append inserts, complete replaces all rows.

    With ``jdbc_url`` executors stage rows by Spark's JDBC writer, with ``options`` such as ``driver`` and ``user``.
    Without it rows pass through the driver, which suits SQLite and small batches; a column without a time zone gets
    timestamps in UTC, in PostgreSQL in the zone of the session. ``password`` is ``"env:NAME"`` or ``"file:PATH"``.
    Raises PipelineError for what cannot be used.
    """
    if not 0 < len(str(table).strip()) <= NAME_MAX:
        raise PipelineError(
            "sink-table", "The name of a table cannot be used", expected="TABLE or SCHEMA.TABLE", found=repr(table)
        )
    reserved = sorted(name for name in options if name.lower() in RESERVED_OPTIONS or is_secret_name(name))
    if reserved or (options and jdbc_url is None):
        raise PipelineError(
            "sink-option",
            "This option cannot be given to the jdbc sink",
            found=", ".join(reserved or sorted(options)),
            hint='give jdbc_url for options of Spark\'s writer, and password="env:NAME" for a password',
        )
    given = {name: value for name, value in options.items() if name.lower() != NUM_PARTITIONS}
    address = address_of(url, password)
    most = next((value for name, value in options.items() if name.lower() == NUM_PARTITIONS), None)
    if most is not None and (not str(most).isdecimal() or int(most) < 1):
        raise PipelineError(
            "sink-option-value",
            "The jdbc sink cannot use this number of partitions",
            expected="numPartitions=N with N from 1",
            found=repr(most),
            hint="leave the option out to write with as many connections as the batch has partitions",
        )
    return JdbcSink(address, str(table), jdbc_url, given, None if most is None else int(most))
