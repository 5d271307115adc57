"""``lease.json`` in a stream's folder: the lease's row as a file, replaced atomically."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, is_dataclass
from types import NoneType
from typing import Any, get_args, get_type_hints

from slackwater.core.records import Holder, LeaseRecord
from slackwater.core.unicode import is_unicode
from slackwater.storage.location import AnyLocation
from slackwater.storage.open import open_read_store, open_write_store

LEASE_FILE = "lease.json"
INTEGER_LIMIT = 2**62
"""Numbers go to a database, whose integers have 64 bits; the next fence number is larger than the last."""


def read_lease_file(stream_folder: AnyLocation) -> LeaseRecord | None:
    """The lease that the file records; ``None`` if there is no file, or it cannot be read or parsed.

    The ledger decides about a lease, so a damaged file must not block the stream.
    """
    try:
        content = json.loads(open_read_store(stream_folder).read(LEASE_FILE))
        holder = content.pop("holder")
        lease = LeaseRecord(**content, holder=Holder(**holder) if holder else None)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return lease if _is_well_typed(lease) else None


def write_lease_file(stream_folder: AnyLocation, lease: LeaseRecord) -> None:
    """Replace the file atomically."""
    document = json.dumps(asdict(lease), indent=2, sort_keys=True) + "\n"
    open_write_store(stream_folder, private=True).write(LEASE_FILE, document.encode())


def delete_lease_file(stream_folder: AnyLocation) -> None:
    """Delete the file where it is not of this stream: a copy of a home has those of the original."""
    open_write_store(stream_folder, private=True).delete(LEASE_FILE)


def _is_well_typed(record: Any) -> bool:
    """Whether the fields of a record have the types that they are declared with: numbers, strings, other records."""
    hints = get_type_hints(type(record))
    return all(_fits(getattr(record, field.name), hints[field.name]) for field in fields(record))


def _fits(value: object, kind: Any) -> bool:
    allowed = get_args(kind) or (kind,)
    if value is None:
        return NoneType in allowed
    if isinstance(value, int):
        return type(value) in allowed and -INTEGER_LIMIT <= value < INTEGER_LIMIT
    if isinstance(value, str):
        return str in allowed and is_unicode(value)
    return is_dataclass(value) and type(value) in allowed and _is_well_typed(value)
