"""Lists the files of file sources that count as read and that are unread.

Spark's own source lists them: options, patterns, hidden files, manifests and name encoding are Spark's.
"""

import re
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from slackwater.core.checkpoint import SinkFile, SourceFile
from slackwater.core.errors import EnvironmentMissing
from slackwater.core.targets import Target
from slackwater.core.units import duration_text
from slackwater.formats.compactible import (
    SINK_LOG,
    lay_out,
    names_read,
    parse_entry_name,
    parse_file_sink_log,
    parse_file_source_log,
    render_source_file,
)
from slackwater.sources.common.contract import (
    Ahead,
    EmptyBase,
    LeftOut,
    Position,
    Reach,
    SourceRange,
    SourceSeen,
    SparkSource,
    Uncounted,
    listed,
    out_of_range,
    unrecorded,
    without_partitions,
)
from slackwater.sources.common.source import LiveSource, encoded
from slackwater.sources.files import NO_FILES
from slackwater.sources.files import SOURCE as FILES
from slackwater.storage.local import LocalStore
from slackwater.storage.open import local_file_of

_AGE, _DEFAULT_AGE = "maxFileAge", "7d"
_DAY_MS = 24 * 60 * 60 * 1000
_READ, _LAST = 0, 1
_DESCRIPTION = re.compile(r"FileStreamSource\[(?P<path>.*)\]", re.DOTALL)
_GLOB = re.compile(r"[*?\[\]{}\\]")


class FilesLive(LiveSource):
    def position(self, source: SourceSeen, target: Target, given: str | None) -> Position:
        """The position of a file source.

        ``earliest``: no file counts as read; ``latest``: all existing files; a time: files with an older modification
        time; a shift back: all but the newest recorded files, in reading order; a shift forward: the recorded files and
        the next unread ones, in Spark's order; ``given``: files up to that log entry.
        """
        present = _present(source)
        match target.kind:
            case "earliest":
                read: Sequence[SourceFile] = ()
            case "latest":
                read = present
            case "time":
                read = [file for file in present if file.timestamp_ms < target.number]
            case "shift":
                read = _shifted(source, present, target.number)
            case "offsets":
                read = _recorded_until(source, present, given)
            case _:
                raise ValueError(target)
        return source.at(_base(source, read), _change(source, present, read))

    def unreachable(self, source: SparkSource, reason: str) -> EnvironmentMissing:
        return EnvironmentMissing(
            "store-unreachable",
            f"The files of a source cannot be listed: {reason}",
            where=source.where,
            hint="check the path and the options of the source",
        )

    def left_out(
        self, source: SparkSource, read: Sequence[SourceFile], again: Sequence[SourceFile], reach: Reach
    ) -> LeftOut | None:
        age_ms, counted = _max_age_ms(source), {file.path: file.timestamp_ms for file in read}
        if age_ms is None or not counted:
            return None
        newest_ms = max(counted.values())
        unread = {file.path for file in again} - counted.keys()
        # Spark compares the time that a file has now, not the one that was recorded.
        written_ms = reach.all_modified_ms(unread)
        old = {path: ms for path, ms in sorted(written_ms.items()) if ms < newest_ms - age_ms}
        if not old:
            return None
        oldest_ms = newest_ms - min(old.values())
        wanted = f"{oldest_ms // _DAY_MS + 1}d"
        return LeftOut(next(iter(old)), len(old), _AGE, duration_text(age_ms), duration_text(oldest_ms), wanted)

    def unread(self, description: str, span: SourceRange, files_max: int) -> Sequence[int]:
        """The sizes of unread files; lists local directories only."""
        store = _directory(description)
        if FILES.unrecorded(span):
            raise Uncounted("has read files that the ledger does not list")
        return _unread(store, FILES.files(span), files_max)

    def ahead(self, end: str | None, read: Sequence[SourceFile], address: str | None, files_max: int) -> Ahead:
        """The unread files next to read files, or below ``address``. Lists local directories only."""
        # A source's log has percent-encoded URIs.
        paths = [local_file_of(file.path) or file.path for file in read]
        folders = {without_partitions(path.rpartition("/")[0]) for path in paths} if address is None else {address}
        if not folders:
            raise Uncounted("has read no file yet, so that its folder is unknown")
        sizes = [size for one in folders for size in _unread(_directory(f"FileStreamSource[{one}]"), read, files_max)]
        return Ahead(None, len(sizes), sum(sizes))


def _max_age_ms(source: SparkSource) -> int | None:
    """How much older than the newest read file a file may be, as in ``FileStreamSource``.

    ``None``: any age, as Spark has no limit if it reads the newest files first and limits batches.
    """
    options = {name.lower(): value for name, value in source.options.items()}
    limited = {"maxfilespertrigger", "maxbytespertrigger"} & options.keys()
    if options.get("latestfirst", "false").lower() == "true" and limited:
        return None
    text = options.get(_AGE.lower(), _DEFAULT_AGE)
    return int(source.jvm.org.apache.spark.network.util.JavaUtils.timeStringAsMs(text))


def _unread(store: LocalStore, read: Sequence[SourceFile], files_max: int) -> list[int]:
    known = {local_file_of(file.path) for file in read}
    written = _of_manifest(store, files_max)
    if written is not None:
        return [size for path, size in written.items() if path not in known]
    return [store.size(name) for name in _names(store, files_max) if f"{store.location}/{name}" not in known]


def _present(source: SourceSeen) -> tuple[SourceFile, ...]:
    unlimited = source.spark.jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit.allAvailable()
    with tempfile.TemporaryDirectory() as folder:
        # A source of its own, with an empty log in which it records all that it finds as read.
        lister = source.spark.relation.dataSource().createSource(f"file://{folder}/log")
        try:
            lister.latestOffset(None, unlimited)
        finally:
            lister.stop()
        return tuple(
            file
            for entry in sorted(Path(folder).glob("log/[0-9]*"))
            for file in parse_file_source_log(entry.read_bytes())
        )


def _base(source: SourceSeen, read: Iterable[SourceFile]) -> EmptyBase:
    lines = [render_source_file(file._replace(log_offset=_READ)) for file in read]
    if not lines:
        return EmptyBase(NO_FILES)
    # With cleanSource, Spark deletes or archives the files of the newest entry when the next batch starts. Files that
    # only count as read must stay: the newest entry is empty.
    log = lay_out({_READ: lines, _LAST: []}, _LAST, source.interval)
    return EmptyBase(f'{{"logOffset":{_LAST}}}', {name: encoded(content) for name, content in log.items()})


def _recorded(source: SourceSeen) -> tuple[SourceFile, ...] | None:
    return None if FILES.unrecorded(source.read) else FILES.files(source.read)


def _known(source: SourceSeen) -> tuple[SourceFile, ...]:
    recorded = _recorded(source)
    if recorded is None:
        raise unrecorded(source, FILES.unrecorded(source.read))
    return recorded


def _shifted(source: SourceSeen, present: Sequence[SourceFile], count: int) -> Sequence[SourceFile]:
    recorded = _known(source)
    seen = {file.path for file in recorded}
    unread = [file for file in present if file.path not in seen]
    if not -len(recorded) <= count <= len(unread):
        raise out_of_range(
            source.where,
            "it does not have as many files",
            expected=f"shift:-{len(recorded)} to shift:+{len(unread)}",
            found=f"shift:{count:+}",
        )
    if count >= 0:
        return [*recorded, *unread[:count]]
    read = recorded[:count]
    _check_present(source, present, recorded[count:])
    return read


def _recorded_until(source: SourceSeen, present: Sequence[SourceFile], given: str | None) -> Sequence[SourceFile]:
    recorded = _known(source)
    newest = max((file.log_offset for file in recorded), default=-1)
    FILES.check_offset(source.name, given, source.where)
    entry = FILES.cut_entry(given) or 0
    if entry > newest:
        raise out_of_range(
            source.where,
            "its own log has no such entry",
            expected=f"-1 to {newest}",
            found=str(entry),
            hint="-1 is before the first file; files that no batch has read have no entry: use time:... or latest",
        )
    _check_present(source, present, [file for file in recorded if file.log_offset > entry])
    return [file for file in recorded if file.log_offset <= entry]


def _check_present(source: SourceSeen, present: Iterable[SourceFile], again: Iterable[SourceFile]) -> None:
    there = {file.path for file in present}
    missing = [file.path for file in again if file.path not in there]
    if missing:
        raise out_of_range(
            source.where,
            "files that are to be read again no longer exist",
            found=listed(missing),
            hint="restore them, or use time:... or earliest, which read again what is left",
        )


def _change(source: SourceSeen, present: Sequence[SourceFile], read: Sequence[SourceFile]) -> str:
    recorded, after = _recorded(source), {file.path for file in read}
    there = {file.path for file in present}
    if recorded is None:
        return f"an unknown number of files read -> {len(after)}; {len(there - after)} are to be read"
    before = {file.path for file in recorded}
    parts = [
        f"{count} {what}"
        for count, what in (
            (len((before - after) & there), "are to be read again"),
            (len(after - before), "are skipped"),
            (len(there - after - before), "are to be read for the first time"),
            (len(before - after - there), "no longer exist"),
        )
        if count
    ]
    return "; ".join([f"{len(before)} files read -> {len(after)}", *parts])


def _directory(description: str) -> LocalStore:
    match = _DESCRIPTION.match(description)
    path = match["path"] if match else ""
    # Hadoop's Path.toString: a URI whose path is not percent-encoded.
    scheme, colon, rest = path.partition(":")
    if colon and scheme != "file":
        raise Uncounted(f"is not on a local disk: {path}")
    local = re.sub(r"^/+", "/", rest if colon else path)
    if _GLOB.search(local):
        raise Uncounted(f"reads a path pattern: {path}")
    store = LocalStore(local)
    if not store.exists(""):
        raise Uncounted(f"does not exist: {path}")
    return store


def _of_manifest(store: LocalStore, files_max: int) -> dict[str | None, int] | None:
    """The manifest of Spark's file sink, or ``None``: Spark reads only its files from the output."""
    listed_names = [entry.name for entry in store.list(SINK_LOG) if not entry.is_dir and parse_entry_name(entry.name)]
    if not listed_names:
        return None
    files: list[SinkFile] = []
    for name in names_read(listed_names):
        files += parse_file_sink_log(store.read(f"{SINK_LOG}/{name}"))
        _require_countable(files, files_max)
    return {local_file_of(file.path): file.size for file in files}


def _names(store: LocalStore, files_max: int) -> list[str]:
    names: list[str] = []
    for folder in store.folders():
        if all("=" in part for part in folder.path.split("/") if part):
            prefix = f"{folder.path}/" if folder.path else ""
            names += [prefix + name for name in folder.files if not name.startswith((".", "_"))]
        _require_countable(names, files_max)
    return names


def _require_countable(found: Sequence[object], files_max: int) -> None:
    if len(found) > files_max:
        raise Uncounted(f"has more than {files_max:,} files")


LIVE = FilesLive(FILES)
