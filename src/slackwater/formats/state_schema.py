"""State schema files: versions 1 and 2 have a key and a value schema, version 3 all column families.

Versions 1 and 2 are in partition 0 (``StateSchemaCompatibilityChecker``), version 3 in ``_stateSchema/<store>/``.
Schemas inside are ``StructType.json`` (``DataType.fromJson``).
"""

import re
import struct

from slackwater.core.errors import FormatError
from slackwater.core.state import (
    ArrayType,
    AtomicType,
    ColumnFamily,
    DataType,
    DecimalType,
    Field,
    KeyEncoding,
    MapType,
    Operator,
    OperatorStore,
    StateSchema,
    StructType,
)
from slackwater.formats.text_log import integer_field, parse_object, shown, split_log, text_field


class JavaReader:
    """Reads forward. Raises ``FormatError`` (``torn``) at the end."""

    def __init__(self, data: bytes, position: int = 0) -> None:
        self._data = data
        self.position = position

    @property
    def at_end(self) -> bool:
        return self.position >= len(self._data)

    def take(self, count: int) -> bytes:
        end = self.position + count
        if count < 0 or end > len(self._data):
            found = f"{len(self._data) - self.position} bytes"
            raise FormatError("torn", "the file ends too early", expected=f"{count} more bytes", found=found)
        taken = self._data[self.position : end]
        self.position = end
        return taken

    def short(self) -> int:
        return int(struct.unpack(">h", self.take(2))[0])

    def integer(self) -> int:
        return int(struct.unpack(">i", self.take(4))[0])

    def utf(self) -> str:
        """``readUTF``: a 16-bit length and modified UTF-8 (surrogates by themselves, NUL in two bytes)."""
        length = int(struct.unpack(">H", self.take(2))[0])
        raw = self.take(length)
        try:
            # Modified UTF-8 has a character above U+FFFF as two surrogates, which the way through UTF-16 joins.
            text = raw.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError as error:
            raise FormatError("foreign", "not a Java string", expected="modified UTF-8", found=str(error)) from error


_VERSION = re.compile(r"v(\d{1,9})")
_NEWEST_VERSION = 3
_MOST_CHUNKS = 4096
_MOST_FAMILIES = 10_000
_ENCODER = re.compile(r"(.+?)(?:Key)?StateEncoderSpec")


def parse_state_schema(data: bytes) -> StateSchema:
    if not data:
        raise FormatError("empty", "the file has no bytes", expected="a schema version", found="0 bytes")
    reader = JavaReader(data)
    match = _VERSION.fullmatch(reader.utf())
    if match is None:
        raise FormatError("foreign", "not a state schema", expected="v1, v2 or v3", found=shown(repr(data[:16])))
    version = int(match[1])
    if version == 1:
        families = [ColumnFamily("default", parse_struct(reader.utf()), parse_struct(reader.utf()))]
    elif version == 2:  # noqa: PLR2004
        families = [ColumnFamily("default", parse_struct(_big(reader)), parse_struct(_big(reader)))]
    elif version == _NEWEST_VERSION:
        families = [_family(reader) for _ in range(_count(reader, _MOST_FAMILIES))]
    else:
        raise FormatError("too-new", "a version unknown to Spark 4.3", expected="v1, v2 or v3", found=match[0])
    if not reader.at_end:
        raise FormatError("foreign", "bytes after the schema", expected="the end", found=f"at byte {reader.position}")
    return StateSchema(version, tuple(families))


def _count(reader: JavaReader, most: int) -> int:
    count = reader.integer()
    if not 0 <= count <= most:
        raise FormatError("foreign", "not a count", expected=f"0 to {most}", found=str(count))
    return count


def _big(reader: JavaReader) -> str:
    """A string in chunks of at most 65,535 characters, the limit of ``writeUTF``."""
    return "".join(reader.utf() for _ in range(_count(reader, _MOST_CHUNKS)))


def _family(reader: JavaReader) -> ColumnFamily:
    name = reader.utf()
    key_id, key = reader.short(), parse_struct(_big(reader))
    value_id, value = reader.short(), parse_struct(_big(reader))
    encoder, what = _big(reader), "a key encoder"
    record = parse_object(encoder, what)
    ordering = record.get("orderingOrdinals", [])
    if not isinstance(ordering, list) or not all(isinstance(ordinal, int) for ordinal in ordering):
        raise FormatError("foreign", "the ordinals are no numbers", expected="[0, ...]", found=shown(encoder))
    encoding = KeyEncoding(
        # Names of classes: `NoPrefixKeyStateEncoderSpec` is the kind `NoPrefix`.
        _ENCODER.sub(r"\1", text_field(record, "keyStateEncoderType", what)),
        integer_field(record, "numColsPrefixKey", what, 0),
        tuple(ordering),
    )
    user_key = _big(reader)
    # A variable without a user key has a struct of no fields, written as "{    }".
    has_user_key = user_key.strip("{} ") != ""
    return ColumnFamily(
        name,
        key,
        value,
        encoding,
        user_key=parse_struct(user_key) if has_user_key else None,
        key_schema_id=key_id,
        value_schema_id=value_id,
    )


_DECIMAL = re.compile(r"decimal\((\d{1,2}),(-?\d{1,2})\)")
_ATOMIC = re.compile(
    r"void|null|boolean|byte|short|integer|long|float|double|decimal|string|binary|date|timestamp|timestamp_ntz"
    r"|timestamp_ltz|variant|interval( (year|month|day|hour|minute|second)( to (month|hour|minute|second))?)?"
    r"|(char|varchar|time)\(\d+\)|string collate \w+|(geometry|geography)\(.+\)"
)
"""Names in ``DataType.nameToType`` of Spark 4.3, which fails on others."""
_FIELD_KEYS = ({"name", "type", "nullable", "metadata"}, {"name", "type", "nullable"})
_WIDEST_DECIMAL = 38
_DEEPEST = 100


def parse_struct(text: str) -> StructType:
    parsed = parse_type(parse_object(text, "a schema"))
    if not isinstance(parsed, StructType):
        raise _foreign(text)
    return parsed


def parse_type(value: object, depth: int = 0) -> DataType:
    if depth > _DEEPEST:
        raise _foreign("types nested too deep")
    if isinstance(value, str):
        return _parse_name(value)
    if not isinstance(value, dict):
        raise _foreign(repr(value))
    match value.get("type"):
        case "struct":
            fields = value.get("fields")
            if not isinstance(fields, list):
                raise _foreign(repr(fields))
            return StructType(tuple(_parse_field(field, depth) for field in fields))
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
        if _ATOMIC.fullmatch(name) is None:
            raise FormatError("too-new", "a type unknown to Spark 4.3", expected="a name of a type", found=shown(name))
        return AtomicType(name)
    precision, scale = int(match[1]), int(match[2])
    if not 1 <= precision <= _WIDEST_DECIMAL or scale > precision:
        raise _foreign(name)
    return DecimalType(precision, scale)


def _parse_field(field: object, depth: int) -> Field:
    if not isinstance(field, dict) or field.keys() not in _FIELD_KEYS or not isinstance(field["name"], str):
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


_NEWEST_METADATA_VERSION = 2
_WHAT = "operator metadata"


def parse_operator_metadata(data: bytes) -> Operator:
    """The operator, with stores without schemas."""
    _, lines = split_log(data, newest=_NEWEST_METADATA_VERSION)
    text = "\n".join(lines)
    record = parse_object(text, _WHAT)
    info, stores = record.get("operatorInfo"), record.get("stateStoreInfo")
    if not isinstance(info, dict) or not isinstance(stores, list):
        raise FormatError(
            "foreign", "not operator metadata", expected="operatorInfo, stateStoreInfo", found=shown(text)
        )
    properties = text_field(record, "operatorPropertiesJson", _WHAT, "{}").strip() or "{}"
    number, name = integer_field(info, "operatorId", _WHAT), text_field(info, "operatorName", _WHAT)
    parsed: list[OperatorStore] = []
    partitions = 0
    for store in stores:
        if not isinstance(store, dict):
            raise FormatError("foreign", "a store is no object", expected="{storeName: ...}", found=shown(repr(store)))
        paths = store.get("stateSchemaFilePaths", [])
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise FormatError("foreign", "schema paths are no strings", expected="[path]", found=shown(repr(paths)))
        parsed.append(
            OperatorStore(
                text_field(store, "storeName", _WHAT),
                prefix_columns=integer_field(store, "numColsPrefixKey", _WHAT, 0),
                # The paths are absolute and break when a checkpoint is moved or copied; the base name does not.
                schema_files=tuple(path.rpartition("/")[2] for path in paths),
            )
        )
        partitions = max(partitions, integer_field(store, "numPartitions", _WHAT))
    return Operator(
        number,
        name,
        inferred=False,
        partitions=partitions,
        stores=tuple(parsed),
        properties=parse_object(properties, "operator properties"),
    )
