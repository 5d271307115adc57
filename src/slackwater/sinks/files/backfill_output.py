"""A directory of the file sink that an operation fills and owns.

It may contain no other files, and only its own files are removed.
"""

import os
import re
from dataclasses import replace
from pathlib import Path

from slackwater.core.sink import BackfillDirectory, Identity, Owner
from slackwater.formats.compactible import SINK_LOG
from slackwater.sinks.common.contract import Sink
from slackwater.sinks.common.directory import OWNER_FILE, read_owner
from slackwater.sinks.files.sink import FilesOutput, FilesSink, files
from slackwater.storage.open import open_write_store
from slackwater.storage.protocols import LEFTOVER

DEFAULT_FORMAT = "parquet"
_DATA_FILE = re.compile(r"\.?part-[0-9]{5,}-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}[-.].*")
"""Spark's names of data files and checksums, also of interrupted batches."""


def backfill_output(sink: Identity, path: str) -> BackfillDirectory:
    # A checkpoint does not show the format of its output.
    known = sink.get("format") if sink.get("kind") == FilesSink.kind else None
    return BackfillDirectory(known or DEFAULT_FORMAT, path)


def directory_sink(sink: Sink, output: BackfillDirectory) -> FilesSink:
    if isinstance(sink, FilesSink) and sink.format == output.format:
        return replace(sink, path=output.path)
    return files(output.format, output.path)


def identity(output: BackfillDirectory) -> Identity:
    return files(output.format, output.path).identity()


def open_backfill_output(output: BackfillDirectory) -> FilesOutput:
    return FilesOutput(output.path)


def found_in(output: BackfillDirectory) -> tuple[str, ...]:
    """The unexpected content; empty without a directory, ``"a file"`` for a file.

    Folders without files do not count: not every store can remove them.
    """
    store = open_write_store(output.path)
    found = (entry for entry in store.list() if not entry.name.endswith(LEFTOVER))
    names = tuple(
        sorted(
            entry.name
            for entry in found
            if not entry.is_dir or any(folder.files for folder in store.folders(entry.name))
        )
    )
    if not names and store.exists("") and next(store.folders(), None) is None:
        return ("a file",)
    return names


def claim(output: BackfillDirectory, operation: str, stream: str, home: str) -> None:
    """Create and mark the directory. Raises Refused (``sink-owned``)."""
    open_backfill_output(output).claim(Owner(operation, stream, home))


def discard(output: BackfillDirectory, operation: str) -> None:
    """Remove the operation's files only. Repeatable."""
    store = open_write_store(output.path)
    known = read_owner(store)
    if known is not None and known.stream_id == operation:
        listed = set(open_backfill_output(output).cut_after(-1, {}).files)
        root = store.local_path("")
        found = (
            f"{folder.path}/{name}".lstrip("/")
            for folder in store.folders()
            # ``folders`` follows links: a file behind one would be deleted although it is not in this directory.
            if root is None or os.path.realpath(Path(root, folder.path)) == str(Path(root).resolve() / folder.path)
            for name in folder.files
        )
        names = sorted(found, key=lambda name: name.startswith(f"{SINK_LOG}/"))
        # The manifest after what it lists, the mark last: an interrupted removal finds them.
        for name in names:
            if name in listed or name.startswith(f"{SINK_LOG}/") or _DATA_FILE.fullmatch(name.rpartition("/")[2]):
                store.delete(name)
        for parent, _, _ in os.walk(root, topdown=False) if root else ():
            if parent != root and not any(Path(parent).iterdir()):
                Path(parent).rmdir()
        store.delete(OWNER_FILE)
    for entry in store.list():
        if entry.name.endswith(LEFTOVER):
            store.delete(entry.name)
