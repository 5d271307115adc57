"""State rows to a Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from slackwater.errors import UsageError

if TYPE_CHECKING:
    from slackwater.app.inspect import StateResult


def write_parquet(result: StateResult, target: str) -> dict[str, Any]:
    """All rows in one file; those that could not be decoded in a second one beside it. Raises ``UsageError``."""
    path = Path(target)
    written: dict[str, Any] = {"file": target, "rows": result.rows.table.num_rows}
    try:
        pq.write_table(_storable(result.rows.table), path)
        if result.rows.undecoded is not None:
            beside = path.with_name(f"{path.stem}.undecoded{path.suffix}")
            pq.write_table(result.rows.undecoded, beside)
            written["undecoded_file"] = str(beside)
    except (OSError, pa.ArrowException) as error:
        raise UsageError("cannot-write", "The rows cannot be written there", where=target, found=str(error)) from error
    return written


def _storable(table: pa.Table) -> pa.Table:
    """Parquet has no struct without columns and no type for nothing; such columns are left out."""
    for name in table.column_names:
        kind = _storable_type(table.schema.field(name).type)
        if kind is None:
            table = table.drop_columns([name])
        elif kind != table.schema.field(name).type:
            index = table.schema.get_field_index(name)
            table = table.set_column(index, name, _narrow(table.column(name), kind))
    return table


def _storable_type(kind: pa.DataType) -> pa.DataType | None:
    if pa.types.is_null(kind):
        return None
    if not pa.types.is_struct(kind):
        return kind
    fields = [(field.name, _storable_type(field.type)) for field in kind]
    kept = [pa.field(name, inner) for name, inner in fields if inner is not None]
    return pa.struct(kept) if kept else None


def _narrow(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """The same rows with only the fields of ``kind``."""
    return pa.chunked_array([_narrow_array(chunk, kind) for chunk in column.chunks], kind)


def _narrow_array(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_struct(kind):
        return array
    fields = [_narrow_array(array.field(field.name), field.type) for field in kind]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(fields, fields=list(kind), mask=mask)
