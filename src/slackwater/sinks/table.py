"""A table of Spark's catalog, written by ``toTable``. Its format decides the guarantees."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slackwater.core.errors import PipelineError, SinkUnchecked, SlackwaterError
from slackwater.core.sink import CatalogueEntry, Delivery, Identity, Traits, WriteContext, WriterCalls
from slackwater.sinks.common.contract import OpaqueOutput, Output, Sink
from slackwater.sinks.common.directory import absolute
from slackwater.sinks.common.problem import is_text, option_strings, table_unchecked
from slackwater.sinks.common.registry import SinkKind, open_output
from slackwater.storage.open import local_path_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

FILE_FORMATS = frozenset({"parquet", "orc", "json", "csv", "text"})
CONNECTORS: Mapping[str, tuple[str, ...]] = {"delta": ("delta",), "iceberg": ("iceberg",)}
FILE_TABLE_TRAITS = Traits(
    Delivery("exactly-once", "the manifest next to the table's files lists each batch once, as that of sinks.files"),
    one_writer=True,
    skips_known_batches=True,
)
LOG_TABLE_TRAITS = Traits(
    Delivery("exactly-once", "the table records query and batch of each commit, and a batch that it has is skipped"),
    one_writer=False,
    skips_known_batches=True,
)
OTHER_TABLE_TRAITS = Traits(
    Delivery("at-least-once", "what this format does with a batch that is written twice is unknown"), one_writer=False
)
ENTRIES = (
    CatalogueEntry("table", 'table(name, format="parquet")', FILE_TABLE_TRAITS, ("append",), rank=90),
    CatalogueEntry(
        "table", 'table(name, format="delta" or "iceberg")', LOG_TABLE_TRAITS, ("append", "complete"), rank=91
    ),
    CatalogueEntry("table", "table(name, format=ANOTHER)", OTHER_TABLE_TRAITS, rank=92),
)
CATALOG = "spark.sql.catalogImplementation"


@dataclass(frozen=True, slots=True)
class TableSink(Sink):
    name: str
    format: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    kind = "table"

    @property
    def traits(self) -> Traits:
        return table_traits(self.format)

    @property
    def output_modes(self) -> tuple[str, ...]:
        """The output modes; all for an unknown format, as Spark checks at the start."""
        if self.format in FILE_FORMATS:
            return ("append",)
        return ("append", "complete") if self.format in CONNECTORS else ("append", "update", "complete")

    @property
    def connectors(self) -> tuple[str, ...]:
        return CONNECTORS.get(self.format, ())

    def identity(self) -> Identity:
        return {"kind": self.kind, "name": self.name, "format": self.format}

    def check(self, frame: DataFrame, context: WriteContext, /) -> None:
        """The table must survive a restart, and have these columns if it exists.

        Spark checks neither for file tables. Raises PipelineError.
        """
        if self.format not in FILE_FORMATS:
            return
        spark = frame.sparkSession
        lasting = spark.conf.get(CATALOG, "in-memory") != "in-memory"
        if not lasting and "path" not in {name.lower() for name in self.options}:
            raise PipelineError(
                "table-catalog",
                f"Table {self.name} of stream {context.stream} would be forgotten when the run ends: Spark's catalog "
                "is in memory, and a restart could not create the table over its own files",
                expected=f"{CATALOG}=hive, or a path for the table",
                found=f"{CATALOG}=in-memory",
                hint=f'set "{CATALOG}" = "hive" under [spark] in slackwater.toml, or give sinks.table(..., path=...)',
            )
        if not spark.catalog.tableExists(self.name):
            return
        wanted, there = (
            {column.name.lower(): column.dataType.simpleString() for column in rows.schema.fields}
            for rows in (frame, spark.table(self.name))
        )
        names = sorted(column for column in wanted.keys() | there.keys() if wanted.get(column) != there.get(column))
        if names:
            raise PipelineError(
                "sink-schema",
                f"Table {self.name} has different columns than the rows of the stream",
                expected=", ".join(f"{column}: {there.get(column, 'no such column')}" for column in names),
                found=", ".join(f"{column}: {wanted.get(column, 'no such column')}" for column in names),
                hint="select the columns that the table has, or change the table: ALTER TABLE",
            )

    def attach(self, writer: DataStreamWriter, _context: WriteContext, /) -> DataStreamWriter:
        return writer.format(self.format).options(**self.options)

    def start(self, writer: DataStreamWriter, context: WriteContext, /) -> StreamingQuery:
        return self.attach(writer, context).toTable(self.name)


def table(name: str, format: str = "parquet", **options: object) -> TableSink:
    """A table of Spark's catalog, created by the first start where it does not exist.

    ``path`` among the options is where the files of a new table are, relative to where the application is started.
    Raises PipelineError for a name, format or option that cannot be used.
    """
    for what, value in (("name", name), ("format", format)):
        if not is_text(value):
            raise PipelineError(
                "table-name",
                f"The table sink cannot use this {what}",
                expected='such as sinks.table("db.clicks", format="parquet")',
                found=repr(value),
            )
    given = option_strings(options, ("checkpointlocation",))
    # Spark's catalog refuses a path without scheme and leading slash.
    chosen = {key: absolute(value) if key.lower() == "path" else value for key, value in given.items()}
    return TableSink(name, format.lower(), chosen)


def table_traits(table_format: str) -> Traits:
    if table_format in FILE_FORMATS:
        return FILE_TABLE_TRAITS
    return LOG_TABLE_TRAITS if table_format in CONNECTORS else OTHER_TABLE_TRAITS


class WrittenTable(OpaqueOutput):
    """A table at a path: Spark's own writer commits query id and batch number."""

    def __init__(self, table_format: str, path: str, location: str) -> None:
        super().__init__("table", table_traits(table_format), location)
        self._table: Mapping[str, str] = {"kind": table_format, "path": path}

    def written_by(self, query_id: str) -> int | None:
        """The query's newest batch; unknown without a mark, as snapshots expire with their marks."""
        return (open_output(self._table).transactions(query_id) or {}).get(query_id)

    def of_query(self, query_id: str, /) -> Output:
        """The table itself if cuts and swaps can carry the query id."""
        return open_output(self._table).filled_by(query_id) or _Marked(self, query_id)


class NamedTable(WrittenTable):
    """A catalog's table. Parts that only Spark can read are not damage."""

    def written_by(self, query_id: str) -> int | None:
        """Raises SinkUnchecked if the table's log is missing or unreadable."""
        try:
            if not open_output(self._table).exists:
                raise self._unchecked("no log of the table; its catalog may not be a directory catalog")
            return super().written_by(query_id)
        except SinkUnchecked:
            raise
        except (OSError, SlackwaterError) as error:
            raise self._unchecked(str(error)) from error

    def of_query(self, query_id: str, /) -> Output:
        output = open_output(self._table)
        with suppress(OSError, SlackwaterError):
            if output.exists and (filled := output.filled_by(query_id)) is not None:
                return filled
        return _Marked(self, query_id)

    def _unchecked(self, found: str) -> SinkUnchecked:
        return table_unchecked(self.location or "", self._table["path"], found)


class _Marked(OpaqueOutput):
    """A table of which only a query's newest batch is known."""

    def __init__(self, table: WrittenTable, query_id: str) -> None:
        super().__init__("table", table.traits, table.location)
        self._table = table
        self._query = query_id

    def last_written(self) -> int | None:
        with suppress(SinkUnchecked):
            return self._table.written_by(self._query)
        return None


def open_table_output(identity: Identity) -> Output:
    """The output at the files' place, which Spark's catalog had to show.

    A file table at a known location is the file sink's directory: it can be cut.
    """
    table_format, path = identity.get("format", ""), _path_of(identity)
    location = f"table {identity.get('name', '').replace('`', '').lower()}"
    if path is not None:
        return WrittenTable(table_format, path, location)
    placed = by_place(identity)
    if placed is not None:
        return open_output({**placed, "table": location})
    if identity.get("path") and table_format in CONNECTORS:
        return NamedTable(table_format, identity["path"], location)
    return OpaqueOutput("table", table_traits(table_format), location)


def by_place(identity: Identity) -> Identity | None:
    """A file table as the file sink's output at its location, as in ``--sink``."""
    path, table_format = identity.get("path"), identity.get("format", "")
    if not path or table_format not in FILE_FORMATS:
        return None
    return {"kind": "files", "format": table_format, "path": local_path_of(path) or path}


def are_comparable(known: Identity, now: Identity) -> bool:
    """Return whether both are by name, or both by path: only the catalog maps names to paths."""
    return (_path_of(known) is None) == (_path_of(now) is None)


def _path_of(identity: Identity) -> str | None:
    table_format, name = identity.get("format", ""), identity.get("name", "")
    path = name.removeprefix(f"{table_format}.")
    return path if table_format in CONNECTORS and path != name and "/" in path else None


def recognise(calls: WriterCalls) -> Identity | None:
    """The identity for ``toTable``, or for a Delta or Iceberg table at a path, which skips existing batches."""
    if calls.function:
        return None
    if calls.table is not None:
        # A table that Spark has not yet is created at this path.
        location = calls.location or (absolute(calls.options["path"]) if "path" in calls.options else None)
        located = {"path": location} if location and calls.format in (*CONNECTORS, *FILE_FORMATS) else {}
        return {"kind": "table", "name": calls.table, "format": calls.format, **located}
    if calls.format == "iceberg" and "/" not in calls.options.get("path", "/"):
        return {"kind": "table", "name": calls.options["path"], "format": calls.format}
    if calls.format in CONNECTORS and "path" in calls.options:
        return {"kind": "table", "name": f"{calls.format}.{absolute(calls.options['path'])}", "format": calls.format}
    return None


SINK = SinkKind(
    recognise=recognise,
    comparable=are_comparable,
    by_place=by_place,
    identifying=("kind", "name", "format"),
    opener=open_table_output,
    constructor=table,
    exports=("TableSink",),
    entries=ENTRIES,
)
