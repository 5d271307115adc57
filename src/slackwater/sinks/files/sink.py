"""The file sink.

Exactly-once by its manifest: batch ids not above the newest are skipped. So ids must never restart at 0 next to old
output.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from slackwater.core.errors import PipelineError
from slackwater.core.sink import Traits, WriteContext, WriterCalls
from slackwater.sinks.common.contract import Sink
from slackwater.sinks.common.directory import absolute, directory
from slackwater.sinks.common.problem import option_strings
from slackwater.sinks.common.staging import staging_of
from slackwater.sinks.files.output import files_traits

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamWriter

RESERVED_OPTIONS = frozenset({"path", "checkpointlocation"})

FORMATS = ("parquet", "orc", "json", "csv", "text", "avro")
CONNECTORS: Mapping[str, tuple[str, ...]] = {"avro": ("avro",)}


@dataclass(frozen=True, slots=True)
class FilesSink(Sink):
    format: str
    path: str
    options: Mapping[str, str] = field(default_factory=dict)

    kind = "files"
    output_modes = ("append",)

    @property
    def traits(self) -> Traits:
        return files_traits(self.location)

    @property
    def connectors(self) -> tuple[str, ...]:
        return CONNECTORS.get(self.format, ())

    def identity(self) -> Mapping[str, str]:
        return {"kind": self.kind, "format": self.format, "path": self.location}

    @property
    def location(self) -> str:
        return absolute(self.path)

    def staged(self, operation: str, /) -> FilesSink:
        return replace(self, path=str(staging_of(self.location, operation).folder))

    def attach(self, writer: DataStreamWriter, _context: WriteContext, /) -> DataStreamWriter:
        return writer.format(self.format).options(**self.options).option("path", self.location)


def files(format: str, path: str | os.PathLike[str], **options: object) -> FilesSink:
    """Spark's file sink: ``format`` is parquet, orc, json, csv, text or avro; ``options`` are the data source's own.

    Raises PipelineError for a format, path or option that cannot be used.
    """
    if format not in FORMATS:
        raise PipelineError(
            "sink-format",
            "The file sink cannot write this format",
            expected=", ".join(FORMATS),
            found=repr(format),
            hint='for example sinks.files("parquet", "out/")',
        )
    folder = directory(path, 'sinks.files("parquet", "out/")')
    return FilesSink(format, folder, option_strings(options, RESERVED_OPTIONS))


def recognise(calls: WriterCalls) -> Mapping[str, str] | None:
    if calls.function or calls.table or calls.format not in FORMATS or "path" not in calls.options:
        return None
    return FilesSink(calls.format, calls.options["path"]).identity()
