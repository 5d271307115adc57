"""A Delta table as the output of a stream: its newest batch, its owner, its damage, cutting it back.

The newest batch is that of the stream's own transactions. They are found by the stream's id, which the owner's mark
records, and not by the id of the query: that changes with a new checkpoint, whose batch 0 would then be written again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from slackwater.errors import FormatError, PipelineError, Refused, SinkUnreadable
from slackwater.model.damage import Damage
from slackwater.model.marks import NONE_YET
from slackwater.model.sink import Cut, Delivery, Swap, Traits
from slackwater.sinks import aside, owner
from slackwater.sinks.aside import Aside, can_swap
from slackwater.sinks.contract import SinkLog
from slackwater.sinks.delta import cutting, swapping, table
from slackwater.sinks.delta.log import FOLDER, DataFile, DeltaLog, entry_path
from slackwater.sinks.delta.source_place import source_place
from slackwater.sinks.delta.span import Span, span_after
from slackwater.sinks.directory_output import DirectoryOutput, path_of
from slackwater.sinks.swapping import absent, check_parties, check_whole, incomplete, start, started, unsupported
from slackwater.storage.protocols import WriteStore

DELTA_TRAITS = Traits(
    Delivery("exactly-once", "the rows of a batch and its number are one commit, and a number it has is skipped"),
    tells_written=True,
    skips_known_batches=True,
    cuts=True,
    swaps=True,
    reads_known_batches=True,
    combines=True,
)
APP_PREFIX = "slackwater-"
"""Starts the application id of every stream's transactions."""


def app_of(stream_id: str) -> str:
    """The application id of a stream's transactions (``txnAppId``)."""
    return APP_PREFIX + stream_id


def delta_traits(path: str) -> Traits:
    """What a table in this directory can do."""
    return replace(DELTA_TRAITS, swaps=can_swap(path))


def open_delta_output(identity: Mapping[str, str]) -> DeltaOutput:
    """The output of a recorded identity of kind ``delta``. Raises SinkUnreadable if the identity is incomplete."""
    return DeltaOutput(path_of("delta", identity))


class DeltaOutput(DirectoryOutput):
    """One table. ``path`` is what Spark is given; the store is not opened before it is needed."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.traits = delta_traits(path)

    @cached_property
    def _log(self) -> DeltaLog:
        return DeltaLog(self._store)

    @property
    def exists(self) -> bool:
        """Whether there is a table."""
        return self._log.versions().newest >= 0

    def last_written(self) -> int:
        app = self._app()
        if app is None:
            return -1
        versions = self._log.versions()
        for version in reversed(versions.commits):
            if version <= versions.checkpoint:
                break
            batches = self._batches(version)
            if app in batches:
                return batches[app]
        # A checkpoint repeats the transactions of all versions before it.
        return table.newest_batch(self.location, app) if versions.checkpoint >= 0 else -1

    def log(self) -> SinkLog | None:
        return None

    def name_of(self, uri: str) -> str | None:
        name = self._place.name_of(uri)
        return None if name is None or name.split("/")[0] in {FOLDER, owner.MARK, aside.MARK} else name

    def damage(self, *, thorough: bool = False) -> tuple[Damage, ...]:
        return tuple(self._damage(thorough=thorough))

    def cut_after(self, batch: int, recorded: Mapping[int, str]) -> Cut:
        del recorded  # The table's own log has everything.
        return self._cut_after(batch)[0]

    def cut(self, cut: Cut, recorded: Mapping[int, str], backup: WriteStore) -> None:
        del recorded  # As above.
        record = cutting.RECORD.read(backup)
        if record is None:
            span = self._checked(cut)
            if span is None:
                return
            record = cutting.record_of(self.location, self._app() or "", cut, span)
            cutting.RECORD.write(backup, record)
        cutting.check_record(record, cut, self.location)
        seen = cutting.seen_by(self._log, record)
        if seen == "other":
            raise cutting.changed(record, "output-changed")
        if seen == "whole":
            cutting.take_out(self._store, record, span_after(self._log, record.app, record.after))

    def restore(self, cut: Cut, backup: WriteStore) -> None:
        record = cutting.RECORD.read(backup)
        if record is None:
            return  # The cut was interrupted before it recorded anything, so that nothing was removed.
        cutting.check_record(record, cut, self.location)
        seen = cutting.seen_by(self._log, record)
        if seen == "other":
            raise cutting.changed(record, "restore-conflict")
        if seen == "cut":
            cutting.put_back(record)

    def staged(self, operation: str) -> DeltaOutput:
        return DeltaOutput(str(self._aside(operation).folder))

    def stage(self, operation: str, after: int, recorded: Mapping[int, str]) -> None:
        """An empty staged table is created by the sink, with the columns of the query."""
        del recorded  # As above.
        place = self._aside(operation)
        if place.start():
            if after >= 0:
                self._fill(place, after)
            place.set_mark(place.folder, "staged")

    def swap_of(self, operation: str, stream_id: str) -> Swap:
        return Swap(operation, stream_id, self.last_written())

    def whole(self, recorded: Mapping[int, str]) -> Cut:
        return self.cut_after(NONE_YET, recorded)

    def check_swap(self, swap: Swap, backup: WriteStore) -> None:
        record = started(backup, self.location, swap)
        if record is not None and swapping.since_swap(self._log, record):
            return
        place, staged = self._aside(swap.operation), self.staged(swap.operation)
        if not self.exists:
            raise unsupported(self.location, "a Delta table", "none")
        if place.state != "staged" or not staged.exists:
            raise absent(staged.location, swap.operation, place.state or "no folder")
        check_whole(staged.location, staged.damage())
        check_parties(self.location, swap, self.last_written(), self.owner(), staged.owner())
        swapping.check(place)

    def swap(self, swap: Swap, backup: WriteStore) -> None:
        self.check_swap(swap, backup)
        record = start(backup, self.location, swap, self._log.versions().newest)
        place, staged = self._aside(swap.operation), self.staged(swap.operation)
        if not swapping.since_swap(self._log, record):
            swapping.put_in_place(place, app_of(swap.stream_id), staged.last_written())
        if place.state == "staged":
            place.set_mark(place.folder, "replaced")

    def swap_back(self, swap: Swap, backup: WriteStore) -> None:
        record = started(backup, self.location, swap)
        if record is None:
            return  # The swap was interrupted before it recorded anything, so that nothing was changed.
        place, commits = self._aside(swap.operation), swapping.since_swap(self._log, record)
        if commits:
            app = app_of(swap.stream_id)
            swapping.check_own(self.location, commits, app)
            swapping.put_back(place, commits[-1].version - 1, app, swap.replaced)
        if place.state == "replaced":
            place.set_mark(place.folder, "staged")

    def discard_staged(self, operation: str) -> None:
        self._aside(operation).discard("building", "staged")

    def discard_replaced(self, operation: str) -> None:
        """What is left of the staged table; the table's versions before the swap are kept until VACUUM."""
        self._aside(operation).discard("replaced")

    def was_read(self, offsets: Iterable[str], cut: Cut) -> bool:
        """Whether a source of Delta at one of these offsets has read a version that the cut takes out."""
        places = [place for place in map(source_place, offsets) if place is not None]
        app = self._app()
        if not places or app is None:
            return False
        table_id, target = table.table_id(self.location), span_after(self._log, app, cut.after).target
        return any(place.table == table_id and place.is_after(target) for place in places)

    def reader_path(self) -> str:
        if not self.exists:
            raise PipelineError(
                "output-absent",
                "A stream cannot read this Delta table: it does not exist yet, so that its schema is unknown",
                where=self._path,
                hint="define the stream that writes it before the one that reads it, and run both",
            )
        return self._path

    def _aside(self, operation: str) -> Aside:
        return Aside(self._path, operation)

    def _fill(self, place: Aside, after: int) -> None:
        last, app = self.last_written(), self._app()
        if app is None or last < after:
            raise incomplete(self.location, f"batches up to {after}", f"batch {last} as the newest")
        span = span_after(self._log, app, after)
        if not span.by_restore:
            cutting.check_files_removable(self.location, span)
        swapping.fill(place, app, after, span)

    def _app(self) -> str | None:
        """The application id of the stream that writes here, ``None`` if no stream has."""
        known = self.owner()
        if known is not None:
            return app_of(known.stream_id)
        # The mark was deleted, or no stream has claimed the table: its newest commits show which stream wrote them.
        for version in reversed(self._log.versions().commits):
            found = [app for app in self._batches(version) if app.startswith(APP_PREFIX)]
            if found:
                return found[0]
        return None

    def _batches(self, version: int) -> Mapping[str, int]:
        try:
            return self._log.batches(version)
        except FormatError as error:
            raise self._unreadable(error.where or FOLDER, error.found or error.message) from error
        except FileNotFoundError as error:
            raise self._unreadable(entry_path(version), "no file") from error

    def _unreadable(self, where: str, found: str) -> SinkUnreadable:
        return SinkUnreadable(
            "delta-log-unreadable",
            "The newest commit of the Delta table is malformed",
            where=f"{self.location}/{where}",
            expected="one JSON action in each line",
            found=found,
            hint="restore the file from a backup; Spark cannot read the table either",
        )

    def _cut_after(self, batch: int) -> tuple[Cut, Span | None]:
        last, app = self.last_written(), self._app()
        if app is None or last <= batch:
            return Cut(batch, ()), None
        try:
            span = span_after(self._log, app, batch)
        except FormatError as error:
            raise self._unreadable(error.where or FOLDER, error.found or error.message) from error
        if not span.by_restore:
            cutting.check_files_removable(self.location, span)
        files = span.files()
        names = tuple(file.path for file in files)
        size = sum(file.size for file in files)
        return Cut(batch, tuple(range(batch + 1, last + 1)), names, size, span.rows(), str(span.newest)), span

    def _checked(self, cut: Cut) -> Span | None:
        """The commits that the cut takes out, ``None`` for none. Raises Refused unless it names what the table has."""
        expected, span = self._cut_after(cut.after)
        if cut != expected:
            raise Refused(
                "cut-mismatch",
                f"The table does not have the same files and version after batch {cut.after} as the cut",
                where=self.location,
                expected=f"{len(expected.files)} files, version {expected.version}",
                found=f"{len(cut.files)} files, version {cut.version}",
                hint="make a new plan: slackwater plan rebuild STREAM",
            )
        return span

    def _damage(self, *, thorough: bool) -> Iterator[Damage]:
        versions = self._log.versions()
        for version in versions.missing():
            yield Damage(entry_path(version), "missing", f"the commit of version {version}", "no file")
        if versions.newest < 0 or versions.newest not in versions.commits:
            return
        try:
            commit = self._log.commit(versions.newest)
        except (OSError, FormatError) as error:
            kind, found = (error.code, error.found) if isinstance(error, FormatError) else ("unreadable", str(error))
            yield Damage(entry_path(versions.newest), kind, "one JSON action in each line", found or "")
            return
        yield from self._damaged_files(commit.adds)
        if thorough and not versions.missing():
            newest = {file.path for file in commit.adds}
            yield from self._damaged_files(file for file in table.live_files(self.location) if file.path not in newest)

    def _damaged_files(self, files: Iterable[DataFile]) -> Iterator[Damage]:
        for file in files:
            if "://" in file.path or file.path.startswith("/"):
                continue  # A shallow clone names files of another table.
            try:
                size = self._store.size(file.path)
            except OSError as error:
                missing = isinstance(error, FileNotFoundError)
                kind, found = ("missing", "no file") if missing else ("unreadable", str(error))
                yield Damage(file.path, kind, f"{file.size} bytes", found)
            else:
                if size != file.size:
                    yield Damage(file.path, "torn", f"{file.size} bytes", f"{size} bytes")
