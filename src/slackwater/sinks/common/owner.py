"""The owner file: JSON in the output directory that names its stream."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict

from slackwater.core.errors import Refused, SinkUnreadable
from slackwater.core.sink import Owner
from slackwater.storage.protocols import WriteStore

MARK = "_slackwater.json"
"""Spark, pandas and pyarrow ignore names that start with an underscore."""


def read_owner(store: WriteStore) -> Owner | None:
    try:
        data = store.read(MARK)
    except FileNotFoundError:
        return None
    return parse_owner(data, f"{store.location}/{MARK}", MARK)


def parse_owner(data: bytes | str, where: str, name: str) -> Owner:
    try:
        fields = json.loads(data)
        return Owner(**{name: _string(fields[name]) for name in ("stream_id", "stream", "home")})
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SinkUnreadable(
            "sink-owner-unreadable",
            "The record of which stream owns the output is malformed",
            where=where,
            expected='{"stream_id": ..., "stream": ..., "home": ...}',
            found=repr(data[:80]),
            hint=f"restore {name} from a backup, or remove it if only this stream writes to the output",
        ) from error


def claim(store: WriteStore, owner: Owner) -> None:
    known = read_owner(store)
    if known is None:
        known = _create(store, owner)
    check_claim(known, owner, store.location)
    # The same stream under another name, or in a home that was moved.
    if known != owner:
        store.write(MARK, _render(owner))


def release(store: WriteStore, stream_id: str) -> None:
    known = read_owner(store)
    if known is not None and known.stream_id == stream_id:
        store.delete(MARK)


def check_claim(known: Owner, owner: Owner, where: str) -> None:
    if known.stream_id != owner.stream_id:
        raise Refused(
            "sink-owned",
            f"Another stream writes to the output of stream {owner.stream}: it would skip batches of this one",
            where=where,
            expected=f"stream {owner.stream} of home {owner.home}",
            found=f"stream {known.stream} of home {known.home}",
            hint="give the stream an output directory of its own",
        )


def _create(store: WriteStore, owner: Owner) -> Owner:
    """Create the file; returns the owner that is now recorded: a different process may be faster."""
    with suppress(FileExistsError):
        store.create(MARK, _render(owner))
    return read_owner(store) or owner


def _render(owner: Owner) -> bytes:
    return (json.dumps(asdict(owner), indent=2, ensure_ascii=False) + "\n").encode()


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(type(value).__name__)
    return value
