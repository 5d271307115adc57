"""The id of a Delta table, read by deltalake; imported when a table is asked for it."""

from __future__ import annotations

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from slackwater.core.errors import EnvironmentMissing


def table_id(location: str) -> str:
    """The id in the table's newest metadata. Raises EnvironmentMissing (``store-unreachable``)."""
    try:
        return str(DeltaTable(location).metadata().id)
    except (DeltaError, OSError) as error:
        raise EnvironmentMissing(
            "store-unreachable",
            f"The Delta table cannot be read: {error}",
            where=location,
            hint="read it with Spark to see whether it is damaged",
        ) from error
