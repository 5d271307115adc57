"""Replaces all entries of a manifest by other ones: readers see all of the old entries or all of the new ones.

Spark reads the newest compacted entry and those after it. So one compacted entry, ``N.compact``, can hold the whole
log, and putting one with the new lines above it is the switch: one put of a file that does not exist yet. What comes
before and after only changes which entries have the lines.

Spark takes the distance of the newest two compacted entries for the interval of the log, and reads the log wrongly
unless this divides the count of entries up to the newest one. Beside ``N.compact`` there is therefore never another one
whose distance does not divide N + 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from slackwater.formats.compactible import SINK_LOG, names_read
from slackwater.sinks.common.swapping import unsupported
from slackwater.sinks.files.manifest import Manifest, batch_of, entry_lines
from slackwater.storage.protocols import LEFTOVER, WriteStore

_COMPACTED = ".compact"


def switch(store: WriteStore, target: Mapping[str, str]) -> None:
    """Make the entries below ``store`` those of ``target``, by name. Can be repeated after a kill at any point."""
    for entry in store.list(SINK_LOG):
        if entry.name.endswith(LEFTOVER) and not entry.is_dir:
            store.delete(f"{SINK_LOG}/{entry.name}")
    if entries_of(Manifest(store)) == dict(target):
        return
    whole, wanted = _gather(store), _read(target)
    if whole < 0 or _read(entries_of(Manifest(store))) != wanted:
        whole = _move(store, whole, whole + 1, wanted)
    for count in steps(whole + 1, _room_for(target, whole) + 1):
        whole = _move(store, whole, count - 1, wanted)
    # The newest compacted one first: the distance that counts is then the one to it.
    for name in sorted(target, key=lambda name: (not name.endswith(_COMPACTED), -batch_of(name))):
        _write(store, name, target[name])
    _delete(store, f"{whole}{_COMPACTED}")


def entries_of(manifest: Manifest) -> dict[str, str]:
    """All entries of a manifest, by name. Raises SinkUnreadable."""
    return {name: manifest.read(name).decode() for name in manifest.all_names()}


def steps(count: int, target: int) -> Iterator[int]:
    """The counts of entries from ``count``, exclusive, to ``target``; the distance of two in a row divides both."""
    if count == target:
        return
    if count % abs(target - count) == 0:
        yield target
        return
    # By the lowest bit up to a power of two, in halves or doubles to the target's highest bit, then by its other bits.
    while count & (count - 1):
        count += count & -count
        yield count
    while count != _highest_bit(target):
        count = count * 2 if count < target else count // 2
        yield count
    while count < target:
        count += _highest_bit(target - count)
        yield count


def _highest_bit(number: int) -> int:
    return 1 << (number.bit_length() - 1)


def _gather(store: WriteStore) -> int:
    """Let one compacted entry have all lines, and be the only one: its batch, -1 where the log has no entry."""
    manifest = Manifest(store)
    names = manifest.names()
    newest = max(names, default=-1)
    if newest < 0:
        return -1
    whole = newest
    if not names[newest].endswith(_COMPACTED):
        compacted = max((batch for batch, name in names.items() if name.endswith(_COMPACTED)), default=-1)
        whole = newest if compacted < 0 else 2 * compacted + 1
        if whole < newest:
            raise unsupported(store.location, "a manifest that Spark can read", f"no compacted entry after {compacted}")
        _write(store, f"{whole}{_COMPACTED}", _text(_read(entries_of(manifest))))
    # The oldest first, so that the distance to the newest one but one does not change before the last.
    for name in sorted(manifest.all_names(), key=batch_of):
        if name != f"{whole}{_COMPACTED}":
            _delete(store, name)
    return whole


def _room_for(target: Mapping[str, str], whole: int) -> int:
    """The batch of a compacted entry above all of ``target`` beside which these entries can be written."""
    newest = max(map(batch_of, target), default=-1)
    compacted = max((batch_of(name) for name in target if name.endswith(_COMPACTED)), default=-1)
    return 2 * compacted + 1 if compacted >= 0 else max(whole, newest + 1)


def _move(store: WriteStore, whole: int, batch: int, lines: Sequence[str]) -> int:
    """Put the entry that has all lines under another batch."""
    _write(store, f"{batch}{_COMPACTED}", _text(lines))
    if whole >= 0:
        _delete(store, f"{whole}{_COMPACTED}")
    return batch


def _read(entries: Mapping[str, str]) -> list[str]:
    """The lines that Spark reads, in its order."""
    return [line for name in names_read(entries) for line in entry_lines(entries[name])]


def _text(lines: Sequence[str]) -> str:
    return "\n".join(["v1", *lines])


def _write(store: WriteStore, name: str, content: str) -> None:
    store.write(f"{SINK_LOG}/{name}", content.encode())


def _delete(store: WriteStore, name: str) -> None:
    store.delete(f"{SINK_LOG}/{name}")
