"""The manifest of Spark's file sink: the valid data files of each batch, and cuts of batches.

A cut is repeatable after a kill. The backup first gets ``manifest.json``: removed files with size and hash, and
manifest entries that replace compacted entries. After each step readers see a complete log, without missing files.
"""

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from slackwater.core.checkpoint import NONE_YET, Damage, SinkFile
from slackwater.core.commands import put_aside
from slackwater.core.errors import FormatError, Refused, SinkUnreadable
from slackwater.core.sink import Cut, after_batch, newest_batch
from slackwater.formats.compactible import (
    NEWEST_VERSION,
    SINK_LOG,
    derive_interval,
    entries_of,
    lay_out,
    names_read,
    parse_entry_name,
    parse_file_sink_log,
)
from slackwater.formats.text_log import split_log
from slackwater.sinks.common.changes import RecordFile, damaged, foreign_cut, incomplete, is_at
from slackwater.sinks.common.contract import LogEntries
from slackwater.storage.local import keep_owner_and_mode
from slackwater.storage.protocols import LEFTOVER, ReadStore, WriteStore, hadoop_checksum_path

Lines = Mapping[int, Sequence[str]]
"""A batch's own manifest lines."""


class Manifest:
    """An output's manifest, always read from its store."""

    def __init__(self, store: ReadStore) -> None:
        self._store = store
        # Compacted entries have a line for each file that was ever written, and are asked for several times in a row.
        self._parsed: tuple[bytes, tuple[SinkFile, ...]] = (b"", ())

    def names(self) -> dict[int, str]:
        """The entries by batch. A folder counts: Spark takes it for an entry too, and fails to read it."""
        return entries_of(entry.name for entry in self._store.list(SINK_LOG))

    def newest(self) -> int:
        batch, name = max(self.names().items(), default=(-1, None))
        if name is not None:
            self.read(name)
        return batch

    def all_names(self) -> list[str]:
        """All names, including entries next to a compacted entry of their batch."""
        listed = [entry.name for entry in self._store.list(SINK_LOG) if not entry.is_dir]
        return [name for name in listed if parse_entry_name(name) is not None]

    def valid_names(self) -> list[str]:
        """The entries that Spark reads, oldest first: the newest compacted entry and later entries."""
        return names_read(self.names().values())

    def gaps(self) -> list[tuple[int, int]]:
        """Missing (first, last) ranges: Spark reads all from the newest compacted entry on.

        Without a compacted entry it reads all from 0.
        """
        names = self.names()
        compacted = newest_compacted(names.values())
        batches = sorted(batch for batch in names if batch >= compacted)
        if batches and compacted < 0:
            batches.insert(0, -1)
        return [(left + 1, right - 1) for left, right in itertools.pairwise(batches) if right > left + 1]

    def own_lines(self, batch: int, recorded: Lines) -> list[str]:
        """A batch's lines. Raises Refused if unknown: compacted and not in the ledger.

        Without its predecessor a recorded entry is unknown: it may be compacted, with all older lines.
        """
        names = self.names()
        name = names.get(batch)
        is_recorded = batch in recorded and (batch == 0 or batch - 1 in recorded)
        if name is not None and not name.endswith(".compact") and not (is_recorded and self._is_damaged(name)):
            return self.lines(name)
        if is_recorded:
            return list(recorded[batch])
        reason = "its entry is not in the manifest" if name is None else "the manifest was compacted"
        raise Refused(
            "sink-cut-unknown",
            f"Cannot determine which files batch {batch} added: {reason} and the ledger has no copy of the entry",
            where=f"{self._store.location}/{SINK_LOG}",
            hint=f"cut back to batch {newest_compacted(names.values())} or newer, which needs no compacted entry",
        )

    def confirmed(self, after: int, recorded: Lines) -> Lines:
        """Ledger copies whose files are all in the compacted entry.

        Others are from a replaced output. A cut of all batches ignores damaged compacted entries.
        """
        names = self.names()
        compacted = newest_compacted(names.values())
        if compacted <= after or (after == NONE_YET and self._is_damaged(names[compacted])):
            return recorded
        listed = set(self.lines(names[compacted]))
        return {batch: lines for batch, lines in recorded.items() if batch > compacted or listed.issuperset(lines)}

    def after_cut(self, after: int, recorded: Lines) -> dict[str, str]:
        """The replacements for entries merged by a later compaction, name to content."""
        names = self.names()
        compacted = newest_compacted(names.values())
        if compacted <= after or after == NONE_YET:
            return {}
        cut_lines = {line for batch in range(after + 1, compacted + 1) for line in self.own_lines(batch, recorded)}
        kept = [line for line in self.lines(names[compacted]) if line not in cut_lines]
        interval = derive_interval(names.values())
        # A log that ends at ``after`` has the batches before this one in a compacted entry, and the others singly.
        first_single = (after + 1) // interval * interval
        entries = {batch: self.own_lines(batch, recorded) for batch in range(first_single, after + 1)}
        single_lines = {line for lines in entries.values() for line in lines}
        # Compacted entries do not record which batch a line belongs to, so that all older lines can be batch 0's.
        older = {0: [line for line in kept if line not in single_lines]} if first_single else {}
        return lay_out({**older, **entries}, after, interval)

    def until(self, after: int, recorded: Lines, location: str) -> dict[str, str]:
        """The entries of a log that ends at ``after``, oldest first. Raises Refused if batches are missing."""
        if self.newest() < after:
            raise incomplete(location, f"batches up to {after}", f"{newest_batch(self.newest())} as the newest")
        entries = self.after_cut(after, recorded)
        entries |= {name: self.read(name).decode() for name in self.all_names() if batch_of(name) <= after}
        return {name: entries[name] for name in sorted(entries, key=batch_of)}

    def removal_order(self, after: int) -> list[str]:
        """The entries after batch ``after``, in an order that keeps the log complete.

        Newest first, but the newest compacted entry last: readers need nothing older next to it, and older entries may
        be partly purged.
        """
        names = self.names()
        compacted = names.get(newest_compacted(names.values()))
        doomed = [name for name in self.all_names() if batch_of(name) > after]
        return sorted(doomed, key=lambda name: (name == compacted, -batch_of(name), name))

    def lines(self, name: str) -> list[str]:
        return entry_lines(self.read(name).decode())

    def files(self) -> Iterator[SinkFile | Damage]:
        """Valid files, oldest first, and missing or malformed entries."""
        for first, _ in self.gaps():
            yield Damage(f"{SINK_LOG}/{first}", "missing", f"the entry of batch {first}", "no file")
        for name in self.valid_names():
            try:
                yield from self.parse(name)[1]
            except (OSError, FormatError) as error:
                yield Damage(f"{SINK_LOG}/{name}", "unreadable", "a file sink manifest", str(error))

    def read(self, name: str) -> bytes:
        place = f"{self._store.location}/{SINK_LOG}/{name}"
        try:
            data, _ = self.parse(name)
        except (OSError, FormatError) as error:
            reason = error if isinstance(error, FormatError) else None
            aside, how = None, "check that this user may read the file"
            if reason:
                paths = [f"{SINK_LOG}/{name}", hadoop_checksum_path(f"{SINK_LOG}/{name}")]
                # Spark writes no entry whose checksum is there.
                paths = paths if self._store.exists(paths[1]) else paths[:1]
                how = " && ".join(put_aside(f"{self._store.location}/{path}") for path in paths)
                aside = batch_of(name), how
            raise SinkUnreadable(
                "sink-unreadable",
                f"The last written batch is unknown: a manifest entry of the sink cannot be parsed ({error})",
                where=place,
                expected=(reason.expected if reason else None) or "a file sink manifest",
                found=(reason.found if reason else None) or "a file that cannot be read",
                hint=f"{how}, and type the command again",
                aside=aside,
            ) from error
        return data

    def check_version(self, name: str) -> None:
        start = next(iter(self._store.read_pieces(f"{SINK_LOG}/{name}")), b"")
        split_log(start.partition(b"\n")[0], newest=NEWEST_VERSION)

    def _is_damaged(self, name: str) -> bool:
        try:
            self.parse(name)
        except FormatError:
            return True
        # A store that cannot be reached says nothing about the entry.
        except OSError:
            return False
        return False

    def parse(self, name: str) -> tuple[bytes, tuple[SinkFile, ...]]:
        data = self._store.read(f"{SINK_LOG}/{name}")
        if not data or data != self._parsed[0]:
            self._parsed = data, parse_file_sink_log(data)
        return self._parsed


def entry_lines(content: str) -> list[str]:
    return [line for line in content.split("\n")[1:] if line.strip()]


def uris(entries: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(str(json.loads(line)["path"]) for content in entries for line in entry_lines(content)))


def renamed(content: str, new_uri: Callable[[str], str]) -> str:
    """The renamed lines; lines with an unchanged URI stay as Spark wrote them."""
    lines = content.split("\n")[:1]
    for line in entry_lines(content):
        fields = json.loads(line)
        uri = str(fields["path"])
        fields["path"] = new_uri(uri)
        is_same = fields["path"] == uri
        lines.append(line if is_same else json.dumps(fields, ensure_ascii=False, separators=(",", ":")))
    return "\n".join(lines)


def lines_of(recorded: LogEntries) -> dict[int, list[str]]:
    return {batch: entry_lines(content) for batch, content in recorded.items()}


def newest_compacted(names: Iterable[str]) -> int:
    return max((batch_of(name) for name in names if name.endswith(".compact")), default=-1)


def batch_of(name: str) -> int:
    parsed = parse_entry_name(name)
    return parsed[0] if parsed else -1


def foreign(location: str, found: str) -> Refused:
    return Refused(
        "manifest-foreign",
        "The manifest of the output lists a file outside of the output: "
        "the output was copied or moved, or its manifest was edited",
        where=f"{location}/{SINK_LOG}",
        expected=f"files below {location}",
        found=found,
        hint="move the output back to the path in its manifest; nothing was changed",
    )


def keep_log(store: WriteStore) -> None:
    """Keep an empty log on remote stores, which have no empty directories.

    Readers without a log take all files. Spark ignores hidden names in it.
    """
    if store.local_path(SINK_LOG) is None:
        store.write(f"{SINK_LOG}/.keep", b"")


@dataclass(frozen=True, slots=True)
class TakenFile:
    """A removed file. ``path`` is relative to the output."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class FilesCut:
    """``stale`` are side files of names that ``written`` uses.

    ``entries`` and ``files`` are in removal order, side files after their files. ``written`` maps new entries' paths to
    content.
    """

    output: str
    after: int
    batches: tuple[int, ...]
    stale: tuple[TakenFile, ...]
    entries: tuple[TakenFile, ...]
    files: tuple[TakenFile, ...]
    written: Mapping[str, str]

    @property
    def taken(self) -> tuple[TakenFile, ...]:
        return self.stale + self.entries + self.files


RECORD = RecordFile("manifest.json", "slackwater.sink-backup/1", FilesCut)


def make_record(store: ReadStore, location: str, cut: Cut, manifest: Manifest, lines: Lines) -> FilesCut:
    """The cut's record; reads every file once for its hash."""
    existing = set(manifest.all_names())
    written = {
        f"{SINK_LOG}/{name}": content
        for name, content in manifest.after_cut(cut.after, lines).items()
        if name not in existing
    }
    return FilesCut(
        output=location,
        after=cut.after,
        batches=cut.batches,
        stale=_hashed(store, (hadoop_checksum_path(path) for path in written)),
        entries=_with_side_files(store, (f"{SINK_LOG}/{name}" for name in manifest.removal_order(cut.after))),
        files=_with_side_files(store, cut.files),
        written=written,
    )


def delete_batches(store: WriteStore, backup: WriteStore, record: FilesCut) -> None:
    """Remove the files once the backup is complete. Raises Refused before that."""
    for taken in record.taken:
        if _hash_of(backup, taken.path) == taken.sha256:
            # A file that the output lacks was removed by an attempt that was interrupted after this copy.
            if _hash_of(store, taken.path) not in {None, taken.sha256}:
                raise _changed(taken)
        elif store.exists(taken.path):
            backup.write_pieces(taken.path, _verified(store.read_pieces(taken.path), taken))
        else:
            raise _changed(taken)
        keep_owner_and_mode(store.local_path(taken.path), backup.local_path(taken.path))
    # Hadoop's ChecksumFileSystem checks a new entry against a side file of its name, which is that of an older entry.
    for taken in record.stale:
        store.delete(taken.path)
    # Before any removal: without the newest compacted entry readers have only these.
    for path, content in record.written.items():
        if _hash_of(store, path) != hashlib.sha256(content.encode()).hexdigest():
            store.write(path, content.encode())
    if record.after == NONE_YET:
        # No entry is left, and the log must not vanish with the last one.
        keep_log(store)
    # Entries before files: Spark fails on an entry whose file is missing, and ignores a file that no entry names.
    for taken in (*record.entries, *record.files):
        store.delete(taken.path)
    _remove_leftovers(store, record)


def restore(store: WriteStore, backup: ReadStore, record: FilesCut, manifest: Manifest) -> None:
    """Restore the files. Raises Refused before any change: damaged backup, or newer batches."""
    missing = check_restore(store, backup, record, manifest)
    # Side files first: Hadoop verifies a file only if its side file exists, and must not find a wrong one.
    for taken in (*reversed(record.files), *reversed(record.entries)):
        if taken in missing:
            store.write_pieces(taken.path, _verified(backup.read_pieces(taken.path), taken))
    # Only now: until the removed entries are back, these are the log that readers have.
    for path in record.written:
        store.delete(path)
    for taken in record.stale:
        if taken in missing:
            store.write_pieces(taken.path, _verified(backup.read_pieces(taken.path), taken))
    for taken in record.taken:
        # Of all, as an attempt that was interrupted may have written the content alone.
        keep_owner_and_mode(backup.local_path(taken.path), store.local_path(taken.path))
    _remove_leftovers(store, record)


def check_restore(store: ReadStore, backup: ReadStore, record: FilesCut, manifest: Manifest) -> list[TakenFile]:
    """The missing files. Raises Refused if ``restore`` would."""
    missing = [taken for taken in record.taken if _hash_of(store, taken.path) is None]
    newest = max(manifest.names(), default=-1)
    if record.batches and newest < record.after:
        raise Refused(
            "output-changed",
            "The batches kept by the cut are no longer in the output: it was moved or deleted since",
            where=f"{record.output}/{SINK_LOG}",
            expected=newest_batch(record.after),
            found=f"{newest_batch(newest)} as the newest",
            hint="move the output back, or restore it from a backup, and run the command again; nothing was changed",
        )
    known = {taken.path for taken in record.taken} | set(record.written)
    for name in manifest.all_names():
        if batch_of(name) > record.after and f"{SINK_LOG}/{name}" not in known:
            raise Refused(
                "restore-conflict",
                f"Batch {batch_of(name)} was written to the output after the cut; restoring would mix two histories",
                where=f"{record.output}/{SINK_LOG}/{name}",
                expected=f"{newest_batch(record.after)} as the newest",
                hint="find out which program writes to the output, move its files and manifest entries away, "
                "and run the command again; nothing was changed",
            )
    texts = [(path, content.encode()) for path, content in record.written.items()]
    written = (TakenFile(path, len(data), hashlib.sha256(data).hexdigest()) for path, data in texts)
    for taken in (*record.taken, *written):
        if _hash_of(store, taken.path) not in {None, taken.sha256}:
            raise _changed(taken)
    for taken in missing:
        if _hash_of(backup, taken.path) != taken.sha256:
            raise damaged(f"{backup.location}/{taken.path}", f"sha256 {taken.sha256}", "a different file or none")
    return missing


def check_record(record: FilesCut, cut: Cut, location: str) -> None:
    names = {taken.path for taken in record.files}
    others = sorted(names - set(cut.files) - {hadoop_checksum_path(path) for path in cut.files})
    if is_at(record.output, location) and record.after == cut.after and record.batches == cut.batches and not others:
        return
    raise foreign_cut(
        location, cut.after, others[0] if others else f"a cut of {record.output} {after_batch(record.after)}"
    )


def _remove_leftovers(store: WriteStore, record: FilesCut) -> None:
    for folder in sorted(
        {path.rpartition("/")[0] for path in (SINK_LOG + "/", *(taken.path for taken in record.taken))}
    ):
        for entry in store.list(folder):
            if entry.name.endswith(LEFTOVER) and not entry.is_dir:
                store.delete(f"{folder}/{entry.name}".lstrip("/"))


def _changed(taken: TakenFile) -> Refused:
    return Refused(
        "output-changed",
        "A file of the output was changed or removed by another program since the cut was started",
        where=taken.path,
        expected=f"{taken.size} bytes with sha256 {taken.sha256}",
        hint="restore the file from a backup, or find out which program writes to the output",
    )


def _with_side_files(store: ReadStore, paths: Iterable[str]) -> tuple[TakenFile, ...]:
    return _hashed(store, (each for path in paths for each in (path, hadoop_checksum_path(path))))


def _hashed(store: ReadStore, paths: Iterable[str]) -> tuple[TakenFile, ...]:
    """The hashed files, only if they exist: a file lost before the cut cannot be restored."""
    digests = ((path, _hash_of(store, path)) for path in paths)
    return tuple(TakenFile(path, store.size(path), digest) for path, digest in digests if digest is not None)


def _hash_of(store: ReadStore, path: str) -> str | None:
    digest = hashlib.sha256()
    try:
        for piece in store.read_pieces(path):
            digest.update(piece)
    except FileNotFoundError:
        return None
    return digest.hexdigest()


def _verified(pieces: Iterable[bytes], taken: TakenFile) -> Iterator[bytes]:
    """The content by piece. Raises Refused after the last piece if the file differs from the record."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
        yield piece
    if digest.hexdigest() != taken.sha256:
        raise _changed(taken)
