"""An output's owner: in a JSON file of its directory, or in a mark with its newest batch.

``epoch`` is the lease's fence number: a higher epoch refuses a run that was believed to have ended.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from typing import NamedTuple

from slackwater.core.errors import Refused, SinkUnreadable
from slackwater.core.sink import Delivery, Owner, Traits, WriteContext
from slackwater.storage.protocols import WriteStore

NONE_YET = -1
PUBLISHED_WITH_MARKER = "a batch is published in one transaction with its id in the marker table"


class Mark(NamedTuple):
    """``batch_id`` is -1 before the first batch."""

    stream_id: str
    stream: str
    home: str
    epoch: int
    batch_id: int

    @property
    def owner(self) -> Owner | None:
        return Owner(self.stream_id, self.stream, self.home) if self.stream_id else None


def marked_traits(reason: str, *, cuts: bool = False, swaps: bool = False) -> Traits:
    """Exactly-once traits of a sink with a mark in each batch; ``reason`` explains them."""
    return Traits(
        Delivery("exactly-once", reason),
        reports_last_batch=True,
        skips_known_batches=True,
        cuts=cuts,
        swaps=swaps,
        reads_known_batches=True,
        combines=True,
    )


def owned(mark: Mark | None, where: str, *, stream: str, home: str | None, missing: str, hint: str) -> Refused:
    """The error for a different stream's output; ``missing`` describes an output without a mark."""
    return Refused(
        "sink-owned",
        f"Another stream writes to the output of stream {stream}: it would skip batches of this one",
        where=where,
        expected=f"stream {stream}" + (f" of home {home}" if home else ""),
        found=f"stream {mark.stream} of home {mark.home}" if mark else missing,
        hint=hint,
    )


def fenced(mark: Mark, where: str, context: WriteContext, remedy: str) -> Refused:
    """The error for a run that a later run has replaced; ``remedy`` sets the epoch back to 0."""
    return Refused(
        "sink-fenced",
        f"A later run of stream {context.stream} has taken over its output: this run may no longer write",
        where=where,
        expected=f"epoch {mark.epoch} or later",
        found=f"epoch {context.epoch}",
        hint=f"stop this run; if no other run exists and the ledger was lost, {remedy}",
    )


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
