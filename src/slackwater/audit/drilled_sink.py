"""The user's sink with a drill around the function that Spark calls.

Drills in tasks are pickled by value: workers need PySpark, nothing of Slackwater. The session has a single core: the
first task has finished when the second starts.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, cast

from slackwater.audit.steps import BY_FUNCTION, CHOICES, Drill, Step
from slackwater.core.commands import command
from slackwater.core.errors import PipelineError, UsageError
from slackwater.core.sink import Traits, WriteContext
from slackwater.sinks.common.batch_function import WriteBatch
from slackwater.sinks.common.contract import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


@dataclass
class Armed:
    """The drill of a step. Lines of the folder ``code`` are counted; ``jvm`` is the driver's. ``lines`` and
    ``by_function`` are found out: the function's lines, and whether Spark calls it for a batch.
    """

    folder: Path
    code: str
    jvm: int = 0
    number: int = 0
    step: Step = field(default_factory=lambda: Step("none"))
    lines: list[str] = field(default_factory=list)
    by_function: bool = True

    @property
    def mark(self) -> Path:
        """The file that exists once the drill took place."""
        return self.folder / f"drilled-{self.number}"

    @property
    def passes(self) -> Path:
        """A byte for each job that read the rows."""
        return self.folder / f"passes-{self.number}"

    def kill(self) -> None:
        # This process is the last one: after its own signal it cannot send another.
        kill_all(str(self.mark), (self.jvm, os.getpid()))

    def task_drill(self) -> TaskDrill:
        processes = (self.jvm, os.getpid())
        return TaskDrill(self.step.drill, str(self.passes), self.step.last_pass, str(self.mark), processes)


@dataclass(frozen=True)
class DrilledSink(Sink):
    """The sink ``inner`` with a drill that is armed when its query starts."""

    inner: Sink
    armed: Armed

    @property
    def kind(self) -> str:
        return self.inner.kind

    @property
    def traits(self) -> Traits:
        return self.inner.traits

    @property
    def output_modes(self) -> tuple[str, ...]:
        return self.inner.output_modes

    @property
    def connectors(self) -> tuple[str, ...]:
        return self.inner.connectors

    def identity(self) -> Mapping[str, str]:
        return self.inner.identity()

    def create_output(self, frame: DataFrame, partition_by: tuple[str, ...], /) -> None:
        self.inner.create_output(frame, partition_by)

    def check(self, frame: DataFrame, context: WriteContext, /) -> None:
        self.inner.check(frame, context)

    def attach(self, writer: DataStreamWriter, context: WriteContext, /) -> DataStreamWriter:
        return self.inner.attach(cast("DataStreamWriter", _Writer(writer, self.armed)), context)

    def start(self, writer: DataStreamWriter, context: WriteContext, /) -> StreamingQuery:
        return self.inner.start(cast("DataStreamWriter", _Writer(writer, self.armed)), context)


def check_drilled(sink: Sink, stream: str, drills: Sequence[Drill] = ()) -> None:
    """Raises PipelineError (``audit-sink``) unless Spark calls a function to write, UsageError (``audit-drill``) for a
    drill that the function cannot have.
    """
    writer: Any = _Asked()
    sink.attach(writer, WriteContext("", stream, 0, sink.output_modes[0]))
    impossible = sorted(BY_FUNCTION.intersection(drills))
    if "foreachBatch" not in writer.calls and "foreach" in writer.calls and impossible:
        raise UsageError(
            "audit-drill",
            f"Drill {impossible[0]} is impossible with this sink: Spark calls its function in tasks",
            where=f"stream {stream}",
            expected=", ".join(drill for drill in CHOICES if drill not in BY_FUNCTION),
            found=impossible[0],
            hint=f"leave out --drill {impossible[0]}",
        )
    if not writer.calls & {"foreach", "foreachBatch"}:
        raise PipelineError(
            "audit-sink",
            f"The {sink.kind} sink has no function to drill: Spark writes to it directly",
            where=f"stream {stream}",
            expected="a sink that writes batches by a function, or sinks.foreach",
            hint=f"{command('sinks')} shows what this sink guarantees",
        )


class _Asked:
    def __init__(self) -> None:
        self.calls: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        def call(*_arguments: object, **_options: object) -> _Asked:
            self.calls.add(name)
            return self

        return call


class _Writer:
    def __init__(self, writer: DataStreamWriter, armed: Armed) -> None:
        self._writer = writer
        self._armed = armed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)

    def foreachBatch(self, function: WriteBatch) -> DataStreamWriter:  # noqa: N802 - PySpark's name
        self._armed.by_function = True
        return self._writer.foreachBatch(_drilled(function, self._armed))

    def foreach(self, function: Any) -> DataStreamWriter:
        self._armed.by_function = False
        _pickle_by_value()
        return self._writer.foreach(RowDrill(function, self._armed.task_drill()))


def _drilled(function: WriteBatch, armed: Armed) -> WriteBatch:
    def write(frame: DataFrame, batch: int) -> None:
        if armed.step.drill == "before":
            armed.kill()
        _pickle_by_value()
        staged = frame.mapInArrow(armed.task_drill().frame_stage(), frame.schema)
        before = sys.gettrace()
        sys.settrace(counter(armed))
        try:
            function(staged, batch)
        finally:
            sys.settrace(before)
        if armed.step.drill == "twice":
            # First: the second call may fail, and the drill has taken place all the same.
            armed.mark.touch()
            function(staged, batch)
        if armed.step.drill == "after":
            armed.kill()

    return write


def counter(armed: Armed) -> Callable[[FrameType, str, Any], Any]:
    """A trace function that records the user's lines, and kills the process before a chosen line."""

    def local(frame: FrameType, event: str, _argument: Any) -> Any:
        place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        # A line that runs again and again, such as one with a comprehension, counts once.
        if event == "line" and armed.lines[-1:] != [place]:
            if armed.step.drill == "line" and len(armed.lines) == armed.step.line:
                armed.kill()
            armed.lines.append(place)
        return local

    def called(frame: FrameType, _event: str, _argument: Any) -> Any:
        name, module = frame.f_code.co_filename, str(frame.f_globals.get("__name__"))
        is_theirs = name.startswith(armed.code + os.sep) and "site-packages" not in name
        return local if is_theirs and not module.startswith("slackwater.") else None

    return called


def _pickle_by_value() -> None:
    from pyspark import cloudpickle  # noqa: PLC0415 - heavy; only a run pays for it

    register: Callable[[Any], None] = cloudpickle.register_pickle_by_value
    register(sys.modules[__name__])


SECOND = 1


@dataclass
class TaskDrill:
    """Acts in a job's second task. ``passes`` is a file with a byte for each job so far."""

    drill: str
    passes: str
    last_pass: int
    mark: str
    processes: tuple[int, ...]

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
