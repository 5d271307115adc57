"""``state/<operator>/_metadata``: version 1, or 2 for a store with column families (4.0 and later)."""

from __future__ import annotations

from slackwater.core.errors import FormatError
from slackwater.core.state import OperatorMetadata, StoreInfo
from slackwater.formats.text_log import integer_field, parse_object, shown, split_log, text_field

NEWEST_VERSION = 2
_WHAT = "operator metadata"


def parse_operator_metadata(data: bytes) -> OperatorMetadata:
    version, lines = split_log(data, newest=NEWEST_VERSION)
    text = "\n".join(lines)
    record = parse_object(text, _WHAT)
    info, stores = record.get("operatorInfo"), record.get("stateStoreInfo")
    if not isinstance(info, dict) or not isinstance(stores, list):
        raise FormatError(
            "foreign", "not operator metadata", expected="operatorInfo, stateStoreInfo", found=shown(text)
        )
    properties = text_field(record, "operatorPropertiesJson", _WHAT, "{}").strip() or "{}"
    return OperatorMetadata(
        version,
        integer_field(info, "operatorId", _WHAT),
        text_field(info, "operatorName", _WHAT),
        tuple(_parse_store(store) for store in stores),
        parse_object(properties, "operator properties"),
    )


def _parse_store(value: object) -> StoreInfo:
    if not isinstance(value, dict):
        raise FormatError("foreign", "a store is no object", expected="{storeName: ...}", found=shown(repr(value)))
    paths = value.get("stateSchemaFilePaths", [])
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise FormatError("foreign", "schema paths are no strings", expected="[path]", found=shown(repr(paths)))
    return StoreInfo(
        text_field(value, "storeName", _WHAT),
        integer_field(value, "numColsPrefixKey", _WHAT, 0),
        integer_field(value, "numPartitions", _WHAT),
        # The paths are absolute and break when a checkpoint is moved or copied; the base name does not.
        tuple(path.rpartition("/")[2] for path in paths),
    )
