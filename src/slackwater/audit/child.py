"""The process that an audit starts and kills: ``python -m slackwater.audit.child``, its request on stdin.

Results are JSON lines, written at the end of each step.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql import types as T

from slackwater.audit.drilled_sink import Armed, DrilledSink
from slackwater.audit.steps import ERROR, RESULTS, ROWS_OF_TASK, STEPS_MOST, TASKS, AuditRequest, Step
from slackwater.core.errors import PipelineError, Refused, SlackwaterError
from slackwater.core.escaping import printable
from slackwater.core.records import BatchRecord
from slackwater.ledger.home import Home
from slackwater.ledger.lease_keeper import LeaseKeeper
from slackwater.ledger.ledger import Ledger
from slackwater.runtime.loader import LoadedPipeline, load
from slackwater.runtime.pipeline import Pipeline, StreamDefinition
from slackwater.runtime.run.before_start import register
from slackwater.runtime.run.query import build, create_output, first_line
from slackwater.runtime.run.runner import Application, NotStarted, RunRequest
from slackwater.runtime.run.stream_run import StreamOutcome
from slackwater.runtime.session import SessionOptions
from slackwater.runtime.session.session import driver_jvm_pid, end_session, start_session
from slackwater.runtime.session.settings import session_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

    from slackwater.runtime.pipeline import OutputMode


SCHEMA = "schema.json"
STAGED = "rows"


class Quiet:
    """A run's display that writes to the log."""

    def say(self, text: str) -> None:
        sys.stderr.write(f"{printable(text)}\n")

    def state(self, stream: str, state: str) -> None:
        self.say(f"{stream}: {state}")

    def batch(self, batch: BatchRecord) -> None:
        """Nothing: the results list the written rows."""

    def idle(self, stream: str) -> None:
        """Nothing: no batch was planned."""

    def restarted(self, stream: str) -> None:
        """Nothing: a message has the reason."""


def main() -> int:
    """Run the request on stdin; 0 unless an error was written to the run's folder."""
    request = AuditRequest.parse(sys.stdin.read())
    request.folder.mkdir(parents=True, exist_ok=True)
    try:
        loaded = load(request.reference)
        definition = loaded.pipeline.streams[request.stream]
        options = SessionOptions(**{**request.session, "connectors": tuple(request.session["connectors"])})
        spark = start_session(options, Quiet().say)
        try:
            if request.steps:
                _run_steps(request, loaded, definition, spark)
            else:
                schema = build(session_of(spark, definition), loaded, definition, request.folder / "home").frame.schema
                (Path(request.scratch) / SCHEMA).write_text(schema.json())
                stage_rows(spark, schema, str(Path(request.scratch) / STAGED))
        finally:
            end_session(spark)
    except SlackwaterError as error:
        fields = {"class": type(error).__name__, **error.as_dict()}
        (request.folder / ERROR).write_text(json.dumps(fields))
        return 1
    return 0


def _run_steps(
    request: AuditRequest, loaded: LoadedPipeline, definition: StreamDefinition, spark: SparkSession
) -> None:
    home, display = Home(request.folder / "home"), Quiet()
    armed = Armed(request.folder, str(loaded.file.parent), driver_jvm_pid(spark))
    scratch = _scratch(request, loaded, definition, armed)
    drilled = scratch.pipeline.streams[definition.name]
    # A later process of a run finds the rows that the steps before it have written.
    if request.first == 0 and not request.again:
        _check_empty(request, _shown(loaded, definition, spark))
    # No restart, which would hide a failure that the audit is to report.
    run_request = RunRequest(scratch, SessionOptions("audit"), until_caught_up=True, restarts_most=0)
    with (
        Ledger.open(home.ledger_url, create=True) as ledger,
        LeaseKeeper([drilled.full_name], home, ledger, "audit", display.say) as leases,
    ):
        leases.add_jvm(armed.jvm)
        record = register(drilled, loaded.reference, home, ledger)
        built = build(session_of(spark, drilled), scratch, drilled, home.given)
        create_output(built)
        for number in range(request.first, len(request.steps)):
            again = request.again and number == request.first
            armed.number, armed.lines = number, []
            armed.step = Step("none") if again else request.steps[number]
            files = sorted((Path(request.scratch) / STAGED).glob("part-*.parquet"))[
                number * TASKS : (number + 1) * TASKS
            ]
            for file in files:
                target = request.folder / "in" / file.name
                if not target.exists():
                    hidden = target.with_name(f".{file.name}")
                    shutil.copy(file, hidden)
                    # Spark's file source lists no name that starts with a dot: it finds a whole file or none.
                    hidden.rename(target)
            try:
                application = Application(run_request, home, ledger, display, spark)
                outcome = application.run([(record, built)], leases, NotStarted(1, display))[record.name]
            except SlackwaterError as error:
                # Before the first drill a refusal is about the sink or the query, and not about what a kill has left.
                if number == 0:
                    raise
                # Refused after a drill: that is a result.
                outcome = StreamOutcome(record.full_name, "failed", f"{error.code}: {error}")
            shown = _shown(loaded, definition, spark) if outcome.end == "finished" else Counter[str]()
            passes = armed.passes.stat().st_size if armed.passes.exists() else 0
            result = {"step": number, "end": outcome.end, "reason": outcome.reason, "shown": dict(shown)}
            found = {"lines": armed.lines, "passes": passes, "by_function": armed.by_function}
            _write(request, {**result, **found, "drilled": armed.mark.exists()})
            if outcome.end != "finished":
                return


def _scratch(
    request: AuditRequest, loaded: LoadedPipeline, definition: StreamDefinition, armed: Armed
) -> LoadedPipeline:
    pipeline = Pipeline(loaded.pipeline.name)
    schema = json.loads((Path(request.scratch) / SCHEMA).read_text())

    def rows(spark: SparkSession) -> DataFrame:
        whole = T.StructType.fromJson(schema)
        frame = spark.readStream.schema(whole).parquet(str(request.folder / "in"))
        # Complete mode is for aggregations only; this one gives each row once.
        return frame.groupBy(*frame.columns).count().drop("count") if definition.output_mode == "complete" else frame

    (request.folder / "in").mkdir(exist_ok=True)
    pipeline.stream(
        sink=DrilledSink(definition.sink, armed),
        name=definition.name,
        output_mode=cast("OutputMode", definition.output_mode),
        partition_by=definition.partition_by,
        settings=definition.settings,
    )(rows)
    return loaded._replace(pipeline=pipeline)


def _check_empty(request: AuditRequest, shown: Counter[str]) -> None:
    """Raises Refused if the target holds rows: it may be in use."""
    if shown:
        raise Refused(
            "audit-target",
            f"The target holds rows before the {request.run} run; an audit writes to empty targets only, one for each "
            "of its two runs",
            expected="no rows",
            found=f"{shown.total()} rows",
            hint="have the sink write to a relative path, or give each run its own target: --set NAME=...{run}...",
        )


def _shown(loaded: LoadedPipeline, definition: StreamDefinition, spark: SparkSession) -> Counter[str]:
    reader = loaded.pipeline.audit_readers[definition.name]
    try:
        found = reader(spark)
        rows = found.collect() if hasattr(found, "collect") else list(found)
    except Exception as error:  # the user's own code may raise anything; it becomes a message
        raise PipelineError(
            "audit-reader-fails",
            f"The audit reader of stream {definition.full_name} fails: {first_line(error)}",
            hint="it must return a DataFrame or a list of rows, or an empty list if there is no output yet",
        ) from error
    return Counter(_canonical(row) for row in rows)


def _canonical(row: Any) -> str:
    if hasattr(row, "asDict"):
        row = row.asDict(recursive=True)
    if isinstance(row, Mapping):
        return repr(sorted((str(name), repr(value)) for name, value in row.items()))
    return repr(tuple(row) if isinstance(row, Iterable) and not isinstance(row, str | bytes) else row)


def _write(request: AuditRequest, result: Mapping[str, object]) -> None:
    with (request.folder / RESULTS).open("a") as file:
        file.write(json.dumps(result) + "\n")
        file.flush()
        os.fsync(file.fileno())


BYTE_VALUES = 100


def stage_rows(spark: SparkSession, schema: StructType, folder: str) -> None:
    """Write all rows as Parquet: a file for each task of each batch, in the order of names."""
    files = STEPS_MOST * TASKS
    rows = [tuple(value_of(column.dataType, number) for column in schema) for number in range(files * ROWS_OF_TASK)]
    spark.createDataFrame(spark.sparkContext.parallelize(rows, files), schema).write.parquet(folder)


def value_of(kind: DataType, number: int) -> Any:
    """A row's value of a type. Raises PipelineError (``audit-type``)."""
    if isinstance(kind, T.ArrayType):
        return [value_of(kind.elementType, number)]
    if isinstance(kind, T.MapType):
        return {value_of(kind.keyType, number): value_of(kind.valueType, number)}
    if isinstance(kind, T.StructType):
        return tuple(value_of(column.dataType, number) for column in kind)
    if isinstance(kind, T.DecimalType):
        return Decimal(number % 10**kind.precision).scaleb(-kind.scale)
    if isinstance(kind, T.CharType | T.VarcharType):
        return str(number)[-kind.length :]
    simple = _SIMPLE.get(kind.typeName())
    if simple is None:
        raise PipelineError(
            "audit-type",
            "The audit has no values for a type of the stream's rows",
            found=kind.simpleString(),
            hint="audit a stream with the same sink function and simpler columns",
        )
    return simple(number)


_DAY, _TIME = date(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)
_SIMPLE: dict[str, Any] = {
    "byte": lambda number: number % BYTE_VALUES,
    "short": lambda number: number,
    "integer": lambda number: number,
    "long": lambda number: number,
    "float": lambda number: number + 0.5,
    "double": lambda number: number + 0.5,
    "string": lambda number: f"row {number}",
    "boolean": lambda number: number % 2 == 0,
    "date": lambda number: _DAY + timedelta(days=number),
    "timestamp": lambda number: _TIME + timedelta(minutes=number),
    "timestamp_ntz": lambda number: (_TIME + timedelta(minutes=number)).replace(tzinfo=None),
    "binary": lambda number: bytearray(str(number).encode()),
    "void": lambda _number: None,
}


if __name__ == "__main__":
    sys.exit(main())
