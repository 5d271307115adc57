"""The home of pipelines: where the ledger, the checkpoints, the operations and ``stream.json`` of each stream lie."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path

from slackwater.errors import FormatError
from slackwater.storage.local import LocalStore

STREAM_FILE = "stream.json"


@dataclass(frozen=True, slots=True)
class StreamFile:
    """``stream.json``: what must be known of a stream even without the ledger.

    ``id`` is given once and never changes; ``generation`` is the number of the checkpoint in use; ``sink`` is the
    sink's identity, as in ``StreamRecord``.
    """

    id: str
    generation: int
    sink: Mapping[str, str]


class Home:
    """Paths below one folder. Names of pipelines and streams have been validated before they come here."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path).expanduser().absolute()

    @property
    def ledger_url(self) -> str:
        """The ledger of this home where the settings name no other."""
        return str(self.path / "ledger.db")

    def stream_folder(self, pipeline: str, stream: str) -> Path:
        """All that belongs to one stream."""
        return self.path / "streams" / pipeline / stream

    def checkpoint(self, pipeline: str, stream: str, number: int) -> Path:
        """The checkpoint directory of one generation."""
        return self.stream_folder(pipeline, stream) / "checkpoints" / f"{number:04d}"

    def operations(self, pipeline: str, stream: str) -> Path:
        """The folder that holds a folder for each operation."""
        return self.stream_folder(pipeline, stream) / "operations"

    def operation(self, pipeline: str, stream: str, operation_id: str) -> Path:
        """The plan, journal and backup manifest of one operation."""
        return self.operations(pipeline, stream) / operation_id

    def read_stream_file(self, pipeline: str, stream: str) -> StreamFile | None:
        """``stream.json``, ``None`` where there is none yet. Raises ``FormatError`` (``stream-file-damaged``)."""
        folder = LocalStore(self.stream_folder(pipeline, stream))
        try:
            text = folder.read(STREAM_FILE)
        except FileNotFoundError:
            return None
        try:
            fields = json.loads(text)
            return StreamFile(str(fields["id"]), int(fields["generation"]), dict(fields["sink"]))
        except (ValueError, KeyError, TypeError) as error:
            raise _damaged(f"{folder.location}/{STREAM_FILE}", text) from error

    def write_stream_file(self, pipeline: str, stream: str, content: StreamFile) -> None:
        """Replace ``stream.json`` in one step; it is on the disk when this returns."""
        text = json.dumps(asdict(content), indent=2, sort_keys=True) + "\n"
        LocalStore(self.stream_folder(pipeline, stream)).write(STREAM_FILE, text.encode())


def _damaged(path: str, text: bytes) -> FormatError:
    return FormatError(
        "stream-file-damaged",
        "stream.json does not say which generation is in use",
        where=path,
        expected='{"id": ..., "generation": ..., "sink": {...}}',
        found=repr(text[:80]),
        hint="slackwater ledger shows the generations; restore the file from a backup",
    )
