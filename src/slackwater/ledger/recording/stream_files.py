"""Writes ``stream.json``, restores a lost ledger from it, and forgets streams."""

import uuid
from collections.abc import Iterable

from slackwater.core.records import GenerationRecord, StreamRecord
from slackwater.ledger.home import STREAM_FILE, Home, StreamFile, read_operation, read_stream_file, write_stream_file
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.log_copier import copy_new
from slackwater.storage.open import open_read_store, open_write_store


def write_stream_file_of(home: Home, ledger: Ledger, stream: str) -> StreamFile:
    record = ledger.find_stream(stream)
    known = read_stream_file(home, record.pipeline, record.name)
    content = StreamFile(
        id=known.id if known is not None else record.id or str(uuid.uuid4()),
        generation=record.current_generation,
        sink=record.sink,
        output_mode=record.output_mode,
        pipeline_file=record.pipeline_file,
        generations=tuple(ledger.generations(stream)),
    )
    if content != known:
        write_stream_file(home, record.pipeline, record.name, content)
    return content


def forget(home: Home, ledger: Ledger, stream: StreamRecord) -> None:
    folder = home.stream_folder(stream.pipeline, stream.name)
    # First the file by which a home knows its streams: without it the rest of the folder is of no stream.
    open_write_store(folder).delete(STREAM_FILE)
    open_write_store(folder.parent).delete_tree(folder.name)
    ledger.forget_stream(stream.full_name)


def restore_lost(home: Home, ledger: Ledger, streams: Iterable[tuple[str, str]]) -> list[str]:
    """Add ``streams`` with a ``stream.json`` to the ledger; returns their full names.

    Ranges come back from the home's checkpoints; data only in the ledger (progress, purged entries, runs) is lost, so a
    rebuild may read more.
    """
    known = {stream.full_name for stream in ledger.streams()}
    restored = []
    for pipeline, name in streams:
        full_name = f"{pipeline}/{name}"
        if full_name in known:
            continue
        restored.append(full_name)
        content = read_stream_file(home, pipeline, name)
        if content is None:
            continue
        stream = StreamRecord(
            pipeline, name, content.sink, content.output_mode, content.pipeline_file, content.generation, content.id
        )
        ledger.register_stream(stream)
        in_use = [one for one in content.generations if one.number == stream.current_generation]
        for generation in content.generations:
            if generation not in in_use:
                _restore_generation(home, ledger, stream, generation)
        folder = home.operations(pipeline, name)
        for entry in sorted(entry.name for entry in open_read_store(folder).list() if entry.is_dir):
            operation = read_operation(stream.full_name, folder / entry)
            if operation is not None:
                ledger.begin_operation(operation)
        # The last, which makes the stream known: a restoration that is killed before this is repeated.
        for generation in in_use:
            _restore_generation(home, ledger, stream, generation)
    return restored


def _restore_generation(home: Home, ledger: Ledger, stream: StreamRecord, generation: GenerationRecord) -> None:
    here = home.checkpoint(stream.pipeline, stream.name, generation.number)
    store = open_read_store(here)
    is_here = store.exists("")
    ledger.add_generation(generation._replace(location=str(here)) if is_here else generation)
    if is_here:
        # Also of those no longer in use: a newer one holds only the entries that it was built from.
        copy_new(ledger, stream.full_name, generation.number, store)
