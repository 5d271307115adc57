"""The interface for pipeline files: a pipeline and its streams, checked long before Spark starts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from slackwater.core.commands import command
from slackwater.core.errors import PipelineError
from slackwater.core.escaping import is_unicode
from slackwater.core.masking import mask
from slackwater.core.program import Trigger
from slackwater.core.records import STREAM_NAME, WATCHED
from slackwater.sinks.common.contract import Sink
from slackwater.sinks.common.registry import open_each, open_output
from slackwater.storage.open import check_location, is_uri
from slackwater.triggers import as_trigger

OutputMode = Literal["append", "update", "complete"]

StreamFunction = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class StreamDefinition:
    pipeline: str
    name: str
    function: StreamFunction
    sink: Sink
    output_mode: str
    trigger: Trigger
    partition_by: tuple[str, ...]
    checkpoint: str | None
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        return f"{self.pipeline}/{self.name}"


class Pipeline:
    """A named set of streams that belong together and run in one Spark application.

    ``connectors`` names connector jars the streams need (``"kafka"``); those that a file's own ``.format("kafka")``
    shows are found without it. Raises PipelineError for a name that cannot be a directory, or is reserved.
    """

    def __init__(self, name: str, *, connectors: str | Iterable[str] = ()) -> None:
        _check_name(name, "pipeline")
        if name == WATCHED:
            raise PipelineError(
                "pipeline-reserved",
                "This pipeline name is used for the queries that slackwater.watch has recorded",
                expected="a different name",
                found=repr(name),
                hint="rename the pipeline; only its streams need the names of the queries",
            )
        self.name = name
        self.connectors = _strings(connectors, _bad_connectors)
        self._streams: dict[str, StreamDefinition] = {}
        self._audit_readers: dict[str, StreamFunction] = {}

    @property
    def streams(self) -> Mapping[str, StreamDefinition]:
        return dict(self._streams)

    def stream(
        self,
        *,
        sink: Sink,
        name: str | None = None,
        output_mode: OutputMode = "append",
        trigger: Trigger | str | None = None,
        partition_by: str | Iterable[str] = (),
        checkpoint: str | os.PathLike[str] | None = None,
        settings: Mapping[str, str | int | bool] | None = None,
    ) -> Callable[[StreamFunction], StreamFunction]:
        """Make the decorated function a stream; the function's name is the stream's unless ``name`` is given.

        The function takes ``spark``, or ``spark, context``, and returns a streaming DataFrame. ``sink`` is one of
        ``sinks``. ``output_mode`` is Spark's: append, update or complete, as far as the sink has it. ``trigger`` is one
        of ``triggers``, or the interval of a processing-time trigger (``"10 seconds"``); without it each batch starts
        as soon as the one before it has ended. ``partition_by`` are columns by which ``files``, ``delta``, ``iceberg``
        and ``table`` partition their output; other sinks refuse them. ``checkpoint`` adopts an existing checkpoint as
        the first generation; without it Slackwater chooses a stable place in the home. ``settings`` are settings of
        Spark for this stream alone, such as ``{"spark.sql.shuffle.partitions": 8}``.
        Raises PipelineError for a name, sink, mode, setting or place that cannot be used or is taken.
        """

        def define(function: StreamFunction) -> StreamFunction:
            definition = StreamDefinition(
                pipeline=self.name,
                name=getattr(function, "__name__", repr(function)) if name is None else name,
                function=function,
                sink=sink,
                output_mode=output_mode,
                trigger=as_trigger(trigger),
                partition_by=_strings(partition_by, _bad_partition_by),
                checkpoint=_checkpoint(checkpoint),
                settings=_settings(settings),
            )
            self._add(definition)
            return function

        return define

    @property
    def audit_readers(self) -> Mapping[str, StreamFunction]:
        return dict(self._audit_readers)

    def audit_reader(self, stream: str) -> Callable[[StreamFunction], StreamFunction]:
        """Make the decorated function read back what the sink of a stream wrote, for ``slackwater audit``.

        It takes ``spark`` and returns a DataFrame, or a list of dicts or tuples: all rows that the target holds, and
        none where there is no target yet. Columns whose values differ from run to run are left out. Raises
        PipelineError for a stream with two readers, or what is no function.
        """

        def define(function: StreamFunction) -> StreamFunction:
            usable = callable(function)
            if not usable or stream in self._audit_readers:
                raise PipelineError(
                    "audit-reader",
                    f"The audit reader of stream {stream} cannot be used",
                    expected=f'one function below @pipeline.audit_reader("{stream}")',
                    found="a second one" if usable else repr(function),
                )
            self._audit_readers[stream] = function
            return function

        return define

    def _add(self, definition: StreamDefinition) -> None:
        if not callable(definition.function):
            raise PipelineError(
                "stream-function",
                f"A stream of pipeline {definition.pipeline} is not a function",
                expected="a function below @pipeline.stream(sink=...)",
                found=repr(definition.function),
                hint="write: @pipeline.stream(sink=...), and below it: def NAME(spark): ...",
            )
        _check_name(definition.name, "stream")
        _check_sink(definition)
        for other in self._streams.values():
            _check_apart(definition, other)
        self._streams[definition.name] = definition


def _check_name(name: object, what: str) -> None:
    if not isinstance(name, str) or not STREAM_NAME.fullmatch(name):
        raise PipelineError(
            f"{what}-name",
            f"Invalid {what} name: it must be usable as a directory name",
            expected="letters, digits, '.', '_' and '-', beginning with a letter or digit, at most 100",
            found=repr(name),
        )


def _strings(value: object, refuse: Callable[[str], PipelineError]) -> tuple[str, ...]:
    items = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else (None,)
    if not all(isinstance(item, str) and item.strip() and is_unicode(item) for item in items):
        raise refuse(repr(value))
    return items


def _bad_connectors(found: str) -> PipelineError:
    return PipelineError(
        "pipeline-connectors",
        "The connectors of a pipeline cannot be used",
        expected='a list of names, such as ["kafka"]',
        found=found,
        hint=command("connectors", "list"),
    )


def _bad_partition_by(found: str) -> PipelineError:
    return PipelineError(
        "partition-by",
        "The partition_by of a stream cannot be used",
        expected='a column name or a list of them, such as ["day"]',
        found=found,
        hint="leave partition_by out to write without partitions",
    )


def _checkpoint(value: object) -> str | None:
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    if isinstance(path, str) and is_uri(path):
        check_location(path)
    if path is None or (isinstance(path, str) and path.strip() and is_unicode(path)):
        return path
    raise PipelineError(
        "checkpoint-path",
        "The checkpoint of a stream cannot be used",
        expected="a path or URI as a string or pathlib.Path",
        found=repr(value),
        hint="leave checkpoint out: Slackwater then chooses a stable place in the home",
    )


def _settings(value: object) -> dict[str, str]:
    if value is None:
        return {}
    items: list[tuple[Any, Any]] = list(value.items()) if isinstance(value, Mapping) else [(None, None)]
    found = {name: str(one).lower() if isinstance(one, bool) else str(one) for name, one in items}
    usable = all(
        isinstance(name, str)
        and name.startswith("spark.")
        and isinstance(one, str | int | bool)
        and is_unicode(str(one))
        for name, one in items
    )
    if not usable:
        raise PipelineError(
            "stream-settings",
            "The settings of a stream cannot be used",
            expected='strings, integers or booleans by their names, such as {"spark.sql.shuffle.partitions": 8}',
            found=repr(value),
            hint="leave settings out: the stream then has the application's",
        )
    return found


def _check_sink(definition: StreamDefinition) -> None:
    place = f"stream {definition.full_name}"
    if not isinstance(definition.sink, Sink):
        raise PipelineError(
            "sink-kind",
            "A stream's sink must be one of slackwater.sinks",
            where=place,
            expected='such as sinks.files("parquet", "out/")',
            found=repr(definition.sink),
            hint=f"{command('sinks')} lists them with their guarantees",
        )
    allowed = definition.sink.output_modes
    if definition.output_mode not in get_args(OutputMode) or definition.output_mode not in allowed:
        raise PipelineError(
            "output-mode",
            f"The {definition.sink.kind} sink cannot be written in this output mode",
            where=place,
            expected=" or ".join(allowed),
            found=repr(definition.output_mode),
            hint=f'give one of them: @pipeline.stream(..., output_mode="{allowed[0]}")',
        )
    for key, value in definition.sink.identity().items():
        if mask(value) != value:
            raise PipelineError(
                "sink-secret",
                "The record of a sink cannot hold a password or a key",
                where=place,
                expected=f"{key} without one",
                found=value,
                hint="remove it, and set it in the environment or as the sink's password='env:NAME'",
            )


def _check_apart(definition: StreamDefinition, other: StreamDefinition) -> None:
    if definition.name == other.name:
        raise PipelineError(
            "stream-duplicate",
            f"Two streams of pipeline {other.pipeline} have one name",
            found=definition.name,
            hint="give each stream a name of its own",
        )
    places = {one.location for one in open_each(other.sink.identity()) if one.location is not None}
    own = [one for one in open_each(definition.sink.identity()) if one.traits.one_writer]
    place = next((one.location for one in own if one.location in places), None)
    if place is not None:
        raise PipelineError(
            "sink-shared",
            "Two streams write to one output; batches of the second would be skipped or mixed with the first's",
            where=place,
            found=f"{other.name} and {definition.name}",
            hint="give each stream an output of its own",
        )
    if definition.checkpoint is not None and definition.checkpoint == other.checkpoint:
        raise PipelineError(
            "checkpoint-shared",
            "Two streams have one checkpoint; each would use the other's progress as its own",
            where=definition.checkpoint,
            found=f"{other.name} and {definition.name}",
            hint="give each stream a checkpoint of its own, or leave checkpoint= out: Slackwater chooses one",
        )


class StreamContext:
    """The second argument of a stream's function."""

    def __init__(self, pipeline: Pipeline, definition: StreamDefinition, home: Path | str) -> None:
        self.pipeline = pipeline.name
        self.stream = definition.name
        self.home = home
        self._streams = pipeline.streams
        self._used: set[str] = set()

    @property
    def upstreams(self) -> frozenset[str]:
        """Streams whose output was requested: they run before this one if order matters."""
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
                f"Stream {self.stream} uses the output of a stream that is not in its pipeline",
                expected=", ".join(sorted(set(self._streams) - {self.stream})) or "no name: it has no other stream",
                found=repr(stream),
            )
        path = open_output(definition.sink.identity()).reader_path()
        self._used.add(stream)
        return path
