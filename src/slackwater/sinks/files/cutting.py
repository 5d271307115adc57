"""Cuts batches out of a file sink's output and restores them, repeatable after a kill.

The backup first gets ``manifest.json``: removed files with size and hash, and manifest entries that replace compacted
entries. After each step readers see a complete log, without missing files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from slackwater.core.errors import Refused
from slackwater.core.marks import NONE_YET
from slackwater.core.sink import Cut, after_batch, newest_batch
from slackwater.formats.compactible import SINK_LOG
from slackwater.sinks.common.changes import RecordFile, damaged, foreign_cut, is_at
from slackwater.sinks.files.manifest import Lines, Manifest, batch_of, keep_log
from slackwater.storage.local import keep_owner_and_mode
from slackwater.storage.protocols import LEFTOVER, ReadStore, WriteStore, hadoop_checksum_path


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
        _back_up(store, backup, taken)
    # Hadoop's ChecksumFileSystem checks a new entry against a side file of its name, which is that of an older entry.
    for taken in record.stale:
        store.delete(taken.path)
    # Before any removal: without the newest compacted entry readers have only these.
    for path, content in record.written.items():
        _write_once(store, path, content.encode())
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
    missing = [taken for taken in record.taken if _is_missing(store, taken)]
    _check_output(store, record, manifest)
    for taken in missing:
        if _hash_of(backup, taken.path) != taken.sha256:
            raise damaged(f"{backup.location}/{taken.path}", f"sha256 {taken.sha256}", "another or no file")
    return missing


def check_record(record: FilesCut, cut: Cut, location: str) -> None:
    names = {taken.path for taken in record.files}
    others = sorted(names - set(cut.files) - {hadoop_checksum_path(path) for path in cut.files})
    if is_at(record.output, location) and record.after == cut.after and record.batches == cut.batches and not others:
        return
    raise foreign_cut(
        location, cut.after, others[0] if others else f"a cut of {record.output} {after_batch(record.after)}"
    )


def _back_up(store: ReadStore, backup: WriteStore, taken: TakenFile) -> None:
    """Raises Refused if neither output nor backup has the recorded bytes."""
    if _hash_of(backup, taken.path) == taken.sha256:
        # A file that the output lacks was removed by an attempt that was interrupted after this copy.
        if _hash_of(store, taken.path) in {None, taken.sha256}:
            keep_owner_and_mode(store.local_path(taken.path), backup.local_path(taken.path))
            return
    elif store.exists(taken.path):
        backup.write_pieces(taken.path, _verified(store.read_pieces(taken.path), taken))
        keep_owner_and_mode(store.local_path(taken.path), backup.local_path(taken.path))
        return
    raise _changed(taken)


def _check_output(store: ReadStore, record: FilesCut, manifest: Manifest) -> None:
    """Raises Refused after foreign writes since the cut."""
    if record.batches and max(manifest.names(), default=-1) < record.after:
        raise Refused(
            "output-changed",
            "The output no longer has the batches that the cut kept: it was moved or deleted since",
            where=f"{record.output}/{SINK_LOG}",
            expected=newest_batch(record.after),
            found=f"{newest_batch(max(manifest.names(), default=-1))} as the newest",
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
    for taken in record.taken:
        if _hash_of(store, taken.path) not in {None, taken.sha256}:
            raise _changed(taken)
    for path, content in record.written.items():
        if _hash_of(store, path) not in {None, hashlib.sha256(content.encode()).hexdigest()}:
            raise _changed(TakenFile(path, len(content.encode()), hashlib.sha256(content.encode()).hexdigest()))


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


def _is_missing(store: ReadStore, taken: TakenFile) -> bool:
    return _hash_of(store, taken.path) is None


def _write_once(store: WriteStore, path: str, data: bytes) -> None:
    if _hash_of(store, path) != hashlib.sha256(data).hexdigest():
        store.write(path, data)


def _with_side_files(store: ReadStore, paths: Iterable[str]) -> tuple[TakenFile, ...]:
    return _hashed(store, (each for path in paths for each in (path, hadoop_checksum_path(path))))


def _hashed(store: ReadStore, paths: Iterable[str]) -> tuple[TakenFile, ...]:
    """The hashed files, only if they exist: a file lost before the cut cannot be restored."""
    found: list[TakenFile] = []
    for path in paths:
        digest = _hash_of(store, path)
        if digest is not None:
            found.append(TakenFile(path, store.size(path), digest))
    return tuple(found)


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
