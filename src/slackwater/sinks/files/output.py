"""The output directory of Spark's file sink: which batches and files count, who owns it, cutting it back.

Batches are removed whole. If the manifest was compacted after the cut, the files of each batch must be known from its
own entry or from the ledger's copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from slackwater.errors import FormatError, PipelineError, Refused
from slackwater.formats.file_sink_log import FOLDER, parse_file_sink_log, parse_sink_file
from slackwater.model.checkpoint_logs import SinkFile
from slackwater.model.damage import Damage
from slackwater.model.marks import NONE_YET
from slackwater.model.sink import Cut, Delivery, Swap, Traits
from slackwater.sinks import aside, owner
from slackwater.sinks.aside import Aside, can_swap
from slackwater.sinks.backup import damaged
from slackwater.sinks.contract import SinkLog
from slackwater.sinks.directory_output import DirectoryOutput, path_of
from slackwater.sinks.files import cutting, swapping
from slackwater.sinks.files.manifest import Lines, Manifest, foreign, lines_of
from slackwater.sinks.swapping import check_parties, start, started
from slackwater.storage.protocols import WriteStore

FILES_TRAITS = Traits(
    Delivery("exactly-once", "the manifest lists each batch once, and a batch whose id it has is skipped"),
    tells_written=True,
    skips_known_batches=True,
    cuts=True,
    swaps=True,
)
GLOB_CHARACTERS = "{}[]*?\\"
"""With one of these in its path a file source lists files itself and ignores the manifest (``isGlobPath``)."""
_CHECKED_OF_COMPACTED = 100
_NOT_DATA = frozenset({FOLDER, owner.MARK, aside.MARK, cutting.RECORD.name})
"""Names that no data file of Spark has; a manifest that lists one was edited."""


def files_traits(path: str) -> Traits:
    """What an output in this directory can do."""
    return replace(FILES_TRAITS, swaps=can_swap(path))


def open_files_output(identity: Mapping[str, str]) -> FilesOutput:
    """The output of a recorded identity of kind ``files``. Raises SinkUnreadable if the identity is incomplete."""
    return FilesOutput(path_of("files", identity))


class FilesOutput(DirectoryOutput):
    """One output directory. ``path`` is what Spark is given; the store is not opened before it is needed."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.traits = files_traits(path)

    @cached_property
    def _manifest(self) -> Manifest:
        return Manifest(self._store)

    def last_written(self) -> int:
        return self._manifest.newest()

    def orphans(self) -> tuple[str, ...]:
        """Data files that no manifest entry names; none where an entry cannot be parsed, which is damage."""
        try:
            entries = [self._manifest.parse(name)[1] for name in self._manifest.valid_names()]
        except (OSError, FormatError):
            return ()
        named = {self.name_of(file.path) for files in entries for file in files}
        found = (
            f"{folder.path}/{name}".lstrip("/")
            for folder in self._store.folders()
            for name in folder.files
            if not any(_is_hidden(part) for part in (*folder.path.split("/"), name))
        )
        return tuple(sorted(name for name in found if name not in named))

    def log(self) -> SinkLog | None:
        return SinkLog(self._store, FOLDER, parse_file_sink_log)

    def name_of(self, uri: str) -> str | None:
        name = self._place.name_of(uri)
        return None if name is None or name.split("/")[0] in _NOT_DATA else name

    def damage(self, *, thorough: bool = False) -> tuple[Damage, ...]:
        return tuple(self._damage(thorough=thorough))

    def cut_after(self, batch: int, recorded: Mapping[int, str]) -> Cut:
        lines, files = self._lines(batch, recorded), list[SinkFile]()
        last = self.last_written()
        for doomed in range(batch + 1, last + 1):
            files += [parse_sink_file(line) for line in self._manifest.own_lines(doomed, lines)]
        names = tuple(self._own_name(file) for file in files)
        return Cut(batch, tuple(range(batch + 1, last + 1)), names, sum(file.size for file in files))

    def cut(self, cut: Cut, recorded: Mapping[int, str], backup: WriteStore) -> None:
        record = cutting.RECORD.read(backup)
        if record is None:
            self._check_cut(cut, recorded)
            record = cutting.make_record(
                self._store, self.location, cut, self._manifest, self._lines(cut.after, recorded)
            )
            cutting.RECORD.write(backup, record)
        cutting.check_record(record, cut, self.location)
        cutting.take_out(self._store, backup, record)

    def restore(self, cut: Cut, backup: WriteStore) -> None:
        record = cutting.RECORD.read(backup)
        if record is None:
            if any(not entry.name.startswith(".") for entry in backup.list()):
                raise damaged(f"{backup.location}/{cutting.RECORD.name}", "the record of the cut", "no file")
            return  # The cut was interrupted before it recorded anything, so that nothing was removed.
        cutting.check_record(record, cut, self.location)
        cutting.put_back(self._store, backup, record, self._manifest)

    def staged(self, operation: str) -> FilesOutput:
        return FilesOutput(str(self._aside(operation).folder))

    def stage(self, operation: str, after: int, recorded: Mapping[int, str]) -> None:
        place = self._aside(operation)
        place.check_exchangeable()
        if place.start():
            if after >= 0:
                swapping.fill(place, self._manifest, after, self._lines(after, recorded), self.name_of)
            # A stream that reads the output looks for the manifest once, at its start.
            (place.folder / FOLDER).mkdir(exist_ok=True)
            place.set_mark(place.folder, "staged")

    def swap_of(self, operation: str, stream_id: str) -> Swap:
        return Swap(operation, stream_id, self.last_written())

    def whole(self, recorded: Mapping[int, str]) -> Cut:
        return self.cut_after(NONE_YET, recorded)

    def check_swap(self, swap: Swap, backup: WriteStore) -> None:
        started(backup, self.location, swap)
        place = self._aside(swap.operation)
        if not place.is_swapped:
            swapping.check(place, swap)
            staged = self.staged(swap.operation).owner()
            check_parties(self.location, swap, self.last_written(), self.owner(), staged)

    def swap(self, swap: Swap, backup: WriteStore) -> None:
        place = self._aside(swap.operation)
        if started(backup, self.location, swap) is not None:
            place.finish_exchange()
        self.check_swap(swap, backup)
        start(backup, self.location, swap)
        if not place.is_swapped:
            swapping.name_files_in(place, place.real)
        swapping.exchange(place)

    def swap_back(self, swap: Swap, backup: WriteStore) -> None:
        if started(backup, self.location, swap) is None:
            return  # The swap was interrupted before it recorded anything, so that nothing was changed.
        place = self._aside(swap.operation)
        place.finish_exchange()
        if not place.is_swapped and place.state != "staged":
            raise damaged(str(place.folder), "the output before the swap", place.state or "no folder")
        swapping.exchange_back(place)
        swapping.name_files_in(place, place.folder)

    def discard_staged(self, operation: str) -> None:
        self._aside(operation).discard("building", "staged")

    def discard_replaced(self, operation: str) -> None:
        self._aside(operation).discard("replaced")

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
        self._prepare()
        return self._path

    def _lines(self, after: int, recorded: Mapping[int, str]) -> Lines:
        return self._manifest.confirmed(after, lines_of(recorded))

    def _aside(self, operation: str) -> Aside:
        return Aside(self._path, operation)

    def _prepare(self) -> None:
        """Create an empty manifest: a file source decides once, at its start, whether its input has one."""
        local = self._store.local_path(FOLDER)
        if local is not None:
            Path(local).mkdir(parents=True, exist_ok=True)
        elif not self._store.exists(FOLDER):
            # An object store has no empty directories. Spark ignores hidden names in its logs.
            self._store.write(f"{FOLDER}/.keep", b"")

    def _check_cut(self, cut: Cut, recorded: Mapping[int, str]) -> None:
        """Raises Refused unless the manifest names exactly what ``cut`` takes out."""
        expected = self.cut_after(cut.after, recorded)
        foreign = sorted(set(cut.files) - set(expected.files)) or sorted(set(expected.files) - set(cut.files))
        if foreign or cut.batches != expected.batches:
            raise Refused(
                "cut-mismatch",
                f"The manifest does not list the same files after batch {cut.after} as the cut",
                where=self.location,
                expected=f"{len(expected.files)} files of {len(expected.batches)} batches",
                found=foreign[0] if foreign else f"{len(cut.files)} files of {len(cut.batches)} batches",
                hint="undo the operation and make a new plan; nothing was changed",
            )

    def _own_name(self, file: SinkFile) -> str:
        name = None if file.is_dir else self.name_of(file.path)
        if name is None:
            raise foreign(self.location, file.path)
        return name

    def _damage(self, *, thorough: bool) -> Iterator[Damage]:
        for first, last in self._manifest.gaps():
            batches = f"batch {first}" if first == last else f"batches {first} to {last}"
            yield Damage(f"{FOLDER}/{first}", "missing", f"entries of {batches}", "no file")
        for name in reversed(self._manifest.valid_names()):
            try:
                _, files = self._manifest.parse(name)
            except (OSError, FormatError) as error:
                yield _unparsed(f"{FOLDER}/{name}", error)
            else:
                newest = files[-_CHECKED_OF_COMPACTED:] if name.endswith(".compact") else files
                yield from self._damaged_files(files if thorough else newest)
                if files and not thorough:
                    return

    def _damaged_files(self, files: Sequence[SinkFile]) -> Iterator[Damage]:
        for file in files:
            name = self.name_of(file.path)
            if name is None:
                yield Damage(FOLDER, "foreign", f"files below {self.location}", file.path)
                continue
            try:
                size = self._store.size(name)
            except OSError as error:
                missing = isinstance(error, FileNotFoundError)
                kind, found = ("missing", "no file") if missing else ("unreadable", str(error))
                yield Damage(name, kind, f"{file.size} bytes", found)
            else:
                if size != file.size:
                    yield Damage(name, "torn", f"{file.size} bytes", f"{size} bytes")


def _is_hidden(name: str) -> bool:
    """Whether Spark leaves out a file or folder of this name when it lists data (``shouldFilterOutPathName``)."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _unparsed(path: str, error: OSError | FormatError) -> Damage:
    if isinstance(error, FormatError):
        return Damage(path, error.code, error.expected or "a file sink manifest", error.found or error.message)
    return Damage(path, "unreadable", "a file sink manifest", str(error))
