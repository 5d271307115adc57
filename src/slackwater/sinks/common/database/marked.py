"""A database target, known by its marker's row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from slackwater.core.sink import Owner, WriteContext
from slackwater.sinks.common.database.address import Address
from slackwater.sinks.common.database.marker import TABLE, Marker
from slackwater.sinks.common.database.problems import reading, writing
from slackwater.sinks.common.mark import NONE_YET, Mark

if TYPE_CHECKING:
    from sqlalchemy import Engine


@dataclass(frozen=True)
class MarkedTarget:
    """A marker's row. Connections are opened on demand and not kept."""

    address: Address
    marker: Marker
    location: str

    @cached_property
    def engine(self) -> Engine:
        return self.address.engine()

    def last_written(self) -> int:
        mark = self._mark()
        return NONE_YET if mark is None else mark.batch_id

    def owner(self) -> Owner | None:
        mark = self._mark()
        return None if mark is None else mark.owner

    def claim(self, owner: Owner) -> None:
        with writing(self.location):
            self.marker.create_table(self.engine)
            with self.engine.begin() as connection:
                self.marker.claim(connection, owner)

    def how_to_empty(self, table: str, marked: int) -> str:
        row = f" and delete the row of {self.marker.target} in {TABLE}" if marked >= 0 else ""
        return f"empty the table {table}{row}"

    def begin_epoch(self, context: WriteContext) -> None:
        """Refuse earlier runs from now on. Raises Refused if a later run has started."""
        with writing(self.location):
            self.marker.create_table(self.engine)
            with self.engine.begin() as connection:
                self.marker.begin_epoch(connection, context)

    def is_written(self, context: WriteContext, batch: int) -> bool:
        with writing(self.location), self.engine.connect() as connection:
            return self.marker.check_fence(self.marker.read(connection), context).batch_id >= batch

    def _mark(self) -> Mark | None:
        if not self.address.exists():
            return None
        with reading(self.location), self.engine.connect() as connection:
            return self.marker.read(connection) if self.marker.table_exists(connection) else None
