"""Finds queries that the programming guide calls unsupported, and sources that omit lost rows, before a start.

Spark's own plan check comes first, so nothing is created when it refuses; items that Spark lets through are found here.
Source: Structured Streaming programming guide, "Unsupported operations", "Support matrix for joins" and "Limitation of
global watermark"; ``UnsupportedOperationChecker``, messages of Spark 3.5, 4.1 and 4.3.

A replay's sources fail on lost rows, whatever the user's options. With ``failOnDataLoss=false`` Spark omits such rows
with a warning; after a code change state would be silently incomplete. Spark reads options of version 2 sources from
the plan at the start: they are replaced there, and restored.

Before a new checkpoint's first start, read files are refused that would be silently omitted. Only the first batch after
an operation keeps its recorded range; a new listing plans the later files, and silently skips files that are too old.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.errors import AnalysisException

from slackwater.core.checkpoint import SourceFile
from slackwater.core.errors import Refused
from slackwater.core.program import TriggerKind
from slackwater.core.records import GenerationRecord
from slackwater.core.units import counted
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.lineage import SOURCES
from slackwater.ledger.recording.source_availability import StoreAvailability
from slackwater.runtime.program.logical_plan import (
    analysed_plan,
    class_name,
    elements,
    java_field,
    nodes_of,
    source_logs,
)
from slackwater.runtime.replay.positions import spark_sources
from slackwater.runtime.run.failures import SPARK_ERRORS
from slackwater.runtime.session.settings import with_settings
from slackwater.sources import kind_described
from slackwater.sources.common.source import Source, encoded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


CHECK = "spark.sql.streaming.unsupportedOperationCheck"
"""Spark's setting for its own check: a user who turned it off gets no refusal here either."""
CORRECTNESS = "spark.sql.streaming.statefulOperator.checkCorrectness.enabled"
"""Spark's setting: without it Spark only logs a warning about the limits of the global watermark."""
GLOBAL_WATERMARK = "global-watermark"
REFUSED = "query-refused"


class Unsupported(NamedTuple):
    """An operation, why streams do not support it, and an alternative."""

    what: str
    reason: str
    instead: str
    code: str = REFUSED


class NotSupported(Exception):
    """An item of the guide that Spark lets through."""

    def __init__(self, item: Unsupported) -> None:
        super().__init__(item.reason)
        self.item = item


ACTION = Unsupported(
    "an action",
    "show, take, count, collect and foreach run a query at once and return its result, and a stream has no end",
    "return the DataFrame before show, count, take or collect; read the rows from the stream's output, or count them "
    "with groupBy().count() or the sink foreach",
)
STATIC_SIDE = "an outer join keeps all rows of one side, and a stream that has not ended cannot prove that none matches"
KEEP_STREAM = "use an inner or left_outer join: the rows that are all kept have to be those of the stream"
JOIN_BOUND = Unsupported(
    "an outer or semi join without watermarks",
    "without watermarks and a bound on the event times a row without a match is never final",
    "add .withWatermark to both inputs, and a bound on their event times to the join's condition",
)
SPLIT = "write the first result to an output that a second stream reads"
AFTER_ARBITRARY = Unsupported(
    "a stateful operator behind applyInPandasWithState or flatMapGroupsWithState",
    "a function with state of its own may return rows of any event time, which operators behind it drop as late",
    f"{SPLIT}; or use transformWithState, whose output has an event time",
)
AFTER_UPDATES = Unsupported(
    "dropDuplicates or distinct after an aggregation in update or complete mode",
    "in update and complete mode an aggregation returns a row again whenever it changes, and of these the "
    "deduplication keeps the first, with an old result",
    'use output_mode="append" with a watermark, or deduplicate before the aggregation',
)
LATE_IN_CHAIN = Unsupported(
    "a stateful operator after an operator that returns late rows",
    "an operator returns rows that are older than the query's global watermark, and the stateful operator behind it "
    "drops them as late",
    f'use output_mode="append" with watermarks, or {SPLIT}',
    GLOBAL_WATERMARK,
)
ONCE = Unsupported(
    "a join of two streams in a mode other than append",
    "a join of two streams returns each row once, when it is final, which is append mode",
    'use output_mode="append"',
)
COMPLETE_ALONE = Unsupported(
    "complete mode without an aggregation",
    "complete mode writes the whole result in each batch, and without an aggregation all rows of the stream would "
    "have to be kept",
    'use output_mode="append"',
)
PARTITION_COLUMNS = Unsupported(
    "a folder with different partition columns",
    "the partition columns of a file source may not change, and the folders have different ones",
    "keep the partition columns of a folder: put files with others into a folder of their own, and read it as a "
    "second source",
)

UNSUPPORTED = {
    "must be executed with writeStream.start()": ACTION,
    "Limits are not supported": Unsupported(
        "limit",
        "in this output mode the first rows are others in each batch",
        "limit the rows when the output is read, or in each batch by sinks.foreach_batch",
    ),
    "Offset is not supported": Unsupported(
        "offset", "which rows of a stream come first is not fixed", "skip the rows when the output is read"
    ),
    "Sorting is not supported": Unsupported(
        "sorting",
        "to sort a stream, all rows that it has ever received would have to be kept",
        "sort the rows when the output is read, or after an aggregation in complete mode",
    ),
    "Distinct aggregations are not supported": Unsupported(
        "a distinct aggregation",
        "all different values that a stream has ever received would have to be kept",
        "use approx_count_distinct, or dropDuplicates before the aggregation",
    ),
    "not supported for no streaming aggregations": COMPLETE_ALONE,
    "not supported when there are no streaming aggregations": COMPLETE_ALONE,
    "only in Append output mode": ONCE,
    "only in Append and Update output modes": ONCE,
    "in the join keys, or a watermark on the nullable side": JOIN_BOUND,
    "LeftAnti joins": Unsupported(
        "a left anti join of streams",
        "that a row has no match is final only once the other stream has ended",
        'use a left_outer join, then .where("<a column of the right side> IS NULL")',
    ),
    "static DataFrame/Dataset on the left": Unsupported(
        "this join of a stream and a table", STATIC_SIDE, "join the stream with the table, the stream on the left"
    ),
    "a static DataFrame/DataSet on the right not supported": Unsupported(
        "this join of a stream and a table", STATIC_SIDE, KEEP_STREAM
    ),
    "a static DataFrame/Dataset on the right is not supported": Unsupported(
        "this join of a stream and a table", STATIC_SIDE, KEEP_STREAM
    ),
    "'correctness' issue due to global watermark": LATE_IN_CHAIN,
    "Multiple applyInPandasWithStates": AFTER_ARBITRARY,
    "applyInPandasWithState in update mode is not supported with aggregation": AFTER_ARBITRARY,
    "dropDuplicatesWithinWatermark is not supported": Unsupported(
        "dropDuplicatesWithinWatermark without a watermark",
        "the watermark decides how long a key is remembered",
        'add .withWatermark("<event time>", "<delay>") before it',
    ),
    "NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING": Unsupported(
        "a window that is not one of time",
        "a window over rows in an order needs all rows, and a stream has no end",
        "use windows of time (F.window), or rank the rows of each batch in sinks.foreach_batch",
    ),
    "pivot is not supported": Unsupported(
        "pivot",
        "the columns of a pivot are its values, which a stream has not all received",
        'aggregate each value by itself: F.sum(F.when(F.col("<column>") == "<value>", ...))',
    ),
    "Except on a streaming": Unsupported(
        "except of two streams",
        "that a row is not in the other stream is final only once that has ended",
        "use a left_outer join of the streams with watermarks, and keep the rows without a match",
    ),
    "Intersect of streaming": Unsupported(
        "intersect of two streams",
        "all rows of both streams would have to be kept",
        "use a left_semi join of the streams with watermarks",
    ),
    "CONFLICTING_PARTITION_COLUMN_NAMES": PARTITION_COLUMNS,
    "Conflicting partition column names detected": PARTITION_COLUMNS,
    "Union between streaming and batch": Unsupported(
        "union of a stream and a table",
        "a table would have to be read again in each batch",
        "read the table as a stream, too, or write it to the output once",
    ),
    "Continuous processing does not support": Unsupported(
        "an operation that continuous processing does not have",
        "continuous processing takes selections, projections and filters only, and no aggregation or current time",
        'use triggers.processing_time("0 seconds")',
    ),
}
"""Parts of Spark's messages: the wording of 4.1, and different wordings of 3.5 or 4.3."""

NO_OTHERS = frozenset({"FlatMapGroupsWithState", "FlatMapGroupsInPandasWithState"})
STATEFUL = NO_OTHERS | {
    "Aggregate", "Distinct", "Deduplicate", "DeduplicateWithinWatermark", "TransformWithState",
    "TransformWithStateInPandas", "TransformWithStateInPySpark",
}  # fmt: skip


def unsupported_by(message: str) -> Unsupported | None:
    return next((item for words, item in UNSUPPORTED.items() if words in message), None)


def check_supported(frame: DataFrame, output_mode: str, trigger: TriggerKind) -> None:
    """Raises Spark's AnalysisException, or NotSupported, for an unsupported query.

    Raises IllegalArgumentException for real-time mode.
    """
    if frame.sparkSession.conf.get(CHECK, "true") != "true":
        return
    _ask_spark(frame, output_mode, trigger)
    # A chain of stateful operators whose first operator may not be followed.
    for node in filter(keeps_state, nodes_of(analysed_plan(frame))):
        below = {class_name(one) for child in elements(node.children()) for one in nodes_of(child) if keeps_state(one)}
        if below & NO_OTHERS:
            raise NotSupported(AFTER_ARBITRARY)
        deduplicates = class_name(node) in ("Deduplicate", "DeduplicateWithinWatermark", "Distinct")
        if deduplicates and output_mode != "append" and "Aggregate" in below:
            raise NotSupported(AFTER_UPDATES)


def late_in_chain(frame: DataFrame, output_mode: str) -> bool:
    """Return whether a later operator may drop rows as late, which a Spark setting allowed."""
    try:
        with with_settings(frame.sparkSession, {CORRECTNESS: "true"}):
            _ask_spark(frame, output_mode, "processing-time")
    except AnalysisException as error:
        return unsupported_by(str(error)) is LATE_IN_CHAIN
    return False


def _ask_spark(frame: DataFrame, output_mode: str, trigger: TriggerKind) -> None:
    jvm: Any = frame.sparkSession._jvm
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    mode = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, output_mode.capitalize())()
    plan = analysed_plan(frame)
    (checker.checkForContinuous if trigger == "continuous" else checker.checkForStreaming)(plan, mode)
    if trigger == "real-time":
        checker.checkAdditionalRealTimeModeConstraints(plan, mode)


def keeps_state(node: Any, kinds: Collection[str] = STATEFUL) -> bool:
    if class_name(node) == "Join":
        return all(child.isStreaming() for child in elements(node.children()))
    return class_name(node) in kinds and bool(node.isStreaming())


VERSION_1_READERS = "spark.sql.streaming.disabledV2MicroBatchReaders"
"""The setting for classes of sources that Spark reads as version 1, although they support version 2."""
_MAPS = ("original", "delegate")
"""The fields of Spark's ``CaseInsensitiveStringMap``: names as the user spelled them, and in lower case."""
_NOT_FOUND: tuple[type[Exception], ...] = (LookupError, *SPARK_ERRORS)


@contextmanager
def strict_sources(frame: DataFrame, stream: str) -> Iterator[None]:
    """Make the query's sources strict for its start. Raises Refused if options cannot be replaced."""
    with ExitStack() as restored:
        for source in spark_sources(frame):
            # User-spelled options with which the source omits lost rows; with the needed values.
            strict = kind_described(source.description).strict_options
            wanted = {
                name: strict[name.lower()]
                for name, value in source.options.items()
                if value.strip().lower() != strict.get(name.lower(), value.strip().lower())
            }
            if not wanted:
                continue
            try:
                maps = _option_maps(frame, source.relation)
            except _NOT_FOUND as error:
                raise Refused(
                    "replay-leaves-out",
                    f"A replay of stream {stream} could silently skip rows: options of a source allow it, "
                    "and this version of Spark cannot override them",
                    where=source.where,
                    expected=", ".join(f"{name}={value}" for name, value in wanted.items()),
                    found=", ".join(f"{name}={source.options[name]}" for name in wanted),
                    hint="set these options as expected in the pipeline file, then plan again; nothing in use was "
                    "changed",
                ) from error
            restored.callback(_put, maps, {name: maps[0][name] for name in wanted})
            _put(maps, wanted)
        yield


def _put(maps: tuple[Any, Any], values: Mapping[str, str]) -> None:
    spelled, in_lower_case = maps
    for name, value in values.items():
        # Sources read either map: ``get`` uses names in lower case, and ``asCaseSensitiveMap`` returns the others.
        spelled[name] = in_lower_case[name.lower()] = value


def _option_maps(frame: DataFrame, relation: Any) -> tuple[Any, Any]:
    """The option maps of a source. Raises LookupError for a version 1 source."""
    disabled = (frame.sparkSession.conf.get(VERSION_1_READERS, "") or "").split(",")
    provider = relation.source() if class_name(relation) == "StreamingRelationV2" else None
    # Such a class supports version 2, and is read as version 1 all the same.
    if provider is None or (
        provider.isDefined() and str(provider.get().getClass().getName()) in map(str.strip, disabled)
    ):
        raise LookupError("a source of version 1")
    options = relation.extraOptions()
    spelled, in_lower_case = (java_field(options, name).get(options) for name in _MAPS)
    return spelled, in_lower_case


def check_left_out(ledger: Ledger, generation: GenerationRecord, planned: int, frame: DataFrame) -> None:
    """Raises Refused (``source-files-too-old``) if a source would omit files that an older generation read.

    Not checked once the generation has its own batch.
    """
    based_at = -1 if generation.based_at is None else generation.based_at
    older = [one.number for one in ledger.generations(generation.stream) if one.number < generation.number]
    if not older or planned > based_at + 1:
        return
    for log, source in zip(source_logs(analysed_plan(frame)), spark_sources(frame), strict=True):
        kind = kind_described(source.description)
        if not kind.reads_files:
            continue
        read = _listed(ledger, generation.stream, kind, log, generation.number)
        # Generations inherit from each other, and each file is asked for once.
        again = {file.path: file for one in older for file in _listed(ledger, generation.stream, kind, log, one)}
        found = kind.live().left_out(source, read, list(again.values()), StoreAvailability())
        if found is not None:
            raise Refused(
                "source-files-too-old",
                f"Stream {generation.stream} has to read {counted(found.files, 'file')} again, which {source.where} "
                "would leave out silently",
                where=found.path,
                expected=f"at most {found.limit} older than the newest file that counts as read, by the option "
                f"{found.option}",
                found=f"{found.found} older",
                hint=f'read them: set .option("{found.option}", "{found.wanted}") on the source; or move them out of '
                "its directory, so that their rows are skipped; then run again",
            )


def _listed(ledger: Ledger, stream: str, kind: Source, log: str, generation: int) -> list[SourceFile]:
    lines = ledger.lines(stream, SOURCES + log, generation=generation).values()
    return [file for line in lines for file in kind.listed(encoded(line))]
