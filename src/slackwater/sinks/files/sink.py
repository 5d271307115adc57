"""The file sink: how Spark writes it.

Exactly-once because the sink keeps its own manifest, keyed by batch id: a batch whose id is not above the newest one
there is skipped. For the same reason ids must never restart at 0 next to an old output.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from slackwater.core.errors import PipelineError
from slackwater.core.sink import Traits, WriteContext, WriterCalls
from slackwater.sinks.common.directory import absolute, directory
from slackwater.sinks.common.options import option_strings
from slackwater.sinks.common.staging import staging_of
from slackwater.sinks.files.output import files_traits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

RESERVED_OPTIONS = frozenset({"path", "checkpointlocation"})

FORMATS = ("parquet", "orc", "json", "csv", "text", "avro")
CONNECTORS: Mapping[str, tuple[str, ...]] = {"avro": ("avro",)}


@dataclass(frozen=True, slots=True)
class FilesSink:
    """Files of one format below one directory."""

    format: str
    path: str
    options: Mapping[str, str] = field(default_factory=dict)

    kind = "files"
    output_modes = ("append",)

    @property
    def traits(self) -> Traits:
        """The traits of the output directory."""
        return files_traits(self.location)

    @property
    def connectors(self) -> tuple[str, ...]:
        """The connector of the format, if it has one."""
        return CONNECTORS.get(self.format, ())

    def identity(self) -> Mapping[str, str]:
        """Kind, format and absolute path: a stream may not change them between restarts."""
        return {"kind": self.kind, "format": self.format, "path": self.location}

    @property
    def location(self) -> str:
        """The output directory as the user named it: an absolute path, or the URI."""
        return absolute(self.path)

    def staged(self, operation: str, /) -> FilesSink:
        """The sink for the staged output of an operation, in a hidden folder next to the real output."""
        return replace(self, path=str(staging_of(self.location, operation).folder))

    def check(self, _frame: DataFrame, _context: WriteContext, /) -> None:
        """Nothing: Spark itself checks directory and schema when the query starts."""

    def attach(self, writer: DataStreamWriter, _context: WriteContext, /) -> DataStreamWriter:
        """Set the format, its options and the directory on the writer."""
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
    """The identity of the directory that an application's writer was given; ``None`` of any other sink."""
    if calls.function or calls.table or calls.format not in FORMATS or "path" not in calls.options:
        return None
    return FilesSink(calls.format, calls.options["path"]).identity()
