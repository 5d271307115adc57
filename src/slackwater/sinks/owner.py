"""The owner's mark: a JSON file in the output directory that names the stream which writes to it."""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict

from slackwater.errors import Refused, SinkUnreadable
from slackwater.model.sink import Owner
from slackwater.storage.protocols import LEFTOVER, WriteStore

MARK = "_slackwater.json"
"""Spark, pandas and pyarrow ignore names that start with an underscore."""


def read_owner(store: WriteStore) -> Owner | None:
    """The recorded owner, ``None`` if there is no mark. Raises SinkUnreadable if it cannot be parsed."""
    try:
        data = store.read(MARK)
    except FileNotFoundError:
        return None
    try:
        fields = json.loads(data)
        return Owner(**{name: _string(fields[name]) for name in ("stream_id", "stream", "home")})
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SinkUnreadable(
            "sink-owner-unreadable",
            "The file that records which stream owns the output is malformed",
            where=f"{store.location}/{MARK}",
            expected='{"stream_id": ..., "stream": ..., "home": ...}',
            found=repr(data[:80]),
            hint=f"restore {MARK} from a backup, or delete it if only this stream writes to the output",
        ) from error


def claim(store: WriteStore, owner: Owner) -> None:
    """Record the owner, once. Raises Refused (``sink-owned``) if another stream is recorded."""
    known = read_owner(store)
    if known is None:
        known = _create(store, owner)
    if known.stream_id != owner.stream_id:
        raise Refused(
            "sink-owned",
            f"Another stream writes to the output of stream {owner.stream}: it would skip batches of this one",
            where=store.location,
            expected=f"stream {owner.stream} of home {owner.home}",
            found=f"stream {known.stream} of home {known.home}",
            hint="give the stream an output directory of its own",
        )
    if known != owner:
        store.write(MARK, _render(owner))


def _create(store: WriteStore, owner: Owner) -> Owner:
    """Create the mark unless another process is faster; the owner that is recorded now."""
    temporary = f".{MARK}.{uuid.uuid4()}{LEFTOVER}"
    store.write(temporary, _render(owner))
    try:
        store.rename(temporary, MARK)
    except FileExistsError:
        store.delete(temporary)
    return read_owner(store) or owner


def _render(owner: Owner) -> bytes:
    return (json.dumps(asdict(owner), indent=2, ensure_ascii=False) + "\n").encode()


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(type(value).__name__)
    return value
