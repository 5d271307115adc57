"""The file sink: how Spark writes it.

Exactly-once because the sink keeps its own manifest, keyed by batch id: a batch whose id is not above the newest one
there is skipped. For the same reason ids must never restart at 0 beside an old output.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slackwater.errors import PipelineError
from slackwater.sinks.files.output import FILES_TRAITS
from slackwater.storage.open import is_uri

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
    traits = FILES_TRAITS
    output_modes = ("append",)

    def identity(self) -> Mapping[str, str]:
        """Kind, format and absolute path: a stream may not change them between restarts."""
        return {"kind": self.kind, "format": self.format, "path": self.location}

    @property
    def location(self) -> str:
        """The output directory as the user named it: an absolute path, or the URI."""
        if is_uri(self.path):
            return self.path
        # abspath and not resolve: symlinks stay as the user wrote them, because Spark is given this path.
        return os.path.abspath(self.path)  # noqa: PTH100 - as above

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        """Set the format, its options and the directory on the writer."""
        return writer.format(self.format).options(**self.options).option("path", self.location)


def files(format: str, path: str | os.PathLike[str], **options: object) -> FilesSink:  # noqa: A002 - Spark's own word for it
    """Spark's file sink: ``format`` is parquet, orc, json, csv or text; ``options`` are the data source's own.

    Raises PipelineError for a format, path or option that cannot be used.
    """
    if format not in FORMATS:
        raise PipelineError(
            "sink-format", "The file sink cannot write this format", expected=", ".join(FORMATS), found=repr(format)
        )
    reserved = sorted({"path", "checkpointLocation"} & set(options))
    if reserved:
        raise PipelineError("sink-option", "Slackwater sets this option itself", found=", ".join(reserved))
    return FilesSink(format, _checked(path), {key: _option(value) for key, value in options.items()})


def _checked(path: object) -> str:
    """The path as a string. Raises PipelineError if Spark would write elsewhere than the path says."""
    given = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if not isinstance(given, str) or not given.strip() or "\0" in given:
        raise PipelineError(
            "sink-path",
            "The file sink needs an output directory",
            expected="a path or URI, as a string or pathlib.Path",
            found=repr(path),
        )
    scheme, _, rest = given.partition(":")
    # Hadoop takes the rest of a URI literally: file:///a%20b is the folder "a%20b", and "?" begins no query.
    reserved = "".join(sorted(set("%?#") & set(rest))) if is_uri(given) else ""
    if reserved:
        raise PipelineError(
            "sink-path",
            f"An output URI with {reserved!r} names one folder for Spark and another for everything else",
            expected="a plain path" if scheme.lower() == "file" else f"a URI without {reserved!r}",
            found=repr(given),
        )
    return given


def _option(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
