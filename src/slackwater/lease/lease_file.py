"""``lease.json`` in a stream's folder: the lease's row as a file, replaced atomically."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from slackwater.model.records import Holder, LeaseRecord
from slackwater.storage.local import LocalStore

LEASE_FILE = "lease.json"


def read_lease_file(stream_folder: Path) -> LeaseRecord | None:
    """The lease that the file records; ``None`` if there is no file, or it cannot be read or parsed.

    The ledger decides about a lease, so a damaged file must not block the stream.
    """
    try:
        fields = json.loads(LocalStore(stream_folder).read(LEASE_FILE))
        holder = fields.pop("holder")
        return LeaseRecord(**fields, holder=Holder(**holder) if holder else None)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def write_lease_file(stream_folder: Path, lease: LeaseRecord) -> None:
    """Replace the file atomically."""
    document = json.dumps(asdict(lease), indent=2, sort_keys=True) + "\n"
    LocalStore(stream_folder, private=True).write(LEASE_FILE, document.encode())
