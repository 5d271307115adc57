"""The file sink: how Spark writes it.

Exactly-once because the sink keeps its own manifest, ``_spark_metadata``, keyed by batch id: a batch whose id is not
above the newest one there is skipped. That is also why ids must never begin again at 0 beside an old output.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from slackwater.errors import PipelineError
from slackwater.sinks.contract import Delivery

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamWriter

FORMATS = ("parquet", "orc", "json", "csv", "text")


@dataclass(frozen=True, slots=True)
class FilesSink:
    """Files of one format below one directory."""

    format: str
    path: str
    options: Mapping[str, str] = field(default_factory=dict)

    kind = "files"
    delivery: Delivery = "exactly-once"
    output_modes = ("append",)

    def identity(self) -> Mapping[str, str]:
        """Kind, format and absolute location: a stream may not change them between restarts."""
        return {"kind": self.kind, "format": self.format, "path": self.location}

    @property
    def location(self) -> str:
        """The output directory: absolute, or the URI as given."""
        if urlsplit(self.path).scheme:
            return self.path
        # Not only made absolute: out and x/../out must be known as one place.
        return os.path.abspath(self.path)  # noqa: PTH100 - pathlib resolves links too, and the path must stay the user's

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        """The writer with this format, its options and this directory."""
        return writer.format(self.format).options(**self.options).option("path", self.location)


def files(format: str, path: str, **options: object) -> FilesSink:  # noqa: A002 - Spark's own word for it
    """Spark's file sink: ``format`` is parquet, orc, json, csv or text; ``options`` are the data source's own."""
    if format not in FORMATS:
        raise PipelineError(
            "sink-format", "The file sink cannot write this format", expected=", ".join(FORMATS), found=repr(format)
        )
    if not str(path).strip():
        raise PipelineError("sink-path", "The file sink needs an output directory", found=repr(path))
    reserved = sorted({"path", "checkpointLocation"} & set(options))
    if reserved:
        raise PipelineError("sink-option", "Slackwater sets this option itself", found=", ".join(reserved))
    return FilesSink(format, path, {key: _option(value) for key, value in options.items()})


def _option(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
