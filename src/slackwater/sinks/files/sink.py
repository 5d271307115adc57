"""The file sink, and its output directory: valid batches and files, owner, cuts.

Exactly-once by its manifest: batch ids not above the newest are skipped. So ids must never restart at 0 next to old
output. A cut removes whole batches. After a compaction, each batch's files must be in its own entry or the ledger.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from slackwater.core.checkpoint import NONE_YET, Damage, Depth, SinkFile
from slackwater.core.errors import FormatError, PipelineError, Refused, SinkUnreadable, SlackwaterError
from slackwater.core.sink import (
    CatalogueEntry,
    Cut,
    Delivery,
    Identity,
    Swap,
    Traits,
    WriteContext,
    WriterCalls,
    after_batch,
)
from slackwater.formats.compactible import SINK_LOG, parse_file_sink_log, parse_sink_file
from slackwater.sinks.common import staging
from slackwater.sinks.common.changes import check_swap, check_writable, damaged, record, started
from slackwater.sinks.common.contract import LogEntries, Sink, SinkLog, SwapPart
from slackwater.sinks.common.directory import OWNER_FILE, DirectoryOutput, absolute, directory, path_of, size_damage
from slackwater.sinks.common.problem import option_strings, table_unchecked
from slackwater.sinks.common.staging import has_parent, staging_of
from slackwater.sinks.files import manifest
from slackwater.sinks.files.directory_swap import DirectorySwap
from slackwater.sinks.files.manifest import Lines, Manifest, foreign, keep_log, lines_of
from slackwater.sinks.files.manifest_swap import REPLACED, ManifestSwap
from slackwater.storage.open import local_path_of
from slackwater.storage.protocols import WriteStore

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamWriter


FILES_TRAITS = Traits(
    Delivery("exactly-once", "the manifest lists each batch once, and a batch whose id it has is skipped"),
    reports_last_batch=True,
    skips_known_batches=True,
    cuts=True,
    swaps=True,
)
GLOB_CHARACTERS = "{}[]*?\\"
"""File sources list such paths themselves and ignore the manifest (``isGlobPath``)."""
_CHECKED_OF_COMPACTED = 100
_SEEN_IN_PART = 2
"""For readers that list files, a cut of fewer files is a single step."""
_NOT_DATA = frozenset({SINK_LOG, OWNER_FILE, staging.MARK, manifest.RECORD.name, REPLACED})
"""Names that are never Spark data files: a manifest that lists them was edited."""


ENTRIES = (CatalogueEntry("files", "files(format, path)", FILES_TRAITS, ("append",), rank=10),)


def files_traits(path: str) -> Traits:
    return replace(FILES_TRAITS, swaps=has_parent(path))


def open_files_output(identity: Identity) -> FilesOutput:
    path = path_of("files", identity)
    return FilesOutput(path) if "table" not in identity else FileTableOutput(path, identity["table"])


class FilesOutput(DirectoryOutput):
    @property
    def traits(self) -> Traits:
        return files_traits(self._path)

    @cached_property
    def _manifest(self) -> Manifest:
        return Manifest(self._store)

    def last_written(self) -> int:
        return self._manifest.newest()

    def orphans(self) -> tuple[str, ...]:
        """Unlisted data files; empty if an entry is malformed, which is damage."""
        try:
            entries = [self._manifest.parse(name)[1] for name in self._manifest.valid_names()]
        except (OSError, FormatError):
            return ()
        named = {self.relative_path(file.path) for files in entries for file in files}
        found = (
            f"{folder.path}/{name}".lstrip("/")
            for folder in self._store.folders()
            for name in folder.files
            # Spark ignores hidden names, as in ``shouldFilterOutPathName``.
            if not any(
                part.startswith(".") or (part.startswith("_") and "=" not in part)
                for part in (*folder.path.split("/"), name)
            )
        )
        return tuple(sorted(name for name in found if name not in named))

    def listed(self) -> tuple[int, Mapping[str, int]]:
        listed: list[SinkFile] = []
        for name in self._manifest.valid_names():
            with suppress(FormatError):
                listed += self._manifest.parse(name)[1]
        newest = _server(listed[-1].path) if listed else ""
        folders = Counter(file.path.rpartition("/")[0] for file in listed)
        elsewhere = {
            folder: files
            for folder, files in folders.items()
            if _server(folder) != newest or self.relative_path(f"{folder}/part") is None
        }
        return len(listed), elsewhere

    def log(self) -> SinkLog | None:
        return SinkLog(self._store, SINK_LOG, parse_file_sink_log)

    def relative_path(self, uri: str) -> str | None:
        name = self._place.relative_path(uri)
        return None if name is None or name.split("/")[0] in _NOT_DATA else name

    def cut_after(self, batch: int, recorded: LogEntries) -> Cut:
        lines, files = self._lines(batch, recorded), list[SinkFile]()
        last = self.last_written()
        for doomed in range(batch + 1, last + 1):
            files += [parse_sink_file(line) for line in self._manifest.own_lines(doomed, lines)]
        names = list[str]()
        for file in files:
            name = None if file.is_dir else self.relative_path(file.path)
            if name is None:
                raise foreign(self.location, file.path)
            names.append(name)
        return Cut(batch, tuple(range(batch + 1, last + 1)), tuple(names), sum(file.size for file in files))

    def cut(self, cut: Cut, recorded: LogEntries, backup: WriteStore) -> None:
        record = manifest.RECORD.read(backup)
        # Only in the first attempt: after an interrupted one the manifest no longer names all that the cut takes out.
        if record is None:
            expected = self.cut_after(cut.after, recorded)
            foreign = sorted(set(cut.files) - set(expected.files)) or sorted(set(expected.files) - set(cut.files))
            if foreign or cut.batches != expected.batches:
                raise Refused(
                    "cut-mismatch",
                    f"The manifest does not list the same files {after_batch(cut.after)} as the cut",
                    where=self.location,
                    expected=f"{len(expected.files)} files of {len(expected.batches)} batches",
                    found=foreign[0] if foreign else f"{len(cut.files)} files of {len(cut.batches)} batches",
                    hint="undo the operation and make a new plan; nothing was changed",
                )
            record = manifest.make_record(
                self._store, self.location, cut, self._manifest, self._lines(cut.after, recorded)
            )
            manifest.RECORD.write(backup, record)
        manifest.check_record(record, cut, self.location)
        manifest.delete_batches(self._store, backup, record)

    def check_restore(self, cut: Cut, backup: WriteStore) -> None:
        record = self._recorded_cut(cut, backup)
        if record is not None:
            missing = manifest.check_restore(self._store, backup, record, self._manifest)
            folders = {path.rpartition("/")[0] for path in (SINK_LOG + "/", *(taken.path for taken in missing))}
            check_writable(self._store, *sorted(folders))

    def restore(self, cut: Cut, backup: WriteStore) -> None:
        record = self._recorded_cut(cut, backup)
        if record is not None:
            manifest.restore(self._store, backup, record, self._manifest)

    def staged(self, operation: str) -> FilesOutput:
        return FilesOutput(self.staged_path(operation))

    def staged_path(self, operation: str, /) -> str:
        return str(staging_of(self._path, operation).folder)

    def stage(self, operation: str, after: int, recorded: LogEntries) -> None:
        lines = self._lines(after, recorded) if after >= 0 else {}
        self._way(operation).stage(after, lines, self._manifest, self.relative_path)

    def swap_of(self, operation: str, stream_id: str, _after: int = NONE_YET) -> Swap:
        """The swap, which keeps files of no batch, whenever written."""
        return Swap(operation, stream_id, self.last_written())

    def whole(self, recorded: LogEntries) -> Cut:
        return self.cut_after(NONE_YET, recorded)

    def seen_while_cut(self, cut: Cut | None) -> str | None:
        if cut is not None and len(cut.files) < _SEEN_IN_PART:
            return None
        return f"{self._listing} see a part of the rows while the files are removed; readers of it see whole batches"

    def seen_while_swapped(self) -> str | None:
        if self._is_local:
            # The directories change places in one step, and others' files are carried over without those of batches.
            return None
        return (
            f"{self._listing} see rows of the old output and of the new one together while the files are moved; "
            "readers of it see all of the old rows or all of the new ones"
        )

    def check_swap(self, swap: Swap, backup: WriteStore) -> None:
        started(backup, self.location, swap)
        way = self._way(swap.operation)
        # After the exchange the real directory has the batches of the staged one, which these checks would refuse.
        if not way.is_started:
            check_swap(self, swap, way.state, "no folder", damage=way.damage())
            way.check()

    def swap(self, swap: Swap, backup: WriteStore) -> None:
        way = self._way(swap.operation)
        if started(backup, self.location, swap) is not None:
            way.resume()
        self.check_swap(swap, backup)
        way.swap(lambda left: record(backup, self.location, swap, left=left))

    def check_swap_back(self, swap: Swap, backup: WriteStore) -> None:
        if started(backup, self.location, swap) is not None:
            self._way(swap.operation).check_back()
            check_writable(self._store, "", SINK_LOG, "..")

    def swap_back(self, swap: Swap, backup: WriteStore) -> None:
        known = started(backup, self.location, swap)
        # A swap that was interrupted before it recorded anything has changed nothing.
        if known is not None:
            self._way(swap.operation).swap_back(known.left)

    def discard(self, operation: str, part: SwapPart) -> None:
        staging_of(self._path, operation).discard(part)

    def reader_path(self) -> str:
        found = "".join(sorted(set(GLOB_CHARACTERS) & set(self._path)))
        if found:
            raise PipelineError(
                "sink-path",
                "A stream cannot read this output: Spark takes its path for a glob pattern, ignores the manifest "
                "and reads files of uncommitted batches",
                where=self._path,
                expected=f"a path without any of {' '.join(GLOB_CHARACTERS)}",
                found=found,
                hint="give the sink a path without these characters before its stream first runs",
            )
        # A file source checks for a manifest only at its start, so that an empty one is created.
        local = self._store.local_path(SINK_LOG)
        if local is not None:
            Path(local).mkdir(parents=True, exist_ok=True)
        elif not self._store.exists(SINK_LOG):
            keep_log(self._store)
        return self._path

    def _recorded_cut(self, cut: Cut, backup: WriteStore) -> manifest.FilesCut | None:
        """The recorded cut; ``None``: interrupted before recording, so nothing was removed."""
        record = manifest.RECORD.read(backup)
        if record is not None:
            manifest.check_record(record, cut, self.location)
        elif any(not entry.name.startswith(".") for entry in backup.list()):
            raise damaged(f"{backup.location}/{manifest.RECORD.name}", "the record of the cut", "no file")
        return record

    def _lines(self, after: int, recorded: LogEntries) -> Lines:
        return self._manifest.confirmed(after, lines_of(recorded))

    def _way(self, operation: str) -> DirectorySwap | ManifestSwap:
        return DirectorySwap(self._path, operation) if self._is_local else ManifestSwap(self._path, operation)

    @property
    def _is_local(self) -> bool:
        return local_path_of(self._path) is not None

    @property
    def _listing(self) -> str:
        return f"readers that list the files of {self.location} and ignore its manifest ({SINK_LOG}), such as a glob,"

    def _damage(self, depth: Depth) -> Iterator[Damage]:
        for first, last in self._manifest.gaps():
            batches = f"batch {first}" if first == last else f"batches {first} to {last}"
            yield Damage(f"{SINK_LOG}/{first}", "missing", f"entries of {batches}", "no file")
        files: Sequence[SinkFile] = ()
        for name in reversed(self._manifest.valid_names()):
            is_compacted = name.endswith(".compact")
            seen = bool(files) and depth != "all"
            try:
                # Readers fail on any of them. A compacted entry can have a million lines.
                if seen and is_compacted:
                    self._manifest.check_version(name)
                    continue
                _, listed = self._manifest.parse(name)
            except FormatError as error:
                expected = error.expected or "a file sink manifest"
                yield Damage(f"{SINK_LOG}/{name}", error.code, expected, error.found or error.message)
                continue
            except OSError as error:
                yield Damage(f"{SINK_LOG}/{name}", "unreadable", "a file sink manifest", str(error))
                continue
            if not seen:
                files = listed
                # A compacted entry names all files of the output, the newest last; each size is a request to the store.
                newest = files[-_CHECKED_OF_COMPACTED:] if is_compacted else files
                for file in files if depth == "all" else newest:
                    path = self.relative_path(file.path)
                    if path is None:
                        yield Damage(SINK_LOG, "foreign", f"files below {self.location}", file.path)
                    else:
                        yield from size_damage(self._store.size, path, file.size)


class FileTableOutput(FilesOutput):
    """A file table's directory from Spark's catalog. Unknown without a manifest."""

    def __init__(self, path: str, table: str) -> None:
        super().__init__(path)
        self._table = table

    def written_by(self, _query_id: str) -> int:
        """The newest batch of any query: a manifest names none. Raises SinkUnchecked without a manifest."""
        try:
            if self._store.exists(SINK_LOG):
                return self.last_written()
        # Damage of a manifest that is there stays an error; any other failure only leaves the table unchecked.
        except SinkUnreadable:
            raise
        except (OSError, SlackwaterError) as error:
            raise table_unchecked(self._table, self._path, str(error)) from error
        found = "no manifest of Spark's file sink; the catalog may have a different location for the table"
        raise table_unchecked(self._table, self._path, found)

    def of_query(self, _query_id: str, /) -> FileTableOutput:
        return self


def _server(uri: str) -> str:
    """The scheme and host, which Spark compares as strings."""
    scheme, separator, rest = uri.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}" if separator else uri.partition(":")[0] + "://"


RESERVED_OPTIONS = frozenset({"path", "checkpointlocation"})

FORMATS = ("parquet", "orc", "json", "csv", "text", "avro")
CONNECTORS: Mapping[str, tuple[str, ...]] = {"avro": ("avro",)}


@dataclass(frozen=True, slots=True)
class FilesSink(Sink):
    format: str
    path: str
    options: Mapping[str, str] = field(default_factory=dict)

    kind = "files"
    output_modes = ("append",)

    @property
    def traits(self) -> Traits:
        return files_traits(self.location)

    @property
    def connectors(self) -> tuple[str, ...]:
        return CONNECTORS.get(self.format, ())

    def identity(self) -> Identity:
        return {"kind": self.kind, "format": self.format, "path": self.location}

    @property
    def location(self) -> str:
        return absolute(self.path)

    def staged(self, operation: str, /) -> FilesSink:
        return replace(self, path=str(staging_of(self.location, operation).folder))

    def attach(self, writer: DataStreamWriter, _context: WriteContext, /) -> DataStreamWriter:
        return writer.format(self.format).options(**self.options).option("path", self.location)


def files(format: str, path: str | os.PathLike[str], **options: object) -> FilesSink:
    """Spark's file sink: ``format`` is parquet, orc, json, csv, text or avro; ``options`` are the data source's own.

    Raises PipelineError for a format, path or option that cannot be used.
    """
    if format not in FORMATS:
        raise PipelineError(
            "sink-format",
            "The file sink cannot write this format",
            expected=", ".join(FORMATS),
            found=repr(format),
            hint='for example sinks.files("parquet", "out/")',
        )
    folder = directory(path, 'sinks.files("parquet", "out/")')
    return FilesSink(format, folder, option_strings(options, RESERVED_OPTIONS))


def recognise(calls: WriterCalls) -> Identity | None:
    if calls.function or calls.table or calls.format not in FORMATS or "path" not in calls.options:
        return None
    return FilesSink(calls.format, calls.options["path"]).identity()
