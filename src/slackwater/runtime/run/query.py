"""Starts a stream's query: calls the user's function, checks its result, starts it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import structlog
from py4j.protocol import Py4JJavaError
from pyspark import cloudpickle
from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException
from pyspark.sql import SparkSession

from slackwater.core.commands import command
from slackwater.core.errors import PipelineError, SlackwaterError
from slackwater.core.program import Program, QueryProfile, Trigger
from slackwater.core.records import StreamRecord
from slackwater.core.sink import WriteContext
from slackwater.ledger.lease import LeaseCheck
from slackwater.ledger.ledger import Ledger
from slackwater.runtime.loader import LoadedPipeline, place_in
from slackwater.runtime.pipeline import StreamContext, StreamDefinition, StreamFunction
from slackwater.runtime.program.code_reach import CodeReach, reach_of, reach_of_file, with_environment
from slackwater.runtime.program.profile import profile_of
from slackwater.runtime.program.program import program_of, with_output_functions
from slackwater.runtime.program.unsupported import NotSupported, Unsupported, check_supported, unsupported_by
from slackwater.runtime.replay.positions import spark_sources
from slackwater.runtime.run.failures import SPARK_ERRORS, UNREADABLE
from slackwater.sinks.common.directory import absolute
from slackwater.storage.open import spark_uri

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from slackwater.sources.common.contract import SparkSource


log = structlog.get_logger(__name__)

JAVA_HEADING = "An error occurred while calling"
"""The start of py4j's messages; the Java exception follows."""

HINTS = {
    "PATH_NOT_FOUND": "make the input directory before the stream first starts; files may come later",
    "DATA_SOURCE_NOT_FOUND": "name a connector that is missing in Pipeline(connectors=...): "
    f"{command('connectors', 'list')}",
    "UNABLE_TO_INFER_SCHEMA": "give the schema: spark.readStream.schema(...)",
    "Schema must be specified": "give the schema: spark.readStream.schema(...)",
}

_UNREADABLE_CODE = (LookupError, ValueError, TypeError, AttributeError, RecursionError, OSError, SyntaxError)
_ENDS_PYTHON = "return a streaming DataFrame: the function of a stream must not end Python"
_WHOLE_TRACEBACK = "repeat the command with --debug for the traceback"


@dataclass(frozen=True, slots=True)
class ApplicationCode:
    """Returns a query's DataFrame; its code is everything that the application's file reaches."""

    file: Path
    build: StreamFunction

    def __call__(self, spark: object) -> object:
        return self.build(spark)


@dataclass(frozen=True)
class BuiltStream:
    """A definition with its DataFrame, and the upstreams it reads.

    ``written`` starts an application's query as written.
    """

    definition: StreamDefinition
    frame: DataFrame
    upstreams: frozenset[str]
    written: Callable[[], StreamingQuery] | None = None

    @cached_property
    def reach(self) -> CodeReach | None:
        """The code's reach, read once; ``None`` if not found, which stops no query."""
        try:
            code = self.definition.function
            return reach_of_file(code.file) if isinstance(code, ApplicationCode) else reach_of(code)
        except _UNREADABLE_CODE as error:
            log.warning("the code cannot be compared", stream=self.definition.full_name, error=str(error))
            return None

    @cached_property
    def profile(self) -> QueryProfile | None:
        """The profile, read once; ``None`` if unreadable, which stops no query."""
        try:
            code = self.reach.code if self.reach is not None else None
            return profile_of(self.frame, code, self.definition.output_mode)
        except UNREADABLE as error:
            log.warning("the query's plan cannot be read", stream=self.definition.full_name, error=str(error))
            return None

    @cached_property
    def program(self) -> Program | None:
        """The program, read once; ``None`` if plan or code is unreadable, which stops no query."""
        unreadable: tuple[type[Exception], ...] = (*_UNREADABLE_CODE, *SPARK_ERRORS)
        if self.reach is None:
            return None
        try:
            program = program_of(self.frame, self.definition.output_mode, self.reach)
            program = with_environment(program, self.reach, self.frame.sparkSession)
            return with_output_functions(program, self.definition.sink, self.reach, self.frame.sparkSession)
        except unreadable as error:
            log.warning("the query cannot be compared", stream=self.definition.full_name, error=str(error))
            return None

    @property
    def paths_read(self) -> list[str]:
        options = (source.options for source in self.sources)
        return [absolute(value) for each in options for name, value in each.items() if name.lower() == "path"]

    @cached_property
    def sources(self) -> list[SparkSource]:
        """The sources in the order of ``offsets/``; empty for an unreadable plan, which stops no query."""
        try:
            return spark_sources(self.frame)
        except SPARK_ERRORS as error:
            log.warning("the sources of a query cannot be read", stream=self.definition.full_name, error=str(error))
            return []


def write_context(ledger: Ledger, stream: StreamRecord, epoch: int, planned: int, built: BuiltStream) -> WriteContext:
    check_lease = LeaseCheck(ledger, stream.full_name, epoch)
    mode, partition_by = stream.output_mode, built.definition.partition_by
    return WriteContext(stream.id or "", stream.full_name, epoch, mode, planned, partition_by, check_lease)


def build(spark: SparkSession, loaded: LoadedPipeline, definition: StreamDefinition, home: Path | str) -> BuiltStream:
    """Build the stream. Raises PipelineError if its function fails or returns no streaming DataFrame."""
    context = StreamContext(loaded.pipeline, definition, home)
    # Pickle the file's functions by value: workers cannot import a module that only the driver loaded.
    register: Callable[[ModuleType], None] = cloudpickle.register_pickle_by_value
    # An application is ``__main__``, whose functions cloudpickle always pickles by value.
    if not loaded.runs_itself:
        register(loaded.module)
    try:
        frame = definition.function(*_arguments(definition, spark, context))
    except SlackwaterError as error:
        error.where = error.where or place_in(loaded.file, error)
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the user's own code may raise anything, SystemExit too; it becomes a message
        # Spark refuses an action, such as ``count``, when it is called on a stream, and not at the start of the query.
        item = unsupported_by(str(error))
        if item is not None:
            raise _not_supported(definition, item, place_in(loaded.file, error)) from error
        raise PipelineError(
            "stream-fails",
            f"Stream {definition.full_name} cannot be built: {first_line(error)}",
            where=place_in(loaded.file, error),
            hint=_ENDS_PYTHON if isinstance(error, SystemExit) else _hint(str(error)) or _WHOLE_TRACEBACK,
        ) from error
    streaming = getattr(frame, "isStreaming", None)
    if streaming is not True:
        raise PipelineError(
            "stream-return",
            f"The function of stream {definition.full_name} must return a streaming DataFrame",
            where=_place(definition),
            expected="a DataFrame built from spark.readStream",
            found="a DataFrame that is not streaming" if streaming is False else type(frame).__name__,
            hint="return the DataFrame, before any writeStream: Slackwater starts the query",
        )
    check_query(definition, frame)
    return BuiltStream(definition, frame, context.upstreams)


def build_again(loaded: LoadedPipeline, home: Path | str, built: BuiltStream) -> BuiltStream:
    return build(built.frame.sparkSession, loaded, built.definition, home)


def create_output(built: BuiltStream) -> None:
    """Create an output that must exist before streams that read it are built."""
    built.definition.sink.create_output(built.frame, built.definition.partition_by)


def start(
    built: BuiltStream, checkpoint: str, trigger: Trigger, context: WriteContext, *, completes_batch: bool = False
) -> StreamingQuery:
    """Start the query. Raises PipelineError if Spark refuses it.

    ``completes_batch``: only run the planned batch without output, because the sink already has its rows.
    """
    if completes_batch:
        return start_without_output(built, checkpoint)
    definition = built.definition
    if built.written is not None:
        return built.written()
    writer = _writer(built, checkpoint, definition.full_name)
    # A table that its sink creates has its partitions already, and ``DataStreamWriter`` refuses ``partitionBy`` for a
    # ``foreachBatch``.
    if definition.partition_by and not definition.sink.creates_output:
        writer = writer.partitionBy(*definition.partition_by)
    return _start(partial(definition.sink.start, with_trigger(writer, trigger), context), definition)


def start_without_output(built: BuiltStream, checkpoint: str, *, interval: str | None = None) -> StreamingQuery:
    """Run the planned batch with a no-op sink: a replay, or a batch that the sink already has.

    ``interval`` is the trigger's, the planned batch comes first; ``None`` ends the query after it.
    """
    writer = _writer(built, checkpoint, f"{built.definition.full_name} (replay)")
    # Trigger.Once runs the planned batch and nothing else; available-now would also run what has arrived since.
    writer = writer.trigger(once=True) if interval is None else writer.trigger(processingTime=interval)
    return _start(writer.format("noop").start, built.definition)


def _writer(built: BuiltStream, checkpoint: str, name: str) -> DataStreamWriter:
    writer = built.frame.writeStream.outputMode(built.definition.output_mode).queryName(name)
    return writer.option("checkpointLocation", spark_uri(checkpoint))


def with_trigger(writer: DataStreamWriter, trigger: Trigger) -> DataStreamWriter:
    if trigger.kind == "available-now":
        return writer.trigger(availableNow=True)
    if trigger.kind == "once":
        return writer.trigger(once=True)
    if trigger.kind == "continuous":
        return writer.trigger(continuous=str(trigger.interval))
    if trigger.kind == "real-time":
        # Set the real-time trigger: PySpark 4.1 has no argument for it, but its JVM supports it.
        jvm: Any = SparkSession.active()._jvm
        writer._jwrite = writer._jwrite.trigger(
            jvm.org.apache.spark.sql.streaming.Trigger.RealTime(str(trigger.interval))
        )
        found: DataStreamWriter = writer
        return found
    return writer.trigger(processingTime=str(trigger.interval))


def first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith(JAVA_HEADING):
        return lines[1].removeprefix(": ")
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _arguments(definition: StreamDefinition, spark: SparkSession, context: StreamContext) -> tuple[Any, ...]:
    # A parameter with a default is the user's own: Slackwater never passes it.
    wanted = [
        parameter.name
        for parameter in inspect.signature(definition.function).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    if len(wanted) not in (1, 2):
        raise PipelineError(
            "stream-arguments",
            f"The function of stream {definition.full_name} takes the wrong arguments",
            where=_place(definition),
            expected="(spark) or (spark, context)",
            found=f"({', '.join(wanted)})",
        )
    return (spark, context)[: len(wanted)]


def check_query(definition: StreamDefinition, frame: DataFrame) -> None:
    """Refuse an unsupported query before anything is created. Raises PipelineError."""
    try:
        check_supported(frame, definition.output_mode, definition.trigger.kind)
    except NotSupported as error:
        raise _not_supported(definition, error.item, _place(definition)) from error
    except (AnalysisException, IllegalArgumentException) as error:
        raise _refused_by_spark(definition, error) from error


def _not_supported(definition: StreamDefinition, item: Unsupported, where: str | None) -> PipelineError:
    return PipelineError(
        item.code,
        f"Stream {definition.full_name} uses {item.what}, which is not supported on a stream: {item.reason}",
        where=where,
        hint=item.instead,
    )


def _place(definition: StreamDefinition) -> str | None:
    code = getattr(inspect.unwrap(definition.function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else None


def _hint(message: str) -> str | None:
    return next((hint for name, hint in HINTS.items() if name in message), None)


def _start(begin: Callable[[], StreamingQuery], definition: StreamDefinition) -> StreamingQuery:
    try:
        return begin()
    except AnalysisException as error:
        raise _refused_by_spark(definition, error) from error
    # PySpark wraps a Java exception that it has no class for, such as one about an output that is a file.
    except (PySparkException, Py4JJavaError) as error:
        raise PipelineError(
            "query-start",
            f"Spark does not start stream {definition.full_name}: {first_line(error)}",
            where=_place(definition),
            hint=_hint(str(error)) or "correct the query; Spark's message gives the cause",
        ) from error


def _refused_by_spark(definition: StreamDefinition, error: Exception) -> PipelineError:
    message = str(error).lower()
    if "watermark" in message and "aggregation" in message and definition.output_mode == "append":
        return PipelineError(
            "watermark-missing",
            f"Stream {definition.full_name} aggregates in append mode without a watermark: no row would ever be final",
            where=_place(definition),
            expected='.withWatermark("<event time>", "<delay>") before groupBy, its column or window in groupBy',
            hint="see the guide's section on handling late data and watermarking",
        )
    item = unsupported_by(str(error))
    if item is not None:
        return _not_supported(definition, item, _place(definition))
    return PipelineError(
        "query-refused",
        f"Spark refuses stream {definition.full_name}: {first_line(error).removeprefix(f'{type(error).__name__}: ')}",
        where=_place(definition),
        hint=_hint(str(error)) or "see the guide's section on unsupported operations",
    )
