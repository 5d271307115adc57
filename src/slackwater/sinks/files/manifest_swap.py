"""Swaps a file output on HDFS or an object store, where directories cannot change places.

Staged entries name starting batches' files in the real output. The swap moves staged files into the real directory,
still unlisted, switches the manifest by a single put (``switch``), and moves unlisted files to the staging folder.
Others' files stay. Readers by path see both outputs meanwhile.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from slackwater.core.checkpoint import Damage
from slackwater.core.sink import staging_path
from slackwater.formats.compactible import SINK_LOG, names_read
from slackwater.sinks.common.changes import damaged, incomplete, unsupported
from slackwater.sinks.common.directory import OutputPlace
from slackwater.sinks.common.staging import RemoteStagingDirectory, has_parent
from slackwater.sinks.files.directory_swap import Left
from slackwater.sinks.files.manifest import (
    Lines,
    Manifest,
    batch_of,
    entry_lines,
    foreign,
    keep_log,
    newest_compacted,
    renamed,
    uris,
)
from slackwater.storage.below import Below
from slackwater.storage.open import open_write_store
from slackwater.storage.protocols import LEFTOVER, ReadStore, WriteStore

REPLACED = "_slackwater_replaced"
"""The subfolder of the staging folder with the replaced manifest's entries."""
_MOVED_AT_ONCE = 16
_STARTED = frozenset({"swapping", "replaced", "restoring"})
_COMPACTED = ".compact"


class ManifestSwap:
    """``FilesOutput``'s ``Swappable`` for an operation.

    ``swapping`` and ``restoring`` last from the first to the last moved file.
    """

    def __init__(self, path: str, operation: str) -> None:
        self._place = RemoteStagingDirectory(path, operation)
        self._operation = operation
        self._real = OutputPlace(self._place.real)
        self._staging = OutputPlace(self._place.folder)

    @property
    def state(self) -> str | None:
        return self._place.state

    @property
    def is_started(self) -> bool:
        return self._place.state in _STARTED

    @cached_property
    def _stores(self) -> WriteStore:
        return open_write_store(self._place.real.rpartition("/")[0])

    @cached_property
    def _names(self) -> tuple[str, str]:
        return self._place.real.rpartition("/")[2], self._place.folder.rpartition("/")[2]

    @cached_property
    def _real_store(self) -> WriteStore:
        return open_write_store(self._place.real)

    @cached_property
    def _staging_store(self) -> WriteStore:
        return open_write_store(self._place.folder)

    def stage(self, after: int, lines: Lines, manifest: Manifest, find: Callable[[str], str | None]) -> None:
        if not has_parent(self._place.real):
            raise unsupported(self._place.real, "a directory below the bucket or store", "all of it")
        if self._place.start():
            if after >= 0:
                real = self._place.real
                entries = manifest.until(after, lines, real)
                sizes = _sizes(self._real_store)
                for uri in uris(entries.values()):
                    name = find(uri)
                    if name is None:
                        raise foreign(real, uri)
                    if name not in sizes:
                        raise incomplete(real, name, "no file")
                for name, content in entries.items():
                    self._staging_store.write(f"{SINK_LOG}/{name}", content.encode())
            # A stream that reads the output looks for the manifest once, at its start.
            keep_log(self._staging_store)
            self._place.mark("staged")

    def damage(self) -> Iterator[Damage]:
        return self._damage(Manifest(self._staging_store), _sizes(self._real_store), _sizes(self._staging_store))

    def check(self) -> None:
        real, staging = _sizes(self._real_store), _sizes(self._staging_store)
        staged = self._files(entries_of(Manifest(self._staging_store)))
        for name in staged - self._files(entries_of(Manifest(self._real_store))):
            if name in real and real[name] != staging.get(name, real[name]):
                raise unsupported(f"{self._place.real}/{name}", "a name that no batch has used", "a file of a batch")

    def resume(self) -> None:
        """Do nothing: the outputs can be read in each state."""

    def swap(self, record: Callable[[Left], object]) -> None:
        state = self._place.state
        if state == "replaced":
            return
        if state == "staged":
            record(None)
            # Before the mark: from it on these copies alone show which files the old output had.
            _write_entries(self._replaced_log, entries_of(Manifest(self._real_store)))
        if state != "swapping":
            self._place.mark("swapping")
        staged, old = entries_of(Manifest(self._staging_store)), self._replaced()
        real, staging = self._names
        self._move(self._files(staged) - self._files(old), staging, real)
        if not staged:
            keep_log(self._real_store)
        switch(self._real_store, {name: renamed(text, self._in_real) for name, text in staged.items()})
        self._move(self._files(old) - self._files(staged), real, staging)
        self._place.mark("replaced")

    def check_back(self) -> None:
        state = self._replaced_state()
        if state is None:
            return
        real, staging = _sizes(self._real_store), _sizes(self._staging_store)
        if state == "replaced" and Manifest(self._staging_store).names() and not Manifest(self._real_store).names():
            raise damaged(self._place.real, "the output that was swapped in", "no manifest")
        for missing in self._damage(Manifest(self._replaced_log), real, staging):
            raise damaged(f"{self._place.folder}/{missing.path}", missing.expected, missing.found)

    def swap_back(self, _left: Left) -> None:
        state = self._replaced_state()
        if state is None:
            return
        old = self._replaced()
        # Not in a repeated undo, in which the real manifest may have the old entries again.
        if state == "replaced":
            present, without = entries_of(Manifest(self._real_store)), self._files(old)
            kept = {name: renamed(text, lambda uri: self._in_staging(uri, without)) for name, text in present.items()}
            _write_entries(self._staging_store, kept)
        if state != "restoring":
            self._place.mark("restoring")
        staged = entries_of(Manifest(self._staging_store))
        real, staging = self._names
        self._move(self._files(old) - self._files(staged), staging, real)
        switch(self._real_store, old)
        self._move(self._files(staged) - self._files(old), real, staging)
        self._place.mark("staged")

    def _replaced_state(self) -> str | None:
        """The state of the replaced output; ``None`` if none is replaced, any more or yet."""
        state = self._place.state
        if state not in {*_STARTED, "staged"}:
            raise damaged(self._place.folder, "the output before the swap", state or "no folder")
        return None if state == "staged" else state

    @property
    def _replaced_log(self) -> WriteStore:
        return Below(self._stores, f"{self._names[1]}/{REPLACED}")

    def _replaced(self) -> dict[str, str]:
        return entries_of(Manifest(self._replaced_log))

    def _move(self, names: Iterable[str], source: str, target: str) -> None:
        """Move files; a killed move may have left a file in both directories."""
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - brings logging; only a swap needs it

        here, there = (set(_sizes(Below(self._stores, folder))) for folder in (source, target))

        def move(name: str) -> None:
            # A rename on an object store is a copy and a delete: a file in both folders was copied whole.
            if name in there:
                self._stores.delete(f"{source}/{name}")
            else:
                self._stores.rename(f"{source}/{name}", f"{target}/{name}")

        with ThreadPoolExecutor(_MOVED_AT_ONCE, "slackwater-move") as pool:
            list(pool.map(move, sorted(here.intersection(names))))

    def _files(self, entries: Mapping[str, str]) -> set[str]:
        return {self._name_of(uri) for uri in uris(entries.values())}

    def _name_of(self, uri: str) -> str:
        name = self._real.relative_path(uri) or self._staging.relative_path(uri)
        if name is None:
            raise foreign(self._place.real, uri)
        return name

    def _damage(self, manifest: Manifest, real: Mapping[str, int], staging: Mapping[str, int]) -> Iterator[Damage]:
        for file in manifest.files():
            if isinstance(file, Damage):
                yield file
                continue
            name = self._name_of(file.path)
            found = {sizes[name] for sizes in (real, staging) if name in sizes}
            if file.size not in found:
                shown = f"{min(found)} bytes" if found else "no file"
                yield Damage(name, "torn", f"{file.size} bytes", shown)

    def _in_real(self, uri: str) -> str:
        name = self._staging.relative_path(uri)
        before, after = staging_path("\n", self._operation).split("\n")
        return uri if name is None else _in_folder(uri, name, lambda one: one.removeprefix(before).removesuffix(after))

    def _in_staging(self, uri: str, without: set[str]) -> str:
        name = self._real.relative_path(uri)
        if name is None or name in without:
            return uri
        return _in_folder(uri, name, lambda one: staging_path(one, self._operation))


def _in_folder(uri: str, name: str, folder_name: Callable[[str], str]) -> str:
    """The URI in a folder; all other parts stay as Spark encoded them."""
    parts = uri.split("/")
    folder = -(name.count("/") + 2)
    parts[folder] = folder_name(parts[folder])
    return "/".join(parts)


def _sizes(store: ReadStore) -> dict[str, int]:
    """The sizes in bytes, from a listing: a request per file would take hours."""
    return {
        f"{folder.path}/{name}".lstrip("/"): size
        for folder in store.folders()
        for name, size in zip(folder.files, folder.sizes or (), strict=True)
    }


def _write_entries(store: WriteStore, entries: Mapping[str, str]) -> None:
    known = Manifest(store).all_names()
    for name, content in entries.items():
        store.write(f"{SINK_LOG}/{name}", content.encode())
    for name in known:
        if name not in entries:
            store.delete(f"{SINK_LOG}/{name}")


def switch(store: WriteStore, target: Mapping[str, str]) -> None:
    """Replace a log's entries by ``target``. Repeatable after any kill.

    Readers see all old or all new entries. Spark reads the newest compacted entry and later entries, so putting a new,
    higher ``N.compact`` with the whole log is the atomic switch. Steps before and after only move lines between
    entries.

    Spark takes the distance of the newest two compacted entries as the log's interval, and misreads the log unless it
    divides the count of entries up to the newest. So ``N.compact`` never has a neighbour whose distance does not divide
    N + 1.
    """
    for entry in store.list(SINK_LOG):
        if entry.name.endswith(LEFTOVER) and not entry.is_dir:
            store.delete(f"{SINK_LOG}/{entry.name}")
    if entries_of(Manifest(store)) == dict(target):
        return
    whole, wanted = _gather(store), _lines_read(target)
    if whole < 0 or _lines_read(entries_of(Manifest(store))) != wanted:
        # This put is the switch: Spark reads the higher of two compacted entries; a distance of 1 divides any count.
        whole = _move_whole(store, whole, whole + 1, wanted)
    newest, compacted = max(map(batch_of, target), default=-1), newest_compacted(target)
    # A batch next to which the target's entries can be written.
    above = 2 * compacted + 1 if compacted >= 0 else max(whole, newest + 1)
    for count in steps(whole + 1, above + 1):
        whole = _move_whole(store, whole, count - 1, wanted)
    # The newest compacted one first: the distance that counts is then the one to it.
    for name in sorted(target, key=lambda name: (not name.endswith(_COMPACTED), -batch_of(name))):
        _write_entry(store, name, target[name])
    store.delete(f"{SINK_LOG}/{whole}{_COMPACTED}")


def entries_of(manifest: Manifest) -> dict[str, str]:
    return {name: manifest.read(name).decode() for name in manifest.all_names()}


def steps(count: int, target: int) -> Iterator[int]:
    """The counts from ``count`` (exclusive) to ``target``; each distance divides both neighbours."""
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
    """Merge all lines into a single compacted entry; returns its batch, -1 for an empty log."""
    manifest = Manifest(store)
    names = manifest.names()
    newest = max(names, default=-1)
    if newest < 0:
        return -1
    whole = newest
    if not names[newest].endswith(_COMPACTED):
        compacted = newest_compacted(names.values())
        # Twice the count of entries: the distance divides both counts. Spark compacts again there at the latest,
        # because an interval that it derives is never larger than the count of the newest compacted entry.
        whole = newest if compacted < 0 else 2 * compacted + 1
        if whole < newest:
            raise unsupported(store.location, "a manifest that Spark can read", f"no compacted entry after {compacted}")
        _write_entry(store, f"{whole}{_COMPACTED}", _entry_text(_lines_read(entries_of(manifest))))
    # The oldest first, so that the distance to the newest one but one does not change before the last.
    for name in sorted(manifest.all_names(), key=batch_of):
        if name != f"{whole}{_COMPACTED}":
            store.delete(f"{SINK_LOG}/{name}")
    return whole


def _move_whole(store: WriteStore, whole: int, batch: int, lines: Sequence[str]) -> int:
    _write_entry(store, f"{batch}{_COMPACTED}", _entry_text(lines))
    if whole >= 0:
        store.delete(f"{SINK_LOG}/{whole}{_COMPACTED}")
    return batch


def _lines_read(entries: Mapping[str, str]) -> list[str]:
    return [line for name in names_read(entries) for line in entry_lines(entries[name])]


def _entry_text(lines: Sequence[str]) -> str:
    return "\n".join(["v1", *lines])


def _write_entry(store: WriteStore, name: str, content: str) -> None:
    store.write(f"{SINK_LOG}/{name}", content.encode())
