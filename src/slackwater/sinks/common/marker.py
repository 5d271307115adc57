"""The marker table: a target's stream and its newest batch.

The batch's own transaction updates the row, so rows and marker are both written or neither. ``epoch`` is the lease's
fence number: a higher epoch refuses a run that was believed to have ended. Statements are plain SQL. A crash empties
unlogged tables, and a failover may lose tables, between task and transaction, which therefore compares counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    DateTime,
    Engine,
    MetaData,
    String,
    Table,
    delete,
    func,
    insert,
    inspect,
    select,
    text,
    update,
)
from sqlalchemy.exc import DBAPIError, IntegrityError

from slackwater.core.checkpoint import NONE_YET
from slackwater.core.commands import command
from slackwater.core.errors import PipelineError, Refused, StreamFailed
from slackwater.core.sink import Owner, WriteContext, newest_batch
from slackwater.sinks.common.contract import LostMarker
from slackwater.sinks.common.database import Address, reading, writing
from slackwater.sinks.common.directory import Mark, MarkerTarget, fenced, owned

_UNLOGGED = """
SELECT c.oid::regclass::text FROM pg_class c
WHERE c.relpersistence = 'u' AND (c.oid = to_regclass(:name)
  OR c.oid IN (SELECT relid FROM pg_partition_tree(to_regclass(:name))))
ORDER BY 1
"""


def check_logged(connection: Connection, quoted: str, where: str) -> None:
    """Raises PipelineError for an unlogged table or partition.

    A crash or failover empties it, while the marker keeps its batches.
    """
    if connection.dialect.name != "postgresql":
        return
    found = connection.execute(text(_UNLOGGED), {"name": quoted}).scalars().all()
    if found:
        raise PipelineError(
            "sink-unlogged",
            "The table of the sink is unlogged: a crash of the server would empty it",
            where=where,
            expected="a table that is written to the write-ahead log",
            found=", ".join(found),
            hint="; ".join(f"ALTER TABLE {name} SET LOGGED" for name in found),
        )


def lost(where: str, expected: int, found: int | None) -> StreamFailed:
    """The error for lost rows; ``found`` ``None``: the staged table does not exist."""
    return StreamFailed(
        "sink-staged-lost",
        "The database lost the rows staged by the batch's tasks; no row of the batch is published",
        where=where,
        expected=f"{expected} rows",
        found="no table" if found is None else f"{found} rows",
        hint="the batch is run again; find out whether the server crashed, was restarted or failed over",
    )


TABLE = "slackwater_marker"
LOCK_WAIT_S = 30
"""How long a run's start waits for a foreign transaction."""


@dataclass(frozen=True, slots=True)
class Marker:
    """A target's row. ``schema`` is the marker table's, ``None``: the default."""

    target: str
    schema: str | None = None

    @property
    def _table(self) -> Table:
        return _table(self.schema)

    def create_table(self, engine: Engine) -> None:
        """Create the marker table; safe if a concurrent process creates it."""
        if self.table_exists(engine):
            return
        try:
            with engine.begin() as connection:
                self._table.create(connection)
        except DBAPIError:
            if not self.table_exists(engine):
                raise

    def table_exists(self, engine: Engine | Connection) -> bool:
        return bool(inspect(engine).has_table(TABLE, self.schema))

    def read(self, connection: Connection, *, lock: bool = False) -> Mark | None:
        """Read the row; ``lock`` reserves it until the transaction ends."""
        columns = (self._table.c[name] for name in Mark._fields)
        statement = select(*columns).where(self._table.c.target == self.target)
        row = connection.execute(statement.with_for_update() if lock else statement).first()
        return Mark(*row) if row is not None else None

    def claim(self, connection: Connection, owner: Owner) -> None:
        limit_wait(connection)
        known = self._insert(connection, owner, 0) or self.read(connection, lock=True)
        if known is None or known.stream_id != owner.stream_id:
            raise self._owned(known, owner.stream, owner.home)
        if known.owner != owner:
            self._update(connection, stream=owner.stream, home=owner.home)

    def record(self, connection: Connection, owner: Owner, batch: int) -> None:
        """Record a target filled by other means; an existing row is kept."""
        self._insert(connection, owner, 0, batch)

    def begin_epoch(self, connection: Connection, context: WriteContext) -> Mark:
        """Refuse all runs with a lower epoch.

        Raises Refused: ``sink-owned``, or ``sink-fenced`` if a later run has started.
        """
        limit_wait(connection)
        self._insert(connection, Owner(context.stream_id, context.stream, ""), context.epoch)
        row = self._table.c
        mine = (row.target == self.target) & (row.stream_id == context.stream_id)
        connection.execute(update(self._table).where(mine, row.epoch < context.epoch).values(epoch=context.epoch))
        return self.check_fence(self.read(connection, lock=True), context)

    def check_fence(self, mark: Mark | None, context: WriteContext) -> Mark:
        """Raises Refused if this run may not advance the mark."""
        if mark is None or mark.stream_id != context.stream_id:
            raise self._owned(mark, context.stream, None)
        if mark.epoch > context.epoch:
            raise fenced(mark.epoch, self.target, context, f"set epoch to 0 in {TABLE}")
        return mark

    def advance(self, connection: Connection, context: WriteContext, batch: int, published: int = NONE_YET) -> bool:
        """Advance the marker; ``False`` if the batch is already written.

        ``published`` is the query's newest marked batch. Raises Refused (``sink-fenced``, ``sink-owned``), or
        StreamFailed if the row was set back: batches would be missing.
        """
        row = self._table.c
        mine = (row.target == self.target) & (row.stream_id == context.stream_id)
        # Conditions of the UPDATE and not of a read before it, which another run could overtake.
        due = (row.batch_id < batch) & (row.batch_id >= published) & (row.epoch <= context.epoch)
        values = {"batch_id": batch, "epoch": context.epoch, "updated_at": func.now()}
        if connection.execute(update(self._table).where(mine, due).values(values)).rowcount == 1:
            return True
        # Locked, so that it is the row of now, and not that of when the transaction began (MySQL).
        mark = self.read(connection, lock=True)
        new = Owner(context.stream_id, context.stream, "")
        # A row that is missing although this query has published was lost; a new one would hide that.
        if mark is None and published < 0 and self._insert(connection, new, context.epoch, batch):
            return True
        shown = self.check_fence(mark or self.read(connection, lock=True), context).batch_id
        if shown < published:
            raise StreamFailed(
                "sink-set-back",
                f"The database lost batches that this run of stream {context.stream} had published",
                where=self.target,
                expected=f"batch {published} or later in {TABLE}",
                found=newest_batch(shown),
                hint="find out whether the server failed over or was restored, then: "
                f"{command('status', context.stream)}",
            )
        return False

    def move(self, connection: Connection, batch: int) -> None:
        """Set the newest batch for a cut or its undo; refuses earlier runs from now on."""
        self._update(connection, batch_id=batch, epoch=self._table.c.epoch + 1)

    def exchange(self, connection: Connection, other: Marker) -> None:
        """Exchange the newest batches; refuses earlier runs of both from now on."""
        mine, theirs = self.read(connection, lock=True), other.read(connection, lock=True)
        epoch = 1 + max(mark.epoch for mark in (mine, theirs) if mark is not None)
        self._update(connection, batch_id=NONE_YET if theirs is None else theirs.batch_id, epoch=epoch)
        other._update(connection, batch_id=NONE_YET if mine is None else mine.batch_id, epoch=epoch)

    def remove(self, connection: Connection) -> None:
        connection.execute(delete(self._table).where(self._table.c.target == self.target))

    def _update(self, connection: Connection, **values: object) -> None:
        statement = update(self._table).where(self._table.c.target == self.target)
        connection.execute(statement.values({**values, "updated_at": func.now()}))

    def _insert(self, connection: Connection, owner: Owner, epoch: int, batch: int = NONE_YET) -> Mark | None:
        """Insert the row; ``None`` if it exists, even from a concurrent transaction."""
        if self.read(connection) is not None:
            return None
        mark = Mark(owner.stream_id, owner.stream, owner.home, epoch, batch)
        row = {"target": self.target, **mark._asdict(), "updated_at": func.now()}
        try:
            # A savepoint: PostgreSQL would refuse every further statement of the transaction after a failed INSERT.
            with connection.begin_nested():
                connection.execute(insert(self._table).values(row))
        except IntegrityError:
            return None
        return mark

    def _owned(self, mark: Mark | None, stream: str, home: str | None) -> Refused:
        return owned(
            mark,
            self.target,
            stream=stream,
            home=home,
            missing=f"no row in {TABLE}",
            hint="give the stream a table or a name of its own",
        )


def limit_wait(connection: Connection) -> None:
    """Fail statements that wait long for a lock, such as a paused driver's.

    Only PostgreSQL waits for ever by default.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_WAIT_S}s'"))


@cache
def _table(schema: str | None) -> Table:
    return Table(
        TABLE,
        MetaData(schema=schema),
        Column("target", String(255), primary_key=True),
        Column("stream_id", String(64), nullable=False),
        Column("stream", String(255), nullable=False),
        Column("home", String(1024), nullable=False),
        Column("epoch", BigInteger, nullable=False),
        Column("batch_id", BigInteger, nullable=False),
        Column("updated_at", DateTime(timezone=True), nullable=False),
    )


@dataclass(frozen=True)
class MarkedTarget(MarkerTarget):
    """A marker's row. Connections are opened on demand and not kept."""

    address: Address
    marker: Marker
    location: str

    @cached_property
    def engine(self) -> Engine:
        return self.address.engine()

    @contextmanager
    def reads(self) -> Iterator[Connection]:
        with reading(self.location), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writes(self, *, create: bool = False) -> Iterator[Connection]:
        """A transaction; ``create`` makes the table of markers first if there is none."""
        with writing(self.location):
            if create:
                self.marker.create_table(self.engine)
            with self.engine.begin() as connection:
                yield connection

    def claim(self, owner: Owner) -> None:
        with self.writes(create=True) as connection:
            self.marker.claim(connection, owner)

    def lost_marker(self, table: str, marked: int) -> LostMarker:
        row = f" and delete the row of {self.marker.target} in {TABLE}" if marked >= 0 else ""
        return LostMarker(f"empty the table {table}{row}")

    def begin_epoch(self, context: WriteContext) -> None:
        """Refuse earlier runs from now on. Raises Refused if a later run has started."""
        with self.writes(create=True) as connection:
            self.marker.begin_epoch(connection, context)

    def is_written(self, context: WriteContext, batch: int) -> bool:
        with self.writes() as connection:
            return self.marker.check_fence(self.marker.read(connection), context).batch_id >= batch

    def mark(self) -> Mark | None:
        if not self.address.exists():
            return None
        with self.reads() as connection:
            return self.marker.read(connection) if self.marker.table_exists(connection) else None
