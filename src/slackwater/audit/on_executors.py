"""Drills in tasks. Pickled by value: workers need PySpark, nothing of Slackwater.

The session has a single core: the first task has finished when the second starts.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

SECOND = 1


class TaskDrill:
    """Acts in a job's second task. ``passes`` is a file with a byte for each job so far."""

    def __init__(self, drill: str, passes: str, last_pass: int, mark: str, processes: tuple[int, ...]) -> None:
        self.drill = drill
        self.passes = passes
        self.last_pass = last_pass
        self.mark = mark
        self.processes = processes

    def frame_stage(self) -> Callable[[Iterable[Any]], Iterator[Any]]:
        """The function for ``mapInArrow``, which passes the rows on."""

        def stage(batches: Iterable[Any]) -> Iterator[Any]:
            due = self.is_due()
            for batch in batches:
                if due and self.drill == "job":
                    yield batch.slice(0, batch.num_rows // 2)
                    self.kill()
                yield batch
            if due and self.drill == "task":
                self.fail()

        return stage

    def is_due(self) -> bool:
        """Whether this is the first attempt at the last job's second task; counts the job."""
        from pyspark import TaskContext  # noqa: PLC0415 - runs on executors

        context = TaskContext.get()
        # A retried attempt is left alone: it has to succeed, and is no job of its own.
        if context is None or context.partitionId() != SECOND or context.attemptNumber() > 0:
            return False
        with Path(self.passes).open("ab") as file:
            file.write(b".")
        return Path(self.passes).stat().st_size == self.last_pass

    def kill(self) -> None:
        """Kill the driver's JVM and Python."""
        kill_all(self.mark, self.processes)

    def fail(self) -> NoReturn:
        Path(self.mark).touch()
        raise RuntimeError("the audit fails this attempt; Spark retries the task")


class RowDrill:
    """A writer for ``foreach`` around the user's function or object."""

    def __init__(self, inner: Any, task: TaskDrill) -> None:
        self.inner = inner
        self.task = task
        self.due = False
        self.rows = 0

    def open(self, partition: int, batch: int) -> bool:
        if self.task.drill == "before":
            self.task.kill()
        self.due, self.rows = self.task.is_due(), 0
        opened = getattr(self.inner, "open", None)
        return True if opened is None else bool(opened(partition, batch))

    def process(self, row: Any) -> None:
        if self.due and self.task.drill == "job" and self.rows == 1:
            self.task.kill()
        (getattr(self.inner, "process", None) or self.inner)(row)
        self.rows += 1

    def close(self, error: Any) -> None:
        closed = getattr(self.inner, "close", None)
        if closed is not None:
            closed(error)
        if self.due and error is None:
            if self.task.drill == "after":
                self.task.kill()
            if self.task.drill == "task":
                self.task.fail()


def kill_all(mark: str, processes: tuple[int, ...]) -> None:
    """Note in a file that it was the drill, then ``kill -9``, in this order."""
    Path(mark).touch()
    for process in processes:
        os.kill(process, signal.SIGKILL)
