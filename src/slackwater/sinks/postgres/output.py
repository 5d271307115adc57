"""A PostgreSQL table's content: newest batch and owner from the marker's row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from slackwater.core.checkpoint import NONE_YET, Damage
from slackwater.core.errors import Refused
from slackwater.core.sink import Cut, Owner, Swap, Traits, newest_batch
from slackwater.sinks.common.changes import (
    SwapRecord,
    absent,
    check_parties,
    check_unmoved,
    check_whole,
    damaged,
    incomplete,
    record,
    start,
    started,
)
from slackwater.sinks.common.contract import Output
from slackwater.sinks.common.database import Address, address_in, no_streaming_source, reading, require_table, writing
from slackwater.sinks.common.marker import TABLE, MarkedTarget, Marker, limit_wait
from slackwater.sinks.postgres import changes, traits_of
from slackwater.sinks.postgres.changes import lock_writers_out, others_after, state_of_rows, unmarked_rows
from slackwater.sinks.postgres.table import BATCH_COLUMN, PostgresName, drop_orphans, read_columns, run, table_name
from slackwater.storage.protocols import WriteStore

if TYPE_CHECKING:
    from sqlalchemy import Connection


def open_postgres_output(identity: Mapping[str, str]) -> PostgresOutput:
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

    shows_rows = True

    def may_have_rows(self, marked: int) -> bool:
        with reading(self.location), self.target.engine.connect() as connection:
            there = read_columns(connection, self._table)
            return marked >= 0 or bool(there and run(connection, f"SELECT 1 FROM {self._table.quoted} LIMIT 1"))

    def how_to_empty(self, marked: int) -> str:
        return self.target.how_to_empty(self._table.quoted, marked)

    def damage(self, *, thorough: bool = False) -> tuple[Damage, ...]:
        """A missing table, or rows of unmarked batches, which somebody else wrote."""
        written = self.last_written()
        with reading(self.location), self.target.engine.connect() as connection:
            if not read_columns(connection, self._table):
                missing = Damage(str(self._table), "missing", f"rows of batches up to {written}", "no table")
                return (missing,) if written >= 0 else ()
            if not (thorough and self._keep_batch_id):
                return ()
            newest = run(connection, f"SELECT max({BATCH_COLUMN}) FROM {self._table.quoted}")[0][0]
        if newest is None or newest <= written:
            return ()
        return (Damage(str(self._table), "foreign", f"rows of batches up to {written}", f"rows of batch {newest}"),)

    def cut_after(self, batch: int, _recorded: Mapping[int, str]) -> Cut:
        written = self.last_written()
        if batch >= written:
            return Cut(batch, ())
        self._check_cuttable()
        with reading(self.location), self.target.engine.connect() as connection:
            rows = changes.rows_after(connection, self._table, batch)
            found = others_after(connection, self._table, batch, written, keep_batch_id=True)
        return Cut(batch, tuple(range(batch + 1, written + 1)), rows=rows, others=found)

    def cut(self, cut: Cut, _recorded: Mapping[int, str], backup: WriteStore) -> None:
        if not cut.batches:
            return
        self._check_cuttable()
        record = changes.RECORD.read(backup)
        if record is None:
            if cut != self.cut_after(cut.after, {}):
                raise changes.mismatch(cut, self.location)
            record = changes.make_record(self.location, cut)
            changes.RECORD.write(backup, record)
        changes.check_record(record, cut, self.location)
        with writing(self.location), self.target.engine.begin() as connection:
            changes.delete_batches(connection, self._table, self.target.marker, record, cut.others)

    def check_restore(self, cut: Cut, backup: WriteStore) -> None:
        record = changes.RECORD.read(backup)
        if record is not None and cut.batches:
            changes.check_record(record, cut, self.location)
            with reading(self.location), self.target.engine.begin() as connection:
                changes.check_restore(connection, self._table, self.target.marker, record)

    def restore(self, cut: Cut, backup: WriteStore) -> None:
        record = changes.RECORD.read(backup)
        if record is None or not cut.batches:
            return  # The cut was interrupted before it recorded anything, so that nothing was removed.
        changes.check_record(record, cut, self.location)
        with writing(self.location), self.target.engine.begin() as connection:
            changes.restore(connection, self._table, self.target.marker, record)

    def staged(self, operation: str) -> PostgresOutput:
        staging = self._table.staging(operation)
        return PostgresOutput(self.target.address, staging, keep_batch_id=self._keep_batch_id)

    def without_marker(self) -> PostgresOutput:
        return PostgresOutput(self.target.address, self._table, keep_batch_id=self._keep_batch_id, marked=False)

    def stage(self, operation: str, after: int, _recorded: Mapping[int, str]) -> None:
        staging = self._table.staging(operation)
        with writing(self.location):
            self.target.marker.create_table(self.target.engine)
            with self.target.engine.begin() as connection:
                if changes.state_of(connection, self._table, operation) is not None:
                    return
                changes.check_supported(connection, self._table)
                changes.create(connection, self._table, operation)
                self._fill(connection, staging, after)

    def swap_of(self, operation: str, stream_id: str, after: int = NONE_YET) -> Swap:
        written, keep = self.last_written(), self._keep_batch_id
        with reading(self.location), self.target.engine.connect() as connection:
            changes.check_supported(connection, self._table)
            state = state_of_rows(connection, self._table)
            found = (
                others_after(connection, self._table, after, written, keep_batch_id=keep)
                if self._marked
                else unmarked_rows(connection, self._table, keep_batch_id=keep)
            )
        return Swap(operation, stream_id, written, version=state, others=found)

    def whole(self, _recorded: Mapping[int, str]) -> Cut:
        """The whole table, without rows or files: no stream reads PostgreSQL, and a swap needs no batch ids."""
        return Cut(NONE_YET, tuple(range(self.last_written() + 1)))

    def check_swap(self, swap: Swap, backup: WriteStore) -> None:
        started(backup, self.location, swap)
        with reading(self.location), self.target.engine.connect() as connection:
            self._check_swap(connection, swap)

    def swap(self, swap: Swap, backup: WriteStore) -> None:
        self.check_swap(swap, backup)
        start(backup, self.location, swap)
        staging = self._table.staging(swap.operation)
        with writing(self.location), self.target.engine.begin() as connection:
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
            with reading(self.location), self.target.engine.connect() as connection:
                self._has_to_go_back(connection, known, swap.operation, lock=False)

    def swap_back(self, swap: Swap, backup: WriteStore) -> None:
        known = started(backup, self.location, swap)
        if known is None:
            return  # The swap was interrupted before it recorded anything, so that nothing was changed.
        with writing(self.location), self.target.engine.begin() as connection:
            if self._has_to_go_back(connection, known, swap.operation, lock=True):
                changes.exchange(connection, self._table, swap.operation, "staged")

    def discard_staged(self, operation: str) -> None:
        self._discard(operation, "staged")

    def discard_replaced(self, operation: str) -> None:
        self._discard(operation, "replaced")

    def reader_path(self) -> str:
        raise no_streaming_source(" of PostgreSQL", self.location)

    def _fill(self, connection: Connection, staging: PostgresName, after: int) -> None:
        """Copy batches up to ``after`` and others' rows. Raises Refused if missing."""
        # While the row is locked no batch is published.
        limit_wait(connection)
        mark = self.target.marker.read(connection, lock=True)
        written = NONE_YET if mark is None else mark.batch_id
        if after == NONE_YET:
            # Without batch ids rows can be kept only where the stream has written none of them.
            if self._keep_batch_id or (written == NONE_YET and self._marked):
                changes.fill(connection, self._table, staging, after if self._keep_batch_id else None)
            return
        if mark is None or mark.owner is None or written < after:
            raise incomplete(self.location, f"batches up to {after}", f"{newest_batch(written)} as the newest")
        if written > after:
            self._check_cuttable()
        changes.fill(connection, self._table, staging, after if written > after else None)
        Marker(str(staging), staging.schema).record(connection, mark.owner, after)

    def _check_swap(self, connection: Connection, swap: Swap) -> None:
        staged = self.staged(swap.operation)
        state = changes.state_of(connection, self._table, swap.operation)
        if state == "replaced":
            return
        if state is None:
            raise absent(staged.location, swap.operation, "no table")
        check_whole(staged.location, staged.damage(thorough=True))
        check_parties(self.location, swap, self.last_written(), self.owner(), staged.owner())
        changes.check_supported(connection, self._table)
        check_unmoved(self.location, swap, state_of_rows(connection, self._table))

    def _has_to_go_back(self, connection: Connection, known: SwapRecord, operation: str, *, lock: bool) -> bool:
        if lock:
            limit_wait(connection)
        mark = self.target.marker.read(connection, lock=lock)
        state = changes.state_of(connection, self._table, operation)
        if state is None:
            raise damaged(str(self._table.staging(operation)), "the table before the swap", "no table")
        if state == "replaced":
            changes.check_supported(connection, self._table)
            if lock:
                lock_writers_out(connection, self._table)
            self._check_own(connection, known, NONE_YET if mark is None else mark.batch_id)
        return state == "replaced"

    def _check_own(self, connection: Connection, known: SwapRecord, written: int) -> None:
        """Raises Refused (``restore-conflict``) for foreign changes since the swap in ``known``."""
        keep, since = self._keep_batch_id, written > known.version
        if not known.state or (since and not keep):
            return  # Only a table with batch ids shows which rows the stream has written since.
        state = state_of_rows(connection, self._table, known.version if since else None)
        found = others_after(connection, self._table, known.version, written, keep_batch_id=keep)
        if state != known.state or found.any:
            raise changes.conflict(self.location, known.state, state, found)

    def _discard(self, operation: str, state: changes.State) -> None:
        staging = self._table.staging(operation)
        with writing(self.location), self.target.engine.begin() as connection:
            if changes.state_of(connection, self._table, operation) == state:
                mark = Marker(str(staging), staging.schema).read(connection)
                if mark is not None:
                    drop_orphans(connection, staging, mark.stream_id)
                changes.drop(connection, staging)

    def _check_cuttable(self) -> None:
        if not self._keep_batch_id:
            raise Refused(
                "sink-uncuttable",
                f"Table {self._table} does not show to which batch a row belongs",
                where=self.location,
                expected=f"keep_batch_id=True, with a column {BATCH_COLUMN}",
                found="rows without a batch id",
                hint=f"rebuild at the last written batch, which removes nothing ({TABLE} has it)",
            )
