"""An adopted checkpoint on a store that cannot exchange two directories, such as S3: its files are replaced.

``metadata`` is replaced first, by a line on which no query starts (``halted``), and written last: at each step the
checkpoint is the old one, the new one, or one that no query can use. Both are complete in the operation's folder of the
home before the first file is replaced, so that a kill or a failure of the store leaves nothing that cannot be continued
or taken back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cached_property

from slackwater.checkpoint.layout import METADATA
from slackwater.checkpoint.writer import halted_by, is_halted, relocate_operators
from slackwater.operations.adopted import COPIES
from slackwater.operations.apply.adopted import AdoptedCheckpoint
from slackwater.operations.plan.adopted import BUILT, KEPT, recovery_of_objects
from slackwater.sinks.common.backup import damaged
from slackwater.storage.location import Location
from slackwater.storage.open import open_read_store, open_write_store
from slackwater.storage.protocols import LEFTOVER, ReadStore, WriteStore

_PLACED = "placed"
"""Exists from just before the new checkpoint is complete at the path until it no longer is."""

Copies = Mapping[str, Mapping[str, str]]
"""The hashes of files by path, for each of the two folders."""


class AdoptedObjects(AdoptedCheckpoint):
    """The new checkpoint is in ``checkpoint`` of the operation's folder, a copy of the old one in ``kept``."""

    @cached_property
    def _store(self) -> WriteStore:
        return open_write_store(self.location)

    @cached_property
    def _own(self) -> WriteStore:
        return open_write_store(self.folder, private=True)

    @property
    def is_new_in_place(self) -> bool:
        return self._own.exists(_PLACED) and not is_halted(self._store)

    @property
    def is_old_in_place(self) -> bool:
        return not self._own.exists(_PLACED) and not is_halted(self._store)

    @property
    def by_hand(self) -> tuple[str, ...]:
        return recovery_of_objects(self.location, str(self.folder))

    @property
    def kept(self) -> Location:
        return self.folder / KEPT

    @property
    def built(self) -> Location:
        return self.folder / BUILT

    def checkpoint(self, number: int) -> Location:
        return self.built if number == self.switch.new else self.kept

    def store_of_old(self) -> ReadStore:
        copies = self._recorded_copies()
        if copies is not None:
            self._check(KEPT, copies)
        return open_read_store(self.kept)

    def store_of_new(self) -> ReadStore:
        return self._store if self.is_new_in_place else open_read_store(self.built)

    def swap_in(self) -> None:
        """As for any; raises Refused (``backup-damaged``) where a copy is no longer what it was."""
        if self.is_new_in_place:
            return
        # Copied once only: after the first file was replaced the location no longer has the old checkpoint.
        copies = self._recorded_copies() or self._copy()
        self._check(BUILT, copies)
        self._halt()
        self._replace(BUILT, KEPT, copies)
        # Before ``metadata``, with which a query can start: unmarked, the new checkpoint would count as the old one.
        self._own.write(_PLACED, b"")
        self._release(self.built)

    def swap_back(self) -> None:
        """As for any; raises Refused (``backup-damaged``) where a copy is no longer what it was."""
        copies = self._recorded_copies()
        if copies is None:
            # Nothing at the path was changed.
            return
        self._check(KEPT, copies)
        self._halt()
        # Only after the halt: a location that is neither halted nor marked counts as the old checkpoint.
        self._own.delete(_PLACED)
        self._replace(KEPT, BUILT, copies)
        self._release(self.kept)

    def end(self, *, applied: bool) -> None:
        if not applied:
            # The list first: what a kill then leaves of the copy counts as unfinished, and is copied again.
            self._own.delete(COPIES)
            self._own.delete_tree(KEPT)

    def _recorded_copies(self) -> Copies | None:
        """The files of both checkpoints with their hashes, ``None`` before both are complete."""
        where = f"{self.folder}/{COPIES}"
        try:
            copies: Copies = json.loads(self._own.read(COPIES))
        except FileNotFoundError:
            if is_halted(self._store) or self._own.exists(_PLACED):
                raise damaged(where, "the list of both copies", "no file") from None
            return None
        except (ValueError, RecursionError) as error:
            raise damaged(where, "the list of both copies", "no JSON") from error
        return copies

    def _copy(self) -> Copies:
        """Copy the checkpoint that is in place, and record both."""
        relocate_operators(open_write_store(self.built), self.location)
        # A copy that the list does not have yet is one that a killed attempt has left unfinished.
        self._own.delete_tree(KEPT)
        target = open_write_store(self.kept, private=True)
        for folder, names in _files_by_folder(self._store):
            target.copy_from(self._store, folder, names)
        copies = {name: _hashes(open_read_store(self.folder / name)) for name in (BUILT, KEPT)}
        self._own.write(COPIES, json.dumps(copies, indent=1).encode())
        return copies

    def _check(self, name: str, copies: Copies) -> None:
        """What is put in place has to be what was verified, or was in place before."""
        recorded, found = copies[name], _hashes(open_read_store(self.folder / name))
        for path in sorted(recorded.keys() | found.keys()):
            if recorded.get(path) != found.get(path):
                where = self.folder / name / path
                raise damaged(where, recorded.get(path, "no file"), found.get(path, "no file"))

    def _halt(self) -> None:
        self._store.write(METADATA, halted_by(self.plan.id))

    def _replace(self, new: str, old: str, copies: Copies) -> None:
        """Make all files but ``metadata`` those of one copy; what both copies have alike is there already."""
        source, wanted, before = open_read_store(self.folder / new), copies[new], copies[old]
        for path in sorted(set(_files(self._store)) - wanted.keys() - {METADATA}, reverse=True):
            self._store.delete(path)
        for path, digest in wanted.items():
            if path != METADATA and before.get(path) != digest:
                self._store.write_pieces(path, source.read_pieces(path))

    def _release(self, new: Location) -> None:
        try:
            content = open_read_store(new).read(METADATA)
        except FileNotFoundError:
            # It was lost before: Spark starts such a checkpoint with a new id.
            self._store.delete(METADATA)
        else:
            self._store.write(METADATA, content)


def _hashes(store: ReadStore) -> Mapping[str, str]:
    return {path: _digest(store, path) for path in sorted(_files(store))}


def _digest(store: ReadStore, path: str) -> str:
    digest = hashlib.sha256()
    for piece in store.read_pieces(path):
        digest.update(piece)
    return digest.hexdigest()


def _files(store: ReadStore) -> Iterator[str]:
    """All files but the checksums of Hadoop's local file system, which no other store has."""
    for folder, names in _files_by_folder(store):
        yield from (f"{folder}/{name}".lstrip("/") for name in names)


def _files_by_folder(store: ReadStore) -> Iterator[tuple[str, list[str]]]:
    for folder in store.folders():
        yield folder.path, [name for name in folder.files if not name.endswith(LEFTOVER) and not _is_checksum(name)]


def _is_checksum(name: str) -> bool:
    return name.startswith(".") and name.endswith(".crc")
