"""Counts rows and tags each with partition and task attempt. Pickled by value: executors need only pyarrow."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark import TaskContext


def tagger(counter: Any) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """For ``mapInArrow``: adds columns for attempt and partition.

    ``counter`` is a Spark accumulator, which counts each task once.
    """

    def tagged(batches: Iterable[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        attempt, partition = uuid.uuid4().hex, context.partitionId() if context is not None else 0
        for batch in batches:
            columns = [
                *batch.columns,
                pa.array([attempt] * batch.num_rows, pa.string()),
                pa.array([partition] * batch.num_rows, pa.int32()),
            ]
            names = [*batch.schema.names, "slackwater_attempt", "slackwater_partition"]
            counter.add(batch.num_rows)
            yield pa.RecordBatch.from_arrays(columns, names)

    return tagged
