"""An Iceberg table as the output of a stream: its newest batch, its owner, its damage, cutting it back.

A table in a directory is read and cut without a JVM. What a table of a catalog holds is known to the catalog, whose
settings and credentials are Spark's: it shows nothing here, and the sink asks it in each batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from slackwater.errors import FormatError, PipelineError, Refused, SinkUnreadable
from slackwater.model.damage import Damage
from slackwater.model.sink import Cut, Delivery, Owner, Traits
from slackwater.sinks import owner
from slackwater.sinks.contract import Output, SinkLog
from slackwater.sinks.iceberg import cutting
from slackwater.sinks.iceberg.manifests import Manifests, TableFile
from slackwater.sinks.iceberg.metadata import Metadata, lineage, written
from slackwater.sinks.iceberg.span import Span, span_after
from slackwater.sinks.iceberg.versions import FOLDER, Version, Versions
from slackwater.sinks.place import Place
from slackwater.sinks.silent import SilentOutput
from slackwater.storage.open import open_write_store
from slackwater.storage.protocols import WriteStore

_DELIVERY = Delivery(
    "exactly-once", "a batch is staged and published with its number in one commit, and a number it has is skipped"
)
ICEBERG_TRAITS = Traits(
    _DELIVERY,
    tells_written=True,
    skips_known_batches=True,
    cuts=True,
    swaps=False,
    reads_known_batches=True,
    combines=True,
)
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
        return IcebergOutput(identity["path"])
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


class IcebergOutput:
    """A table in a directory. ``path`` is what Spark is given; the store is not opened before it is needed."""

    traits = ICEBERG_TRAITS

    def __init__(self, path: str) -> None:
        self._path = path

    @property
    def location(self) -> str:
        return self._place.location

    @cached_property
    def _place(self) -> Place:
        return Place(self._path)

    @cached_property
    def _store(self) -> WriteStore:
        return open_write_store(self._path)

    @cached_property
    def _versions(self) -> Versions:
        return Versions(self._store)

    @property
    def exists(self) -> bool:
        """Whether there is a table."""
        return self._versions.newest() is not None

    def last_written(self) -> int:
        newest = self._newest()
        return -1 if newest is None else self._written(newest[1])

    def owner(self) -> Owner | None:
        return owner.read_owner(self._store)

    def claim(self, owner_now: Owner) -> None:
        owner.claim(self._store, owner_now)

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

    def was_read(self, offsets: Iterable[str], cut: Cut) -> bool:
        """Whether a source of Iceberg at one of these offsets has read a snapshot that the cut takes out."""
        places = {place for place in map(_snapshot_of, offsets) if place is not None}
        newest = self._newest()
        if not places or newest is None:
            return False
        metadata = newest[1]
        older = self._versions.older(metadata)
        span = span_after(metadata, older, self._stream(metadata) or "", cut.after)
        return any(snapshot.id in places for snapshot in span.snapshots)

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
        """The newest version with its metadata, ``None`` where there is no table."""
        version = self._versions.newest()
        if version is None:
            return None
        try:
            return version, self._versions.read(version)
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
        _check_alone(self.location, span)
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
            metadata = self._versions.read(version)
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


def _check_alone(location: str, span: Span) -> None:
    """Raises Refused if another writer has changed rows since the first batch that is cut."""
    others = span.others()
    if others:
        raise Refused(
            "sink-uncuttable",
            "The batches cannot be cut out of the Iceberg table: another writer has changed it since, and going back "
            "to an older snapshot would take out its rows, too",
            where=location,
            expected=f"snapshots of the stream after {span.target}",
            found=f"snapshot {others[0].id} of another writer ({others[0].summary.get('operation')})",
            hint="rebuild at the last written batch, which removes nothing",
        )


def _snapshot_of(offset: str) -> int | None:
    """The snapshot that an offset of Iceberg's source names, ``None`` for an offset of another source."""
    try:
        return int(json.loads(offset)["snapshot_id"])
    except (ValueError, KeyError, TypeError):
        return None
