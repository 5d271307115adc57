"""``stream.json``: what must be known of a stream even when the ledger is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from slackwater.core.commands import put_aside
from slackwater.core.errors import FormatError
from slackwater.core.records import GenerationRecord
from slackwater.core.unicode import is_unicode
from slackwater.ledger.home.home import Home
from slackwater.storage.open import open_read_store, open_write_store

STREAM_FILE = "stream.json"


@dataclass(frozen=True, slots=True)
class StreamFile:
    """``id`` is given once and never changes; ``generation`` is the number of the checkpoint in use.

    ``sink`` is the sink's identity, ``output_mode`` and ``pipeline_file`` are as in ``StreamRecord``; ``generations``
    are all that were made.
    """

    id: str
    generation: int
    sink: Mapping[str, str]
    output_mode: str
    pipeline_file: str
    generations: Sequence[GenerationRecord]


def read_stream_file(home: Home, pipeline: str, stream: str) -> StreamFile | None:
    """``stream.json``, ``None`` where there is none yet. Raises ``FormatError`` (``stream-file-damaged``)."""
    folder = open_read_store(home.stream_folder(pipeline, stream))
    try:
        text = folder.read(STREAM_FILE)
    except FileNotFoundError:
        return None
    except IsADirectoryError as error:
        raise _damaged(f"{folder.location}/{STREAM_FILE}", b"a directory") from error
    try:
        content = json.loads(text)
        _check_texts(content)
        found = StreamFile(
            str(content["id"]),
            int(content["generation"]),
            {str(key): str(value) for key, value in content["sink"].items()},
            str(content["output_mode"]),
            str(content["pipeline_file"]),
            tuple(_generation(f"{pipeline}/{stream}", record) for record in content["generations"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise _damaged(f"{folder.location}/{STREAM_FILE}", text) from error
    if found.generations and found.generation not in {one.number for one in found.generations}:
        raise _damaged(f"{folder.location}/{STREAM_FILE}", text)
    return found


def write_stream_file(home: Home, pipeline: str, stream: str, content: StreamFile) -> None:
    """Replace ``stream.json`` in one step; it is on the disk when this returns."""
    generations = [
        {key: value for key, value in asdict(record).items() if key != "stream"} for record in content.generations
    ]
    fields_ = {**asdict(content), "sink": dict(content.sink), "generations": generations}
    text = json.dumps(fields_, indent=2, sort_keys=True) + "\n"
    open_write_store(home.stream_folder(pipeline, stream), private=True).write(STREAM_FILE, text.encode())


def streams_of(home: Home) -> Iterator[tuple[str, str]]:
    """Pipeline and name of every stream that has a ``stream.json``."""
    for pipeline in _folders_in(home, "streams"):
        for name in _folders_in(home, f"streams/{pipeline}"):
            if home.store.exists(f"streams/{pipeline}/{name}/{STREAM_FILE}"):
                yield pipeline, name


def _folders_in(home: Home, folder: str) -> list[str]:
    return sorted(entry.name for entry in home.store.list(folder) if entry.is_dir and is_unicode(entry.name))


def _check_texts(value: object) -> None:
    """Raises ValueError where a string is in the value that no database takes."""
    if isinstance(value, dict | list):
        for one in [*value, *value.values()] if isinstance(value, dict) else value:
            _check_texts(one)
    elif isinstance(value, str) and not is_unicode(value):
        raise ValueError(ascii(value))


def _generation(stream: str, record: Mapping[str, Any]) -> GenerationRecord:
    known = {item.name for item in fields(GenerationRecord)}
    return GenerationRecord(stream=stream, **{key: value for key, value in record.items() if key in known - {"stream"}})


def _damaged(path: str, text: bytes) -> FormatError:
    return FormatError(
        "stream-file-damaged",
        "stream.json does not name the generation in use",
        where=path,
        expected='{"id": ..., "generation": ..., "sink": {...}}',
        found=repr(text[:80]),
        hint=f"{put_aside(path)}, and type the command again; the next run writes the file from the ledger",
    )
