"""Writes batches: Spark gathers the rows in one task, which sends them with the mark in a transaction.

Two producers would be two transactions, and readers could see half a batch. Rows are in shuffle files first, so the
transaction is short.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

from pyspark import cloudpickle
from pyspark.errors import PySparkException

from slackwater.core.sink import WriteContext
from slackwater.sinks.common.problem import TASK_ERROR
from slackwater.sinks.kafka import transaction
from slackwater.sinks.kafka.marked import MarkedTopic, problem_of
from slackwater.sinks.kafka.sink import CASTS, COLUMNS
from slackwater.sinks.kafka.transaction import BatchToWrite

MARK_ERRORS = ("sink-fenced", "sink-owned", "kafka-mark-malformed")
"""Errors of tasks that the mark, read again, fully explains."""

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write_batch(topic: MarkedTopic, context: WriteContext, frame: DataFrame, batch: int) -> None:
    register: Callable[[ModuleType], None] = cloudpickle.register_pickle_by_value
    register(transaction)
    written = BatchToWrite(context.stream_id, context.epoch, batch)
    publish = transaction.publisher(topic.settings, written)
    # Not ``coalesce(1)``, with which the one task would compute the rows, too, while the transaction is open.
    present = {column.lower() for column in frame.columns}
    chosen = (f"CAST({name} AS {CASTS.get(name, 'binary')}) AS {name}" for name in COLUMNS if name in present)
    rows = frame.selectExpr(*chosen).repartition(1)
    try:
        if not rows.mapInArrow(publish, transaction.RESULT).collect():
            # Spark runs no task for a batch that it finds to be empty; its mark is written all the same.
            list(publish(()))
    # RuntimeError is what ``publish`` raises where it was called in this process.
    except (PySparkException, RuntimeError) as error:
        own = TASK_ERROR.search(str(error))
        if own is not None and own["code"] in MARK_ERRORS:
            topic.check_fence(topic.mark(), context)
        problem = problem_of(error)
        if problem is None:
            raise  # The user's query, not the sink.
        raise problem.failed(topic.location) from error
