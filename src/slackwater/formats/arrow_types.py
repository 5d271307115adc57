"""The Arrow type that a Spark type becomes, for columns without rows."""

from __future__ import annotations

import pyarrow as pa

from slackwater.errors import FormatError
from slackwater.model.schema import ArrayType, AtomicType, DataType, DecimalType, MapType, StructType

_ATOMIC: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "string": pa.string(),
    "binary": pa.binary(),
    "void": pa.null(),
}


def arrow_type(kind: DataType) -> pa.DataType:
    """The type of a column of ``kind``. Raises ``FormatError`` (``too-new``) for a name that is not known."""
    match kind:
        case AtomicType(name) if name in _ATOMIC:
            return _ATOMIC[name]
        case AtomicType(name):
            raise FormatError("too-new", "a type that is not known", expected="a type of Spark 3.5 to 4.3", found=name)
        case DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case ArrayType(element):
            return pa.list_(arrow_type(element))
        case MapType(key, value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case StructType(fields):
            return pa.struct([pa.field(field.name, arrow_type(field.type)) for field in fields])
