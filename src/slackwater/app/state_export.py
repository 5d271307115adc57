"""State rows to a Parquet file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from slackwater.app.user_files import NewFile
from slackwater.errors import UsageError

if TYPE_CHECKING:
    from slackwater.app.inspect import StateResult


def write_parquet(result: StateResult, target: NewFile) -> dict[str, Any]:
    """All rows in one file; those that could not be decoded in a second one beside it. Raises what ``NewFile`` raises.

    Raises UsageError (``cannot-write``), too, for rows that Parquet has no type for.
    """
    path = target.path
    written: dict[str, Any] = {"file": str(path), "rows": result.rows.table.num_rows}
    _write(_storable(result.rows.table), target)
    if result.rows.undecoded is not None:
        beside = path.with_name(f"{path.stem}.undecoded{path.suffix}")
        _write(result.rows.undecoded, replace(target, path=beside))
        written["undecoded_file"] = str(beside)
    return written


def _write(table: pa.Table, target: NewFile) -> None:
    try:
        with target.open() as file:
            pq.write_table(table, file)
    except pa.ArrowException as error:
        raise UsageError(
            "cannot-write", "The rows cannot be written as Parquet", where=str(target.path), found=str(error)
        ) from error


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
