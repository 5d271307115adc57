"""An Iceberg table as the output of a stream: its newest batch, its owner, its damage, cutting it back.

A table in a directory is read and cut without a JVM. What a table of a catalog holds is known to the catalog, whose
settings and credentials are Spark's: it shows nothing here, and the sink asks it in each batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property

from slackwater.errors import FormatError, PipelineError, Refused, SinkUnreadable
from slackwater.model.damage import Damage
from slackwater.model.marks import NONE_YET
from slackwater.model.sink import Cut, Delivery, Swap, Traits
from slackwater.sinks import owner
from slackwater.sinks.contract import Output, SinkLog
from slackwater.sinks.directory_output import DirectoryOutput
from slackwater.sinks.iceberg import cutting, swapping
from slackwater.sinks.iceberg.following import Change, following
from slackwater.sinks.iceberg.manifests import Manifests, TableFile
from slackwater.sinks.iceberg.metadata import MAIN, Metadata, lineage, written
from slackwater.sinks.iceberg.span import Span, check_alone, snapshots_after, span_after
from slackwater.sinks.iceberg.swapping import Branches
from slackwater.sinks.iceberg.versions import FOLDER, Version, Versions
from slackwater.sinks.silent import SilentOutput
from slackwater.sinks.swapping import absent, check_parties, check_whole, incomplete, record, started, unsupported
from slackwater.storage.protocols import WriteStore

_DELIVERY = Delivery(
    "exactly-once", "a batch is staged and published with its number in one commit, and a number it has is skipped"
)
ICEBERG_TRAITS = Traits(
    _DELIVERY,
    tells_written=True,
    skips_known_batches=True,
    cuts=True,
    swaps=True,
    reads_known_batches=True,
    combines=True,
)
ATTEMPTS = 20
"""Commits of others that the removal of a branch tries to follow before it fails."""
CATALOG_TRAITS = Traits(
    _DELIVERY,
    tells_written=False,
    skips_known_batches=True,
    cuts=False,
    swaps=False,
    reads_known_batches=True,
    combines=True,
)


def open_iceberg_output(identity: Mapping[str, str]) -> Output:
    """The output of a recorded identity of kind ``iceberg``. Raises SinkUnreadable if the identity is incomplete."""
    if identity.get("path"):
        return IcebergOutput(identity["path"], identity.get("branch", MAIN))
    if identity.get("table"):
        return CatalogOutput(identity["table"])
    raise SinkUnreadable(
        "sink-identity",
        "The recorded identity of the sink has neither a path nor a table",
        expected='{"kind": "iceberg", "path": ...} or {"kind": "iceberg", "table": ...}',
        found=str(dict(identity)),
    )


class CatalogOutput(SilentOutput):
    """A table of a catalog, by the name that Spark knows it by."""

    def __init__(self, table: str) -> None:
        super().__init__("iceberg", CATALOG_TRAITS, f"iceberg table {table}")
        self._table = table

    def reader_path(self) -> str:
        return self._table


class IcebergOutput(DirectoryOutput):
    """A table in a directory, or one branch of it, which an operation builds aside.

    ``path`` is what Spark is given; the store is not opened before it is needed.
    """

    traits = ICEBERG_TRAITS

    def __init__(self, path: str, branch: str = MAIN) -> None:
        super().__init__(path)
        self._branch = branch

    @property
    def location(self) -> str:
        place = self._place.location
        return place if self._branch == MAIN else f"{place} (branch {self._branch})"

    @cached_property
    def _versions(self) -> Versions:
        return Versions(self._store)

    @property
    def exists(self) -> bool:
        """Whether there is a table, with this branch."""
        return self._versions.newest() is not None if self._branch == MAIN else self._newest() is not None

    def last_written(self) -> int:
        newest = self._newest()
        return -1 if newest is None else self._written(newest[1])

    def log(self) -> SinkLog | None:
        return None

    def name_of(self, uri: str) -> str | None:
        name = self._place.name_of(uri)
        return None if name is None or name.split("/")[0] in {FOLDER, owner.MARK} else name

    def damage(self, *, thorough: bool = False) -> tuple[Damage, ...]:
        return tuple(self._damage(thorough=thorough))

    def cut_after(self, batch: int, recorded: Mapping[int, str]) -> Cut:
        del recorded  # The table's own metadata has everything.
        return self._cut_after(batch)[0]

    def cut(self, cut: Cut, recorded: Mapping[int, str], backup: WriteStore) -> None:
        del recorded  # As above.
        record = cutting.RECORD.read(backup)
        if record is None:
            span, stream = self._checked(cut)
            if span is None:
                return
            record = cutting.record_of(self.location, stream, cut, span)
            cutting.RECORD.write(backup, record)
        base, metadata = self._state_for(record, cut)
        seen = self._seen(metadata, record)
        if seen == "other":
            raise cutting.changed(record, "output-changed")
        if seen == "whole":
            cutting.take_out(self._versions, base, metadata, record)

    def restore(self, cut: Cut, backup: WriteStore) -> None:
        record = cutting.RECORD.read(backup)
        if record is None:
            return  # The cut was interrupted before it recorded anything, so that nothing was removed.
        base, metadata = self._state_for(record, cut)
        seen = self._seen(metadata, record)
        if seen == "other":
            raise cutting.changed(record, "restore-conflict")
        if seen == "cut":
            cutting.put_back(self._versions, base, metadata, record)

    def staged(self, operation: str) -> IcebergOutput:
        return IcebergOutput(self._path, Branches(operation).staged)

    def stage(self, operation: str, after: int, recorded: Mapping[int, str]) -> None:
        """The staged table is a branch of the real one, with the same columns."""
        del recorded  # As above.
        branches = Branches(operation)
        base, metadata = self._for_swap()
        if branches.state(metadata) is not None:
            return
        stream = self._stream(metadata)
        if stream is None:
            raise unsupported(self.location, "a table that belongs to a stream", "no owner")
        last = self._written(metadata)
        if last < after:
            raise incomplete(self.location, f"batches up to {after}", f"batch {last} as the newest")
        span = span_after(metadata, self._versions.older(metadata), stream, after) if after >= 0 else None
        mark = swapping.mark_after(metadata, stream, after, span)
        self._commit(base, metadata, swapping.start(self._store, metadata, branches.staged, mark))

    def swap_of(self, operation: str, stream_id: str) -> Swap:
        return Swap(operation, stream_id, self.last_written())

    def whole(self, recorded: Mapping[int, str]) -> Cut:
        """Also where the snapshots before the first batch have expired, to which a cut could not go back."""
        del recorded  # As above.
        newest = self._newest()
        metadata = newest[1] if newest is not None else None
        if metadata is None or metadata.current is None:
            return Cut(NONE_YET, ())
        files = Manifests(self._store, metadata).difference(metadata.snapshots[metadata.current], None).added
        batches = tuple(range(self._written(metadata) + 1))
        return Cut(NONE_YET, batches, tuple(file.path for file in files))

    def check_swap(self, swap: Swap, backup: WriteStore) -> None:
        self._check_swap(swap, backup, self._for_swap()[1])

    def swap(self, swap: Swap, backup: WriteStore) -> None:
        base, metadata = self._for_swap()
        self._check_swap(swap, backup, metadata)
        branches = Branches(swap.operation)
        if branches.state(metadata) == "staged":
            # Written again, as the branch may have other snapshots since a swap that was undone.
            record(backup, self.location, swap, metadata.branches[branches.staged])
            older = self._versions.older(metadata)
            self._commit(base, metadata, swapping.put_in_place(metadata, older, branches, swap.stream_id))

    def swap_back(self, swap: Swap, backup: WriteStore) -> None:
        known = started(backup, self.location, swap)
        if known is None:
            return  # The swap was interrupted before it recorded anything, so that nothing was changed.
        branches = Branches(swap.operation)
        base, metadata = self._for_swap()
        state = branches.state(metadata)
        if state == "replaced":
            older = self._versions.older
            swapping.check_own(metadata, older(metadata), swap.stream_id, known.version)
            cutting.check_kept(self.location, metadata, branches.replaced_mark(metadata).snapshot)
            self._commit(base, metadata, swapping.put_back(metadata, older(metadata), branches, swap.stream_id))
        elif state is None and self._written(metadata) != swap.replaced:
            raise swapping.conflict(self.location, f"the branch {branches.replaced}", "no such branch")

    def discard_staged(self, operation: str) -> None:
        """Remove the branch; its files are deleted by ``expire_snapshots``."""
        self._discard(operation, "staged", Branches(operation).staged)

    def discard_replaced(self, operation: str) -> None:
        """Remove the branch; its files are deleted by ``expire_snapshots``."""
        self._discard(operation, "replaced", Branches(operation).replaced)

    def was_read(self, offsets: Iterable[str], cut: Cut) -> bool:
        """Whether a source of Iceberg at one of these offsets has read a snapshot that the cut takes out."""
        places = {place for place in map(_snapshot_of, offsets) if place is not None}
        newest = self._newest()
        if not places or newest is None:
            return False
        metadata = newest[1]
        older = self._versions.older(metadata)
        return not places.isdisjoint(snapshots_after(metadata, older, self._stream(metadata) or "", cut.after))

    def reader_path(self) -> str:
        if not self.exists:
            raise PipelineError(
                "output-absent",
                "A stream cannot read this Iceberg table: it does not exist yet, so that its schema is unknown",
                where=self._path,
                hint="define the stream that writes it before the one that reads it, and run both",
            )
        return self._path

    def _newest(self) -> tuple[Version, Metadata] | None:
        """The newest version with its metadata, ``None`` where there is no table, or no such branch."""
        version = self._versions.newest()
        if version is None:
            return None
        try:
            metadata = self._versions.read(version).on(self._branch)
        except (FormatError, FileNotFoundError) as error:
            found = (error.found or error.message) if isinstance(error, FormatError) else "no file"
            raise SinkUnreadable(
                "iceberg-unreadable",
                "The newest metadata of the Iceberg table is malformed",
                where=f"{self.location}/{version.path}",
                expected="table metadata of the Iceberg specification",
                found=found,
                hint="restore the file from a backup; Spark cannot read the table either",
            ) from error
        return (version, metadata) if self._branch in {MAIN, *metadata.branches} else None

    def _for_swap(self) -> tuple[Version, Metadata]:
        """The newest version. Raises Refused where there is no table, or where its store cannot commit by a rename."""
        newest = self._newest()
        if newest is None:
            raise unsupported(self.location, "an Iceberg table", "none")
        if not self._store.traits.atomic_rename:
            raise unsupported(self.location, "a store with a rename in one step", "one without")
        return newest

    def _check_swap(self, swap: Swap, backup: WriteStore, metadata: Metadata) -> None:
        """As ``check_swap``, for the version that the swap follows."""
        known = started(backup, self.location, swap)
        state = Branches(swap.operation).state(metadata)
        if known is not None and state == "replaced":
            return
        staged = self.staged(swap.operation)
        if state != "staged":
            raise absent(staged.location, swap.operation, "no such branch" if state is None else state)
        check_whole(self.location, staged.damage(thorough=True))
        check_parties(self.location, swap, self._written(metadata), self.owner(), staged.owner())

    def _commit(self, base: Version, metadata: Metadata, change: Change) -> None:
        """Add the version after ``base``. Raises Refused (``swap-moved``) where another writer was faster."""
        try:
            self._versions.commit(base, following(metadata, base, change))
        except FileExistsError as error:
            raise swapping.moved(self.location) from error

    def _discard(self, operation: str, state: swapping.State, branch: str) -> None:
        # The stream may be running when what it replaced is removed.
        for _ in range(ATTEMPTS):
            newest = self._newest()
            if newest is None or Branches(operation).state(newest[1]) != state:
                return
            with suppress(FileExistsError):
                self._versions.commit(newest[0], following(newest[1], newest[0], swapping.drop(branch)))
                return
        raise swapping.moved(self.location)

    def _stream(self, metadata: Metadata) -> str | None:
        """The id of the stream that writes here, ``None`` if no stream has."""
        known = self.owner()
        if known is not None:
            return known.stream_id
        # The mark was deleted, or no stream has claimed the table: its property shows which stream wrote to it.
        return metadata.mark.stream if metadata.mark is not None else None

    def _written(self, metadata: Metadata) -> int:
        stream = self._stream(metadata)
        return -1 if stream is None else written(metadata, self._versions.older(metadata), stream)

    def _seen(self, metadata: Metadata, record: cutting.Record) -> cutting.Seen:
        return cutting.seen_by(metadata, self._versions.older(metadata), record)

    def _state_for(self, record: cutting.Record, cut: Cut) -> tuple[Version, Metadata]:
        """The table as it is. Raises Refused unless the record is that of the cut."""
        cutting.check_record(record, cut, self.location)
        newest = self._newest()
        if newest is None:
            raise cutting.changed(record, "output-changed")
        if not self._store.traits.atomic_rename:
            raise Refused(
                "sink-uncuttable",
                "The batches cannot be cut out of the Iceberg table: its store has no rename in one step",
                where=self.location,
                hint="rebuild at the last written batch, which removes nothing",
            )
        return newest

    def _cut_after(self, batch: int) -> tuple[Cut, Span | None, str]:
        newest = self._newest()
        stream = self._stream(newest[1]) if newest is not None else None
        last = self._written(newest[1]) if newest is not None else -1
        if newest is None or stream is None or last <= batch:
            return Cut(batch, ()), None, ""
        metadata = newest[1]
        span = span_after(metadata, self._versions.older(metadata), stream, batch)
        check_alone(self.location, span)
        known = metadata.snapshots
        head, target = (known[one] if one is not None else None for one in (span.head, span.target))
        files = Manifests(self._store, metadata).difference(head, target)
        names = tuple(file.path for file in files.added)
        size = sum(file.size for file in files.added)
        cut = Cut(batch, tuple(range(batch + 1, last + 1)), names, size, files.rows, str(span.head))
        return cut, span, stream

    def _checked(self, cut: Cut) -> tuple[Span | None, str]:
        """What the cut takes out, ``None`` for nothing. Raises Refused unless it names what the table has."""
        expected, span, stream = self._cut_after(cut.after)
        if cut != expected:
            raise Refused(
                "cut-mismatch",
                f"The table does not have the same files and snapshot after batch {cut.after} as the cut",
                where=self.location,
                expected=f"{len(expected.files)} files, snapshot {expected.version}",
                found=f"{len(cut.files)} files, snapshot {cut.version}",
                hint="make a new plan: slackwater plan rebuild STREAM",
            )
        return span, stream

    def _damage(self, *, thorough: bool) -> Iterator[Damage]:
        version = self._versions.newest()
        if version is None:
            return
        try:
            metadata = self._versions.read(version).on(self._branch)
        except (OSError, FormatError) as error:
            kind, found = (error.code, error.found) if isinstance(error, FormatError) else ("unreadable", str(error))
            yield Damage(version.path, kind, "table metadata of the Iceberg specification", found or "")
            return
        current = next((snapshot for _, snapshot in lineage(metadata, iter(()))), None)
        if current is None:
            return
        manifests = Manifests(self._store, metadata) if thorough else None
        name = current.manifest_list.removeprefix(metadata.location.rstrip("/") + "/")
        if not self._store.exists(name):
            yield Damage(name, "missing", f"the manifest list of snapshot {current.id}", "no file")
        elif manifests is not None:
            yield from self._damaged_files(manifests.difference(current, None).added)

    def _damaged_files(self, files: Iterable[TableFile]) -> Iterator[Damage]:
        for file in files:
            if "://" in file.path or file.path.startswith(("/", "file:")):
                continue  # A file elsewhere that was added to the table, or a table that was moved.
            try:
                size = self._store.size(file.path)
            except OSError as error:
                missing = isinstance(error, FileNotFoundError)
                kind, found = ("missing", "no file") if missing else ("unreadable", str(error))
                yield Damage(file.path, kind, f"{file.size} bytes", found)
            else:
                if size != file.size:
                    yield Damage(file.path, "torn", f"{file.size} bytes", f"{size} bytes")


def _snapshot_of(offset: str) -> int | None:
    """The snapshot that an offset of Iceberg's source names, ``None`` for an offset of another source."""
    try:
        return int(json.loads(offset)["snapshot_id"])
    except (ValueError, KeyError, TypeError):
        return None
