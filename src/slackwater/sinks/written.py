"""The output of a sink as it lies on its store: what was last written, and what a cut would take out. No JVM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from slackwater.errors import SinkUnreadable
from slackwater.sinks.files_output import FilesOutput
from slackwater.storage.open import open_write_store

if TYPE_CHECKING:
    from slackwater.model.records import StreamRecord


def written_output(stream: StreamRecord) -> FilesOutput:
    """The output of a stream, by the identity that its sink was recorded with."""
    return output_of(stream.sink)


def output_of(identity: Mapping[str, str]) -> FilesOutput:
    """The output that a sink's identity names. Raises SinkUnreadable for a kind that cannot be asked."""
    if identity.get("kind") != "files":
        raise SinkUnreadable(
            "sink-silent",
            "This sink cannot say what was last written",
            expected="a files sink",
            found=str(identity.get("kind")),
        )
    return FilesOutput(open_write_store(identity["path"]))
