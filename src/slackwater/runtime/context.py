"""The context of a stream's function: the outputs of other streams of its pipeline, and its own names and home."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from slackwater.errors import PipelineError
from slackwater.sinks.registry import open_output

if TYPE_CHECKING:
    from slackwater.runtime.pipeline import Pipeline, StreamDefinition


class StreamContext:
    """Passed to a stream's function as its second argument."""

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

        Its manifest is created before Spark reads it: a file source decides once whether its input has a manifest,
        and without one it would read files of uncommitted batches. Raises PipelineError if the pipeline has no such
        stream or its output cannot be read by a stream.
        """
        definition = self._streams.get(stream)
        if definition is None or stream == self.stream:
            raise PipelineError(
                "upstream-unknown",
                f"Stream {self.stream} uses the output of a stream that its pipeline does not have",
                expected=", ".join(sorted(set(self._streams) - {self.stream})) or "no name: it has no other stream",
                found=repr(stream),
            )
        path = open_output(definition.sink.identity()).reader_path()
        self._used.add(stream)
        return path
