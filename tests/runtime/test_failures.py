"""Failures: a permanent one stops its stream alone; one that may pass is tried again, a few times, with each reason."""

from functools import partial
from hashlib import sha256

import pytest

from slackwater.core.errors import StreamFailed
from slackwater.runtime.run import failures
from slackwater.runtime.run.failures import classify
from slackwater.runtime.run.stream_run import Restarts
from slackwater.runtime.session import spark_version
from tests.runtime.project import Project

PIPELINE = """
import socket
from pathlib import Path

import slackwater as sw
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

pipeline = sw.Pipeline("work")

def source(spark):
    return spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1).json("in")

def refuse_three(number):
    if number == 3:
        raise ValueError("row three is bad")
    return number

def look_up(number):
    try:
        socket.create_connection(("127.0.0.1", unused_port()))
    except OSError as error:
        raise RuntimeError("the lookup failed") from error

def unused_port():
    # A port that was free just now and on which no process listens.
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]

class FailsOnce:
    '''A writer whose first start meets a checkpoint store that does not answer.'''

    def __init__(self, writer):
        self.writer = writer

    def start(self):
        mark = Path("failed-once")
        if mark.exists():
            return self.writer.start()
        mark.touch()
        raise PySparkException("java.net.ConnectException: Connection refused")

class FlakySink(sw.sinks.FilesSink):
    def attach(self, writer, context):
        return FailsOnce(super().attach(writer, context))

def json_files(name):
    return sw.sinks.files("json", f"out/{name}")

pipeline.stream(name="available", sink=json_files("available"), trigger=sw.triggers.available_now())(source)
pipeline.stream(name="once", sink=json_files("once"), trigger=sw.triggers.once())(source)
pipeline.stream(name="ticking", sink=json_files("ticking"), trigger="200 milliseconds")(source)
pipeline.stream(name="flaky", sink=FlakySink("json", "out/flaky"), trigger=sw.triggers.available_now())(source)

@pipeline.stream(sink=json_files("bad"))
def bad(spark):
    return source(spark).withColumn("same", F.udf(refuse_three, "long")("id"))

@pipeline.stream(sink=json_files("refused"))
def refused(spark):
    return spark.readStream.format("socket").option("host", "127.0.0.1").option("port", unused_port()).load()

@pipeline.stream(sink=json_files("lookup"))
def lookup(spark):
    return source(spark).withColumn("same", F.udf(look_up, "long")("id"))
"""


@pytest.mark.spark
def test_each_stream_ends_in_its_own_way(project: Project) -> None:
    project.write(PIPELINE)
    project.add_files(6)
    command = project.start("run", "pipeline.py")
    for name, runs in (("available", 1), ("once", 1), ("flaky", 2), ("bad", 1), ("refused", 3), ("lookup", 3)):
        command.wait_for(partial(_has_ended, project, name, runs), f"{name} ends after {runs} runs")
    project.add_files(1)
    command.wait_for(lambda: project.committed("ticking") == 6, "a stream that does not fail continues")
    with project.ledger() as ledger:
        ledger.request_stop("work/ticking")

    assert command.end() == 7, command.log
    assert project.ids("out/available") == list(range(6))
    assert (project.ids("out/once"), project.planned("once")) == (list(range(6)), 0)
    assert project.ids("out/flaky") == list(range(6))
    assert project.ids("out/ticking") == list(range(7))
    assert project.ids("out/bad") == [0, 1, 2]

    ends = {name: [(run.end, run.reason) for run in project.runs(name)] for name in ("bad", "refused", "flaky")}
    assert ends["bad"] == [("failed", "ValueError: row three is bad")]
    # Spark 3.5 reports the reason without its class.
    refused = "Connection refused" if spark_version().startswith("3.") else "ConnectException: Connection refused"
    assert ends["refused"] == [("failed", refused)] * 3
    assert [end for end, _ in ends["flaky"]] == ["failed", "finished"]
    assert "Connection refused" in str(ends["flaky"][0][1])
    assert f"work/refused: {refused}; restart 2 of 2 in 2 s" in command.log
    assert "work/bad: failed: ValueError: row three is bad" in command.log
    # The cause of an exception in a Python function is transient, although what wraps it is not.
    assert [(run.end, run.reason) for run in project.runs("lookup")] == [
        ("failed", "RuntimeError: the lookup failed")
    ] * 3, command.log
    assert {name: _failures(project, name) for name in ("available", "bad", "refused", "lookup")} == {
        "available": [(None, None)],
        "bad": [("permanent", "user-function")],
        "refused": [("transient", "store-unreachable")] * 3,
        "lookup": [("transient", "user-function")] * 3,
    }
    _assert_runs_are_described(project)


def _failures(project: Project, name: str) -> list[tuple[str | None, str | None]]:
    return [(run.failure, run.failure_code) for run in project.runs(name)]


def _assert_runs_are_described(project: Project) -> None:
    """Each run has its settings and the digest of its code, and each batch the run that executed it."""
    code = sha256((project.folder / "pipeline.py").read_bytes()).hexdigest()
    for name in ("available", "flaky"):
        runs = project.runs(name)
        for run in runs:
            assert run.code == code
            assert run.settings is not None
            assert run.settings.keys() >= {"spark.sql.session.timeZone", "spark.sql.ansi.enabled"}
            assert run.settings["spark.sql.shuffle.partitions"] == "1"
        with project.ledger() as ledger:
            batches = ledger.batches(f"work/{name}")
        assert {batch.run for batch in batches} == {runs[-1].id}, name


def _has_ended(project: Project, name: str, runs: int) -> bool:
    return [run.end is None for run in project.runs(name)] == [False] * runs


@pytest.mark.parametrize("trigger", ["continuous", "real_time"])
def test_a_trigger_that_files_do_not_have_is_refused_before_spark_starts(project: Project, trigger: str) -> None:
    project.write(
        'import slackwater as sw\npipeline = sw.Pipeline("work")\n'
        '@pipeline.stream(sink=sw.sinks.files("json", "out"), '
        f'trigger=sw.triggers.{trigger}("1 second"))\n'
        "def rows(spark):\n    raise AssertionError('Spark has started')\n"
    )
    command = project.run(expected=2)
    assert f"trigger-{trigger.replace('_', '-')}" in command.log
    assert not project.checkpoint("rows").exists()


SPARK_TEXT = """Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: Lost \
task 0.0 in stage 3.0 (TID 3) (localhost executor driver): org.apache.spark.api.python.PythonException: Traceback \
(most recent call last):
  File "pipeline.py", line 3, in bad
    raise ValueError("no")
ValueError: no

	at org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:645)
Driver stacktrace:
=== Streaming Query ===
Logical Plan: Project ['Connection refused', java.net.ConnectException: said the user]
"""
AWAITED = """Exception thrown in awaitResult:
org.apache.spark.SparkException: Exception thrown in awaitResult: see below
Caused by: org.apache.spark.sql.execution.streaming.state.StateStoreCommitValidationFailed: \
[STATE_STORE_COMMIT_VALIDATION_FAILED] Expected 2 commits
"""


@pytest.mark.parametrize(
    ("text", "reason", "transient"),
    [
        (SPARK_TEXT, "ValueError: no", False),
        (
            "java.util.concurrent.ExecutionException: org.apache.kafka.common.errors.TimeoutException: Timed out",
            "TimeoutException: Timed out",
            True,
        ),
        ("ConnectionResetError: [Errno 104] by peer", "ConnectionResetError: [Errno 104] by peer", True),
        ("[DIVIDE_BY_ZERO] Division by zero", "[DIVIDE_BY_ZERO] Division by zero", False),
        (AWAITED, "StateStoreCommitValidationFailed: [STATE_STORE_COMMIT_VALIDATION_FAILED] Expected 2 commits", False),
    ],
)
def test_the_innermost_cause_decides(text: str, reason: str, *, transient: bool) -> None:
    error = RuntimeError(text)
    assert (failures.reason_of(error), failures.is_transient(error)) == (reason, transient)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] Some data may have been lost", "data-loss"),
        ("Set of partitions changed (KafkaIllegalStateException)", "data-loss"),
        ("[MISMATCHED_TOPIC_PARTITIONS_BETWEEN_START_AND_END_OFFSETS] Kafka", "source-changed"),
        ('Expected e.g. {"topicA":{"0":23}}, got {"logOffset":3}', "source-changed"),
        ("Wrong basePath /a for the root path: /b", "source-changed"),
        ("[STREAMING_SOURCE_IDENTITY_MISMATCH] another", "source-changed"),
        ("[CANNOT_LOAD_STATE_STORE.X] Some data may have been lost", "state-missing"),
    ],
)
def test_what_a_kind_of_source_reports_has_its_code(text: str, code: str) -> None:
    failure = classify(RuntimeError(text))

    assert (failure.kind, failure.code) == ("permanent", code)


@pytest.mark.parametrize("code", ["sink-busy", "iceberg-conflict", "kafka-fenced", "broker-unreachable"])
def test_a_restart_may_help_after_an_error_of_a_kind_of_sink(code: str) -> None:
    assert failures.is_transient(StreamFailed(code, "Try again"))
    assert failures.is_transient(
        RuntimeError(f"slackwater.sinks.common.batch_function.BatchFailed: [{code}] Try again")
    )
    assert not failures.is_transient(StreamFailed(f"{code}-for-good", "Do not"))


def test_a_cause_behind_others_is_found() -> None:
    error = RuntimeError("the query failed")
    error.__cause__ = RuntimeError("wrapped")
    error.__cause__.__cause__ = ConnectionRefusedError("no listener")
    assert failures.is_transient(error.__cause__.__cause__)
    assert failures.is_transient(error)
    assert not failures.is_transient(RuntimeError("wrapped"))


def test_a_transient_cause_of_our_own_error_is_found() -> None:
    refused = StreamFailed("store-unreadable", "The output cannot be read: Could not connect to the endpoint URL")
    refused.__cause__ = OSError("Could not connect to the endpoint URL")
    refused.__cause__.__context__ = ConnectionRefusedError(111, "no listener")
    failure = failures.classify(refused)
    assert (failure.kind, failure.code) == ("transient", "store-unreachable")


WORKER_TEXT = """org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/opt/venv/lib/python3.11/site-packages/pyspark/python/lib/pyspark.zip/pyspark/worker.py", line 1, in main
    process()
  File "/srv/clicks.py", line 8, in page_of
    return parse(url)
           ^^^^^^^^^^
  File "/srv/clicks.py", line 4, in parse
    raise ValueError("no")
ValueError: no
"""


def test_the_users_part_of_a_workers_traceback() -> None:
    failure = failures.classify(RuntimeError(WORKER_TEXT))
    assert failure.place == "/srv/clicks.py:4"
    assert failure.traceback == (
        'Traceback (most recent call last):\n  File "/srv/clicks.py", line 8, in page_of\n    return parse(url)\n'
        '           ^^^^^^^^^^\n  File "/srv/clicks.py", line 4, in parse\n    raise ValueError("no")\nValueError: no'
    )
    assert failures.classify(RuntimeError("no traceback here")).traceback is None


COMPILED_TEXT = """org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "pyarrow/array.pxi", line 4109, in pyarrow.lib.StructArray.from_arrays
  File "pyarrow/error.pxi", line 92, in pyarrow.lib.check_status
pyarrow.lib.ArrowInvalid: Struct child array #1 does not match type field: large_string vs string

	at org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:645)
"""


def test_an_error_of_a_compiled_module_is_named_and_has_no_line_of_the_user() -> None:
    failure = failures.classify(RuntimeError(COMPILED_TEXT))

    assert failure.reason == "ArrowInvalid: Struct child array #1 does not match type field: large_string vs string"
    assert (failure.place, failure.traceback) == (None, None)


DEBUGGED = """import slackwater as sw
from pyspark.sql import functions as F

pipeline = sw.Pipeline("work")

def refuse(number):
    raise ValueError("no row is good")

@pipeline.stream(sink=sw.sinks.files("json", "out"))
def bad(spark):
    rows = spark.readStream.schema("id LONG").json("in")
    return rows.withColumn("same", F.udf(refuse, "long")("id"))
"""


@pytest.mark.spark
def test_debug_shows_the_users_line_of_a_failing_function(project: Project) -> None:
    project.write(DEBUGGED)
    project.add_files(1)
    file = project.folder / "pipeline.py"

    with_debug = project.run("--until-caught-up", "--debug", expected=7).log
    without = project.run("--until-caught-up", expected=7).log

    assert f"work/bad: failed: ValueError: no row is good at {file}:7" in without
    assert "Traceback" not in without
    assert f'File "{file}", line 7, in refuse\n    raise ValueError("no row is good")' in with_debug
    frames = [line for line in with_debug.splitlines() if line.startswith("  File ")]
    assert frames == [f'  File "{file}", line 7, in refuse']


@pytest.mark.spark
def test_debug_shows_the_users_line_of_a_failing_stream_function(project: Project) -> None:
    project.write(DEBUGGED.replace("    rows = ", "    refuse(1)\n    rows = "))

    log = project.run("--until-caught-up", "--debug", expected=2).log

    frames = [line.rpartition(", line ")[2] for line in log.splitlines() if line.startswith("  File ")]
    assert frames == ["11, in bad", "7, in refuse"]
    assert f"error stream-fails: Stream work/bad cannot be built: ValueError: no row is good at {project.folder}" in log


@pytest.mark.parametrize(
    "text",
    [
        "[CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED] Verification failed. File: file:/home/state/0/0/3.delta",
        "org.apache.hadoop.fs.ChecksumException: Checksum error: file:/home/state/0/0/3.delta at 512 exp: 1 got: 2",
    ],
)
def test_damaged_state_is_recognised(text: str) -> None:
    assert classify(RuntimeError(text)).code == "state-damaged"


def test_a_damaged_input_file_is_not_called_state() -> None:
    assert classify(RuntimeError("ChecksumException: Checksum error: file:/in/1.json at 0")).code == "unknown"


def test_the_wait_between_restarts_stays_the_longest_one() -> None:
    restarts = Restarts(1_000_000)
    waits = [restarts.plan_next() for _ in range(2000)]
    assert waits[0].endswith("in 1 s")
    assert {one.partition(" in ")[2] for one in waits[6:]} == {"60 s"}
