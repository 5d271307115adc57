"""Finds queries that the programming guide calls unsupported, before a start, with reason and alternative.

Spark's own plan check comes first, so nothing is created when it refuses; items that Spark lets through are found here.

Source: Structured Streaming programming guide, "Unsupported operations", "Support matrix for joins" and "Limitation of
global watermark"; ``UnsupportedOperationChecker``, messages of Spark 3.5, 4.1 and 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException

from slackwater.core.trigger import TriggerKind
from slackwater.runtime.logical_plan import analysed_plan, class_name, nodes_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CHECK = "spark.sql.streaming.unsupportedOperationCheck"
"""Spark's setting for its own check: a user who turned it off gets no refusal here either."""
CORRECTNESS = "spark.sql.streaming.statefulOperator.checkCorrectness.enabled"
"""Spark's setting: without it Spark only logs a warning about the limits of the global watermark."""
GLOBAL_WATERMARK = "global-watermark"
REFUSED = "query-refused"


@dataclass(frozen=True, slots=True)
class Unsupported:
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
    "a stateful operator behind another one that returns late rows",
    "an operator returns rows that are older than the query's global watermark, and the stateful operator behind it "
    "drops them as late",
    f'use output_mode="append" with watermarks, or {SPLIT}',
    GLOBAL_WATERMARK,
)
ONCE = Unsupported(
    "a join of two streams in another mode than append",
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
STATEFUL = frozenset(
    {
        *NO_OTHERS,
        "Aggregate",
        "Distinct",
        "Deduplicate",
        "DeduplicateWithinWatermark",
        "TransformWithState",
        "TransformWithStateInPandas",
        "TransformWithStateInPySpark",
    }
)


def unsupported_by(message: str) -> Unsupported | None:
    return next((item for words, item in UNSUPPORTED.items() if words in message), None)


def check_supported(frame: DataFrame, output_mode: str, trigger: TriggerKind) -> None:
    """Raises Spark's AnalysisException, or NotSupported, for an unsupported query.

    Raises IllegalArgumentException for real-time mode.
    """
    if frame.sparkSession.conf.get(CHECK, "true") != "true":
        return
    _ask_spark(frame, output_mode, trigger)
    item = _let_through(analysed_plan(frame), output_mode)
    if item is not None:
        raise NotSupported(item)


def late_in_chain(frame: DataFrame, output_mode: str) -> bool:
    """Return whether a later operator may drop rows as late, which a Spark setting allowed."""
    conf = frame.sparkSession.conf
    before = conf.get(CORRECTNESS, None)
    conf.set(CORRECTNESS, "true")
    try:
        _ask_spark(frame, output_mode, "processing-time")
    except AnalysisException as error:
        return unsupported_by(str(error)) is LATE_IN_CHAIN
    finally:
        if before is None:
            conf.unset(CORRECTNESS)
        else:
            conf.set(CORRECTNESS, before)
    return False


def _ask_spark(frame: DataFrame, output_mode: str, trigger: TriggerKind) -> None:
    jvm: Any = frame.sparkSession._jvm
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    mode = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, output_mode.capitalize())()
    plan = analysed_plan(frame)
    (checker.checkForContinuous if trigger == "continuous" else checker.checkForStreaming)(plan, mode)
    if trigger == "real-time":
        checker.checkAdditionalRealTimeModeConstraints(plan, mode)


def _let_through(plan: Any, output_mode: str) -> Unsupported | None:
    """A chain of stateful operators whose first operator may not be followed."""
    for node in nodes_of(plan):
        if not keeps_state(node):
            continue
        below = {class_name(one) for child in _children(node) for one in nodes_of(child) if keeps_state(one)}
        if below & NO_OTHERS:
            return AFTER_ARBITRARY
        deduplicates = class_name(node) in ("Deduplicate", "DeduplicateWithinWatermark", "Distinct")
        if deduplicates and output_mode != "append" and "Aggregate" in below:
            return AFTER_UPDATES
    return None


def keeps_state(node: Any) -> bool:
    name = class_name(node)
    if not node.isStreaming():
        return False
    return name in STATEFUL or (name == "Join" and all(child.isStreaming() for child in _children(node)))


def _children(node: Any) -> list[Any]:
    children = node.children()
    return [children.apply(index) for index in range(children.size())]
