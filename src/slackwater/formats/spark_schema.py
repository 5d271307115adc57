"""``StructType.json``: the schemas inside state schema files (``DataType.fromJson``)."""

from __future__ import annotations

import re

from slackwater.errors import FormatError
from slackwater.formats.text_log import parse_object, shown
from slackwater.model.schema import ArrayType, AtomicType, DataType, DecimalType, Field, MapType, StructType

_DECIMAL = re.compile(r"decimal\((\d{1,2}),(-?\d{1,2})\)")
_WIDEST_DECIMAL = 38
_DEEPEST = 100


def parse_struct(text: str) -> StructType:
    """A struct from its JSON. Raises ``FormatError``."""
    parsed = parse_type(parse_object(text, "a schema"))
    if not isinstance(parsed, StructType):
        raise _foreign(text)
    return parsed


def parse_type(value: object, depth: int = 0) -> DataType:
    """Any type from its JSON value. Names that are not known stay as they are. Raises ``FormatError``."""
    if depth > _DEEPEST:
        raise _foreign("types nested too deep")
    if isinstance(value, str):
        return _parse_name(value)
    if not isinstance(value, dict):
        raise _foreign(repr(value))
    match value.get("type"):
        case "struct":
            return _parse_fields(value.get("fields"), depth)
        case "array":
            return ArrayType(parse_type(value.get("elementType"), depth + 1))
        case "map":
            return MapType(parse_type(value.get("keyType"), depth + 1), parse_type(value.get("valueType"), depth + 1))
        case "udt":
            return parse_type(value.get("sqlType"), depth + 1)
        case _:
            raise _foreign(repr(value))


def _parse_name(name: str) -> DataType:
    match = _DECIMAL.fullmatch(name)
    if match is None:
        return AtomicType(name)
    precision, scale = int(match[1]), int(match[2])
    if not 1 <= precision <= _WIDEST_DECIMAL or scale > precision:
        raise _foreign(name)
    return DecimalType(precision, scale)


def _parse_fields(fields: object, depth: int) -> StructType:
    if not isinstance(fields, list):
        raise _foreign(repr(fields))
    return StructType(tuple(_parse_field(field, depth) for field in fields))


def _parse_field(field: object, depth: int) -> Field:
    if not isinstance(field, dict) or not isinstance(field.get("name"), str):
        raise _foreign(repr(field))
    metadata = field.get("metadata", {})
    return Field(
        field["name"],
        parse_type(field.get("type"), depth + 1),
        nullable=field.get("nullable") is not False,
        metadata=metadata if isinstance(metadata, dict) else {},
    )


def _foreign(found: str) -> FormatError:
    return FormatError("foreign", "not a schema of Spark", expected="StructType as JSON", found=shown(found))
