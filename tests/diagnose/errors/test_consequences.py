"""Which of several failures in one log is the cause: what follows from another one, and classes that say nothing."""

from __future__ import annotations

import pytest

from slackwater.core.commands import command
from slackwater.diagnose.catalogue import CATALOGUE
from slackwater.diagnose.causes import explained
from slackwater.diagnose.error_texts import recognise
from slackwater.diagnose.signs import SIGNS, signs_of

MEMORY = "java.lang.OutOfMemoryError: Java heap space\n"


def _codes(text: str) -> list[str]:
    return [one.codes[0] for one in recognise(text)]


@pytest.mark.parametrize(
    "consequence",
    [
        "Container marked as failed: container_1 on host: h. Exit status: 1.\n",
        "ExecutorLostFailure (executor 3 exited caused by one of the running tasks)\n",
        "java.util.concurrent.TimeoutException: Futures timed out after [10 seconds]\n",
        "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext\n",
        "py4j.protocol.Py4JNetworkError: Answer from Java side is empty\n",
        "java.lang.InterruptedException\n",
    ],
)
def test_what_follows_from_missing_memory_is_reported_after_it(consequence: str) -> None:
    assert _codes(MEMORY + consequence)[0] == "APP-02"
    assert _codes(consequence + MEMORY)[0] == "APP-02"


def test_a_consequence_alone_is_reported() -> None:
    assert _codes("ExecutorLostFailure (executor 3 exited caused by one of the running tasks)") == ["APP-03"]


def test_a_failure_that_does_not_follow_keeps_its_place() -> None:
    assert _codes(MEMORY + "[TABLE_OR_VIEW_NOT_FOUND] The table cannot be found. SQLSTATE: 42P01")[0] == "APP-06"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Command exited with code 137", "APP-02"),
        ("The executor with id 2 exited with exit code 137", "APP-02"),
        ("Container exited with a non-zero exit code 52.", "APP-02"),
        ("Exit status: 143. Diagnostics: Killed", "APP-03"),
        ("exitCode: 139", "APP-03"),
        ("process finished with exit code 3", "APP-03"),
        ("finished with exit code 0", "none"),
        ("spark 3.exit 137", "none"),
        ("took 137 ms", "none"),
    ],
)
def test_the_code_of_an_exit_is_read_in_each_spelling(text: str, code: str) -> None:
    assert (_codes(text) or ["none"])[0] == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("com.microsoft.azure.eventhubs.EventHubException: The supplied offset '4295' is invalid.", "SRC-01"),
        ("com.microsoft.azure.eventhubs.EventHubException: The messaging entity could not be found.", "APP-06"),
        ("com.microsoft.azure.eventhubs.EventHubException: internal", "SRC-05"),
        ("org.apache.hudi.exception.HoodieException: Failed to connect to the timeline server", "SRC-05"),
        ("java.lang.IllegalStateException: batch files of the source have a mismatched schema", "SINK-08"),
        ("com.amazonaws.services.s3.model.AmazonS3Exception: Forbidden (Status Code: 403)", "STORE-05"),
        ("net.snowflake.client.jdbc.SnowflakeSQLException: Incorrect username or password was specified.", "SRC-05"),
    ],
)
def test_the_message_counts_more_than_a_class_for_all_failures(text: str, code: str) -> None:
    assert _codes(text)[0] == code


@pytest.mark.parametrize("around", ["StreamingQueryException", "QueryExecutionException", "Py4JJavaError"])
def test_a_class_around_another_exception_says_nothing(around: str) -> None:
    assert _codes(f"org.apache.spark.{around}: [STREAM_FAILED] Query terminated with exception: boom") == []
    assert _codes(f"org.apache.spark.{around}: division by zero")[0] == "APP-01"


@pytest.mark.parametrize(("requested", "code"), [(2367, "SRC-01"), (2372, "SRC-06")])
def test_the_values_of_a_message_decide(requested: int, code: str) -> None:
    text = f"request seqNo {requested} is less than the received seqNo 2373. The earliest seqNo is 2371 and the last"

    assert _codes(text)[0] == code


@pytest.mark.parametrize(
    ("path", "code"),
    [("/out/part-0-x.parquet", "STORE-03"), ("/out/part_1.csv", "STORE-03"), ("/ck/x.tmp", "SHARE-01")],
)
def test_two_attempts_of_a_task_are_no_second_driver(path: str, code: str) -> None:
    lease = "because this file lease is currently owned by DFSClient_NONMAPREDUCE_5"

    assert _codes(f"o.a.h.hdfs.protocol.AlreadyBeingCreatedException: Failed to CREATE_FILE {path} {lease}")[0] == code


def test_a_parser_that_a_writing_connector_calls_reads_no_input() -> None:
    parser = (
        "com.fasterxml.jackson.core.JsonParseException: Unexpected character ('-')\n\tat com.fasterxml.A.b(A.java:1)"
    )
    writes = "\n\tat org.apache.doris.spark.sql.DorisStreamLoadSink.write(D.scala:1)"
    reads = "\n\tat org.apache.doris.spark.sql.DorisSource.next(D.scala:1)"

    assert _codes(parser + writes)[0] == "VER-06"
    assert _codes(parser + reads)[0] == "APP-05"


def test_a_message_of_several_causes_says_how_to_tell_them_apart() -> None:
    [lost] = explained(recognise("ExecutorLostFailure (executor 3 lost)"), None)

    assert list(signs_of(lost)) == ["APP-03", "APP-02"]


def test_a_message_of_one_cause_needs_no_signs() -> None:
    [refused] = explained(recognise("Queries with streaming sources must be executed with writeStream.start()"), None)

    assert signs_of(refused) == {}


def test_signs_are_of_failures_that_no_file_shows() -> None:
    assert SIGNS.keys() <= CATALOGUE.keys()
    assert all(CATALOGUE[code].how is not None for code in SIGNS)


def test_a_command_of_this_package_in_a_sign_exists() -> None:
    named = {sign[sign.index("slackwater ") :] for sign in SIGNS.values() if "slackwater " in sign}

    assert named == {command("inspect", "CHECKPOINT")}
