"""Shows rows of a state store as a page, a document ``slackwater.inspect.state/1`` (docs/inspect.md) or a Parquet file.

Imported on demand: it needs numpy and pyarrow.
"""

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from slackwater.checkpoint.operators import OperatorReader
from slackwater.checkpoint.state.reader import StateChoice, StateReader, StateRows
from slackwater.cli.common.arguments import Format
from slackwater.cli.common.console import Document, print_json, write_page
from slackwater.cli.common.declare_reading import ROWS_SHOWN
from slackwater.cli.verbs.inspect import READ_WITH_DAMAGE, StateRequest, open_target
from slackwater.core.commands import command
from slackwater.core.errors import NotFound, UsageError
from slackwater.core.state import JOIN, Operator, OperatorStore
from slackwater.core.units import EPOCH
from slackwater.storage.user_files import NewFile

STATE_SCHEMA = "slackwater.inspect.state/1"
_SIDES = ("left", "right")


def show_state(
    target: str, request: StateRequest, *, home: str | None, limit: int | None, export: NewFile | None, shown_as: Format
) -> int:
    place, found = inspect_state(target, request, home=home)
    written = write_parquet(found, export) if export is not None else None
    shown = 0 if export is not None and limit is None else ROWS_SHOWN if limit is None else limit
    rows = state_document(place, found, shown)
    if written is not None:
        rows["written"] = written
    if shown_as is Format.JSON:
        print_json(rows)
    else:
        write_page(state_page(rows))
    return READ_WITH_DAMAGE if found.damage else 0


def state_document(place: Document, found: StateRows, limit: int | None) -> Document:
    """Returns at most ``limit`` rows as JSON values; bytes are base64."""
    return {
        "schema": STATE_SCHEMA,
        **place,
        "total": found.table.num_rows,
        "rows": json_rows(found.table, limit),
        "undecoded": json_rows(found.undecoded, limit) if found.undecoded is not None else [],
        "damage": [item._asdict() for item in found.damage],
    }


def state_page(rows: Document) -> str:
    operator = rows["operator"]
    head = (
        f"operator {operator['id']} ({operator['name']}), {rows['store']}, after batch {rows['batch']}: "
        f"{rows['total']:,} rows"
    )
    lines = [head, *(json.dumps(row, ensure_ascii=False) for row in rows["rows"])]
    if rows["undecoded"]:
        lines.append(f"not decoded: {rows['undecoded'][0]['reason']}")
        lines.extend(json.dumps(row, ensure_ascii=False) for row in rows["undecoded"])
    if "written" in rows:
        lines.append(f"{rows['written']['rows']:,} rows written to {rows['written']['file']}")
    lines.extend(
        f"damage: {item['path']}: {item['kind']}; expected {item['expected']}; found {item['found']}"
        for item in rows["damage"]
    )
    return "\n".join(lines) + "\n"


def json_rows(table: pa.Table, limit: int | None) -> list[Document]:
    part = table if limit is None else table.slice(0, limit)
    columns = {
        name: [json_value(scalar) for chunk in part.column(name).chunks for scalar in chunk]
        for name in part.column_names
    }
    return [{name: columns[name][index] for name in columns} for index in range(part.num_rows)]


def json_value(scalar: pa.Scalar) -> Any:
    """Times outside of Python's calendar stay numbers."""
    if not scalar.is_valid:
        return None
    kind = scalar.type
    if pa.types.is_struct(kind):
        return {kind.field(index).name: json_value(scalar[index]) for index in range(kind.num_fields)}
    if pa.types.is_map(kind):
        return [{"key": json_value(item[0]), "value": json_value(item[1])} for item in scalar.values]
    if pa.types.is_list(kind):
        return [json_value(item) for item in scalar.values]
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _time(scalar)
    value = scalar.as_py()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    is_plain = isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value))
    return value if is_plain else str(value)


def _time(scalar: pa.Scalar) -> str | int:
    number = int(scalar.value)
    try:
        if pa.types.is_date(scalar.type):
            return (date(1970, 1, 1) + timedelta(days=number)).isoformat()
        timestamp = EPOCH + timedelta(microseconds=number)
    except OverflowError:
        return number
    text = timestamp.replace(tzinfo=None).isoformat(timespec="milliseconds" if number % 1000 == 0 else "microseconds")
    return text + ("Z" if scalar.type.tz else "")


def write_parquet(rows: StateRows, target: NewFile) -> Document:
    """All rows in a file; undecodable rows in a second file next to it. Raises as ``NewFile``, and UsageError
    (``cannot-write``) for rows that Parquet has no type for.
    """
    path = target.path
    written: Document = {"file": str(path), "rows": rows.table.num_rows}
    table = rows.table
    # Parquet has no struct without columns and no type for nothing; such columns are left out.
    for name in table.column_names:
        kind = _storable_type(table.schema.field(name).type)
        if kind is None:
            table = table.drop_columns([name])
        elif kind != table.schema.field(name).type:
            index = table.schema.get_field_index(name)
            chunks = [_narrow_array(chunk, kind) for chunk in table.column(name).chunks]
            table = table.set_column(index, name, pa.chunked_array(chunks, kind))
    _write(table, target)
    if rows.undecoded is not None:
        beside = path.with_name(f"{path.stem}.undecoded{path.suffix}")
        _write(rows.undecoded, replace(target, path=beside))
        written["undecoded_file"] = str(beside)
    return written


def _write(table: pa.Table, target: NewFile) -> None:
    try:
        with target.open() as file:
            pq.write_table(table, file)
    except pa.ArrowException as error:
        raise UsageError(
            "cannot-write",
            "The rows cannot be written as Parquet",
            where=str(target.path),
            found=str(error),
            hint="show them as text or JSON instead: leave --to out",
        ) from error


def _storable_type(kind: pa.DataType) -> pa.DataType | None:
    if pa.types.is_null(kind):
        return None
    if not pa.types.is_struct(kind):
        return kind
    fields = [(field.name, _storable_type(field.type)) for field in kind]
    kept = [pa.field(name, inner) for name, inner in fields if inner is not None]
    return pa.struct(kept) if kept else None


def _narrow_array(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_struct(kind):
        return array
    fields = [_narrow_array(array.field(field.name), field.type) for field in kind]
    # ``StructArray.field`` has the values of a field only, not the nulls of the struct around them.
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(fields, fields=list(kind), mask=mask)


def inspect_state(target: str, request: StateRequest, *, home: str | None = None) -> tuple[Document, StateRows]:
    """The place of the rows, as in the document, and the rows."""
    opened = open_target(target, home, request.limits)
    batch = opened.logs.committed if request.batch is None else request.batch
    operators = OperatorReader(opened.store, opened.listing, opened.inventory)
    numbers = opened.listing.numbered_directories("state")
    if request.operator not in numbers:
        expected = f"one of {', '.join(map(str, numbers))}" if numbers else "none, as the stream keeps no state"
        raise NotFound(
            "no-such-operator", "No such stateful operator exists", where=opened.store.location,
            expected=expected, found=str(request.operator),
            hint=f"{command('inspect', target)} lists the stateful operators",
        )  # fmt: skip
    operator = operators.operator(request.operator, batch)
    choice = choose(operator, request)
    state = opened.batch_state(batch)
    partitions = state.partitions(request.operator)
    if request.partition is not None and request.partition not in partitions:
        raise NotFound(
            "no-such-partition", "There is no such partition", where=opened.store.location,
            expected=f"one of {', '.join(map(str, partitions))}", found=str(request.partition),
            hint="leave --partition out to read all of them",
        )  # fmt: skip
    reader = StateReader(state, list(operators.damage))
    name = choice.family if choice.store.with_families else choice.store.name
    shown = {"id": operator.id, "name": operator.name}
    place = {"location": opened.store.location, "operator": shown, "store": name, "batch": batch}
    return place, reader.rows(choice)


def choose(operator: Operator, request: StateRequest) -> StateChoice:
    stores = choices(operator)
    if request.side is not None:
        # The second name is that of the join's state format 4, which Spark 4.2 introduced.
        names = (f"{request.side}-keyWithIndexToValue", f"{request.side}-keyWithTsToValues")
        found = next((stores[name] for name in names if name in stores), None)
        if request.side not in _SIDES or operator.name != JOIN or found is None:
            raise UsageError(
                "no-side", f"Operator {operator.id} ({operator.name}) has no such side",
                expected="left or right of a join", found=request.side,
            )  # fmt: skip
        return StateChoice(operator, *found, side=True, partition=request.partition)
    if request.store is not None:
        wanted = [request.store]
    else:
        # Names with a $ are column families of Spark's own, such as those of timers.
        shown = [name for name in stores if not name.startswith("$")]
        wanted = shown if len(shown) == 1 else []
    chosen = next((stores[name] for name in wanted if name in stores), None)
    if chosen is None:
        raise UsageError(
            "which-store", f"Operator {operator.id} ({operator.name}) has several stores: choose one",
            expected=f"--store with one of {', '.join(stores)}" + (" or --side" if operator.name == JOIN else ""),
            found=request.store,
        )  # fmt: skip
    return StateChoice(operator, *chosen, partition=request.partition)


def choices(operator: Operator) -> Mapping[str, tuple[OperatorStore, str]]:
    """Values of ``--store``: stores without families, and the other stores' families."""
    return {
        (family.name if store.with_families else store.name): (store, family.name)
        for store in operator.stores
        for family in store.families
    }
