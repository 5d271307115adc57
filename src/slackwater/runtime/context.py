"""What a stream's function may ask: where other streams of its pipeline write, and where its own things lie."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from slackwater.errors import PipelineError
from slackwater.storage.open import open_write_store

if TYPE_CHECKING:
    from slackwater.runtime.pipeline import Pipeline, StreamDefinition


class StreamContext:
    """Handed to a stream's function as its second argument."""

    def __init__(self, pipeline: Pipeline, definition: StreamDefinition, home: Path) -> None:
        self.pipeline = pipeline.name
        self.stream = definition.name
        self.home = home
        self._streams = pipeline.streams
        self._used: set[str] = set()

    @property
    def upstreams(self) -> frozenset[str]:
        """The streams whose output was asked for: they run before this one where order matters."""
        return frozenset(self._used)

    def output(self, stream: str) -> str:
        """The output directory of another stream of the pipeline, for ``spark.readStream...load(...)``.

        The directory is made, with an empty ``_spark_metadata``, before Spark looks at it: a file source decides once
        whether its input has a manifest, and one that looked too early would read files of uncommitted batches.
        """
        definition = self._streams.get(stream)
        if definition is None or stream == self.stream:
            raise PipelineError(
                "upstream-unknown",
                f"Stream {self.stream} asks for the output of a stream that its pipeline does not have",
                expected=", ".join(sorted(set(self._streams) - {self.stream})) or "no name: it has no other stream",
                found=repr(stream),
            )
        location = definition.sink.identity().get("path")
        if location is None:
            raise PipelineError("output-unreadable", f"Stream {stream} writes nowhere that a stream can read")
        self._used.add(stream)
        _prepare(location)
        return location


def _prepare(location: str) -> None:
    parts = urlsplit(location)
    if parts.scheme in ("", "file"):
        (Path(parts.path) / "_spark_metadata").mkdir(parents=True, exist_ok=True)
        return
    # An object store has no empty directories; a zero-byte marker is what Hadoop's own clients leave for one.
    store = open_write_store(location)
    if not store.exists("_spark_metadata"):
        store.write("_spark_metadata/", b"")
