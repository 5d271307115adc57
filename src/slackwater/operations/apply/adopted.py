"""Places of a stream's checkpoints: in the home, or at the path in the user's code.

There a new checkpoint takes the place of the old one, which is kept.

On a local disk two adjacent directories are exchanged. From just before the exchange until the ledger has recorded it,
a mark in the new checkpoint shows its position, so that each step can be repeated after a kill.

Stores such as S3 cannot exchange directories: files are replaced. ``metadata`` is replaced first, by a line with which
no query starts (``halted``), and written last: at each step the checkpoint is the old, the new, or unusable. Both are
complete in the operation's folder before the first file is replaced, so that the operation can always be continued or
undone.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from slackwater.checkpoint.layout import METADATA
from slackwater.checkpoint.writer import halted_by, is_halted, relocate_operators
from slackwater.core.errors import Refused
from slackwater.core.records import GenerationRecord, StreamRecord
from slackwater.ledger.home import Home
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.places import generation_location
from slackwater.operations.checkpoint_path import COPIES, KEPT, recovery
from slackwater.operations.plan.plan import Plan
from slackwater.sinks.common.changes import damaged
from slackwater.sinks.common.staging import StagingDirectory, State
from slackwater.storage.local import LocalStore, keep_owner_and_mode
from slackwater.storage.open import Location, open_read_store, open_write_store
from slackwater.storage.protocols import LEFTOVER, ReadStore, WriteStore

if TYPE_CHECKING:
    from slackwater.operations.actions.switching import SwitchGeneration

_NEW: State = "staged"
_BUILT = "checkpoint"
_PLACED = "placed"
"""Exists from just before the new checkpoint is complete at the path until it no longer is."""
Copies = Mapping[str, Mapping[str, str]]
"""Hashes by path, for each of the two folders."""


@dataclass(frozen=True)
class CheckpointPlaces:
    """In the home each generation has its own directory: nothing changes places, and the ledger alone switches."""

    plan: Plan
    stream: StreamRecord
    home: Home
    ledger: Ledger

    @property
    def is_new_in_place(self) -> bool:
        """Whether the new checkpoint is at the path that the code names."""
        return False

    @property
    def is_old_in_place(self) -> bool:
        """Between two steps no checkpoint may be there."""
        return False

    @property
    def by_hand(self) -> tuple[str, ...]:
        """How to finish or undo by hand after a failure of the machine."""
        return ()

    @cached_property
    def switch(self) -> SwitchGeneration:
        return next(one.switch for one in self.plan.actions if one.switch is not None)

    def checkpoint(self, number: int) -> Location:
        """The directory of a generation that the user's program does not change; never read from a plan."""
        return generation_location(self.home, self.ledger, self.stream, number)

    def store_of_old(self) -> ReadStore:
        """The old generation while it is not in place. Raises Refused (``backup-damaged``) for an incomplete copy."""
        return open_read_store(self.ledger.generation(self.plan.stream, self.switch.old).location)

    def store_of_new(self) -> ReadStore:
        """The new generation, with the entries that the user's program has added."""
        return open_read_store(self.checkpoint(self.switch.new))

    def swap_in(self) -> None:
        """Finish putting the new checkpoint in place."""

    def swap_back(self) -> None:
        """Finish restoring the old checkpoint."""

    def record_in_place(self, new: GenerationRecord) -> None:
        self.ledger.add_generation(new)

    def record_back(self) -> None: ...


class AdoptedCheckpoint(CheckpointPlaces, ABC):
    @cached_property
    def location(self) -> str:
        """The path that the code names, as it is recorded: whichever generation is in use is there."""
        name = self.plan.stream
        return self.ledger.generation(name, self.ledger.find_stream(name).current_generation).location

    @property
    def folder(self) -> Location:
        return self.home.operation(self.stream.pipeline, self.stream.name, self.plan.id)

    def checkpoint(self, number: int) -> Location:
        switches = (one.switch for one in self.plan.actions if one.switch is not None)
        if any(number in (switch.old, switch.new) for switch in switches):
            return self.exchanged(number)
        # One that only runs the batch of a backfill never comes to the path that the code names.
        return self.home.checkpoint(self.stream.pipeline, self.stream.name, number)

    @abstractmethod
    def exchanged(self, number: int) -> Location:
        """The directory of the old or the new generation."""

    @abstractmethod
    def end(self, *, applied: bool) -> None:
        """Remove the copies that were needed until the ledger recorded the result."""

    @property
    @abstractmethod
    def kept(self) -> Location:
        """The old checkpoint while the new checkpoint is in place."""

    @property
    @abstractmethod
    def built(self) -> Location:
        """The place in which the new checkpoint is built."""

    def record_in_place(self, new: GenerationRecord) -> None:
        self._switch(new.number, [new._replace(location=self.location), self._old(str(self.kept))])
        self.end(applied=True)

    def record_back(self) -> None:
        new = self.recorded(self.switch.new)
        built = [] if new is None else [new._replace(location=str(self.built))]
        self._switch(self.switch.old, [*built, self._old(self.location)])
        self.end(applied=False)

    def recorded(self, number: int) -> GenerationRecord | None:
        return next((one for one in self.ledger.generations(self.plan.stream) if one.number == number), None)

    def _old(self, location: str) -> GenerationRecord:
        return self.ledger.generation(self.plan.stream, self.switch.old)._replace(location=location)

    def _switch(self, current: int, records: Sequence[GenerationRecord]) -> None:
        # One transaction: after a kill the generation in use must be the one that is recorded at the path.
        self.ledger.switch_generations(self.plan.stream, current, records)


class AdoptedDirectory(AdoptedCheckpoint):
    """The directory in the user's code, and a hidden directory next to it."""

    @cached_property
    def staging(self) -> StagingDirectory:
        return StagingDirectory(self.location, self.plan.id)

    @property
    def is_new_in_place(self) -> bool:
        if self.staging.mark_in(self.staging.real) is not None:
            return True
        if self.staging.mark_in(self.staging.folder) is not None:
            return False
        record = self.recorded(self.switch.new)
        return record is not None and record.location == self.location

    @property
    def is_old_in_place(self) -> bool:
        return self._path_of_old == self.staging.real

    @property
    def _path_of_old(self) -> Path:
        """The old checkpoint, even between two renames, when the new checkpoint has the operation's mark."""
        staging = self.staging
        if not staging.is_interrupted:
            return staging.folder if self.is_new_in_place else staging.real
        if staging.mark_in(staging.exchange_path) is None:
            return staging.exchange_path
        # In an undo the new checkpoint is moved out of the path first, and then the old one into it.
        return staging.folder if staging.folder.exists() else staging.real

    @property
    def by_hand(self) -> tuple[str, ...]:
        return recovery(self.staging.real, self.plan.id)

    @property
    def kept(self) -> Location:
        return Location(self.staging.folder)

    @property
    def built(self) -> Location:
        return Location(self.staging.folder)

    def exchanged(self, number: int) -> Location:
        in_place = self.is_new_in_place is (number == self.switch.new)
        return Location(self.staging.real if in_place else self.staging.folder)

    def store_of_old(self) -> LocalStore:
        return LocalStore(self._path_of_old)

    def swap_in(self) -> None:
        """Raises Refused if the directories cannot be renamed."""
        # An exchange by renames that was killed is finished first: until then a mark can be in a third directory.
        self.staging.finish_exchange()
        if not self.is_new_in_place:
            # Operator metadata names schema files by absolute paths (``stateSchemaFilePaths``).
            relocate_operators(LocalStore(self.staging.folder), str(self.staging.real))
            # That of a new directory depends on this process.
            keep_owner_and_mode(self.staging.real, self.staging.folder)
            self.staging.set_mark(self.staging.folder, _NEW)
            self._exchange(self.staging.folder, self.staging.real)

    def swap_back(self) -> None:
        """Exchanges the directories back; the mark stays in the new checkpoint, which is removed next."""
        self.staging.finish_exchange()
        if self.is_new_in_place:
            self.staging.set_mark(self.staging.real, _NEW)
            self._exchange(self.staging.real, self.staging.folder)

    def end(self, *, applied: bool) -> None:
        if applied:
            self.staging.remove_mark(self.staging.real)

    def _exchange(self, new: Path, other: Path) -> None:
        try:
            if other.exists():
                self.staging.exchange()
            else:
                # A checkpoint that was deleted: there is nothing to exchange with.
                self.staging.move(new, other)
        except (Refused, OSError) as error:
            raise Refused(
                "checkpoint-fixed",
                f"The directory of the checkpoint cannot be exchanged with a different directory: {error}",
                where=str(self.staging.real),
                expected="a directory that can be renamed, and a parent folder that can be written to",
                hint="mount or move it so that it can be renamed, then run the command again",
            ) from error


class AdoptedObjects(AdoptedCheckpoint):
    """The new checkpoint is in ``checkpoint`` of the operation's folder, a copy of the old in ``kept``."""

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
        back = f"to go back, copy the files of {self.kept} to {self.location}, metadata last"
        return (f"if the machine fails while files are replaced: {back}; to continue instead, those of {self.built}",)

    @property
    def kept(self) -> Location:
        return self.folder / KEPT

    @property
    def built(self) -> Location:
        return self.folder / _BUILT

    def exchanged(self, number: int) -> Location:
        return self.built if number == self.switch.new else self.kept

    def store_of_old(self) -> ReadStore:
        copies = self._recorded_copies()
        if copies is not None:
            self._check(KEPT, copies)
        return open_read_store(self.kept)

    def store_of_new(self) -> ReadStore:
        return self._store if self.is_new_in_place else open_read_store(self.built)

    def swap_in(self) -> None:
        """Raises Refused (``backup-damaged``) if a copy has changed."""
        if self.is_new_in_place:
            return
        # Copied once only: after the first file was replaced the location no longer has the old checkpoint.
        copies = self._recorded_copies()
        if not copies:
            relocate_operators(open_write_store(self.built), self.location)
            # A copy that the list does not have yet is one that a killed attempt has left unfinished.
            self._own.delete_tree(KEPT)
            target = open_write_store(self.kept, private=True)
            for folder, names in _files_by_folder(self._store):
                target.copy_from(self._store, folder, names)
            copies = {name: _hashes(open_read_store(self.folder / name)) for name in (_BUILT, KEPT)}
            self._own.write(COPIES, json.dumps(copies, indent=1).encode())
        self._check(_BUILT, copies)
        self._halt()
        self._replace(_BUILT, KEPT, copies)
        # Before ``metadata``, with which a query can start: unmarked, the new checkpoint would count as the old one.
        self._own.write(_PLACED, b"")
        self._release(self.built)

    def swap_back(self) -> None:
        """Raises Refused (``backup-damaged``) if a copy has changed."""
        copies = self._recorded_copies()
        if copies is None:
            # Nothing at the path was changed.
            return
        self._check(KEPT, copies)
        self._halt()
        # Only after the halt: a location that is neither halted nor marked counts as the old checkpoint.
        self._own.delete(_PLACED)
        self._replace(KEPT, _BUILT, copies)
        self._release(self.kept)

    def end(self, *, applied: bool) -> None:
        if not applied:
            # The list first: what a kill then leaves of the copy counts as unfinished, and is copied again.
            self._own.delete(COPIES)
            self._own.delete_tree(KEPT)

    def _recorded_copies(self) -> Copies | None:
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

    def _check(self, name: str, copies: Copies) -> None:
        recorded, found = copies[name], _hashes(open_read_store(self.folder / name))
        for path in sorted(recorded.keys() | found.keys()):
            if recorded.get(path) != found.get(path):
                where = self.folder / name / path
                raise damaged(where, recorded.get(path, "no file"), found.get(path, "no file"))

    def _halt(self) -> None:
        self._store.write(METADATA, halted_by(self.plan.id))

    def _replace(self, new: str, old: str, copies: Copies) -> None:
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


def places_of(plan: Plan, stream: StreamRecord, home: Home, ledger: Ledger) -> CheckpointPlaces:
    if not stream.is_watched:
        return CheckpointPlaces(plan, stream, home, ledger)
    directory = AdoptedDirectory(plan, stream, home, ledger)
    moves = open_write_store(directory.location).traits.moves_directories
    return directory if moves else AdoptedObjects(plan, stream, home, ledger)


def _hashes(store: ReadStore) -> Mapping[str, str]:
    hashes = {}
    for path in sorted(_files(store)):
        digest = hashlib.sha256()
        for piece in store.read_pieces(path):
            digest.update(piece)
        hashes[path] = digest.hexdigest()
    return hashes


def _files(store: ReadStore) -> Iterator[str]:
    """All files but Hadoop's local checksums, which no other store has."""
    for folder, names in _files_by_folder(store):
        yield from (f"{folder}/{name}".lstrip("/") for name in names)


def _files_by_folder(store: ReadStore) -> Iterator[tuple[str, list[str]]]:
    for folder in store.folders():
        names = (name for name in folder.files if not name.endswith(LEFTOVER))
        yield folder.path, [name for name in names if not (name.startswith(".") and name.endswith(".crc"))]
