"""Failures that are known by the name of an error condition, a SQLSTATE or an exception."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from scripts.error_conditions import conditions_of
from slackwater.diagnose.error_texts import ERRORS, recognise
from slackwater.diagnose.errors.common.names import ANY, STATE, conditions, keys_of

UNKNOWN = {"STREAM_FAILED", "INSUFFICIENT_TABLE_PROPERTY", "CONNECT"}
"""These say nothing of the cause; ``[CONNECT]`` may be any word in brackets."""
NAMES = [name for group in ERRORS.all() for error in group for name in error.names]


def installed() -> Path:
    """The jar of the installed PySpark that has the error conditions."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    [jar] = (Path(spec.origin).parent / "jars").glob("spark-common-utils_*.jar")
    return jar


def codes(text: str) -> tuple[str, ...]:
    """The codes of the best symptom."""
    found = recognise(text)
    return found[0].codes if found else ()


def test_the_conditions_of_the_installed_spark_are_known() -> None:
    assert conditions_of([installed()]).keys() <= conditions().keys()


def test_each_condition_is_recognised_without_its_message() -> None:
    unknown = [name for name in conditions() if not codes(f"org.apache.spark.SparkException: [{name}] Words.")]

    assert set(unknown) == UNKNOWN


def test_a_name_is_in_one_entry() -> None:
    assert sorted(set(NAMES)) == sorted(NAMES)


def test_the_conditions_that_tables_name_exist() -> None:
    conditions_of_tables = (name for name in NAMES if name.isupper() and "_" in name and ANY not in name)
    named = {name.partition(".")[0] for name in conditions_of_tables if not name.startswith(STATE)}

    assert named <= conditions().keys()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[TABLE_OR_VIEW_NOT_FOUND] The table cannot be found. SQLSTATE: 42P01", "APP-06"),
        ("[SOME_VENDOR_CONDITION] A message of a vendor. SQLSTATE: 40001", "SINK-07"),
        ("ERROR: deadlock (SQLState: 40P01)", "SINK-07"),
        ("Caused by: org.apache.kafka.common.errors.NotEnoughReplicasException: Messages are rejected", "SRC-05"),
        ("Caused by: org.apache.kafka.common.errors.RecordTooLargeException: The message is 9 bytes", "SINK-09"),
        ("org.apache.hadoop.hdfs.server.namenode.SafeModeException: Cannot create file", "STORE-08"),
        (
            "java.net.SocketTimeoutException: Read timed out\n\tat org.apache.hadoop.hdfs.DFSClient.x(D.java:1)",
            "STORE-08",
        ),
        ("java.net.SocketTimeoutException: Read timed out\n\tat com.example.Client.x(D.java:1)", "SRC-05"),
        ("java.lang.NoSuchFieldError: INSTANCE", "VER-04"),
        ("java.lang.IllegalAccessError: class org.apache.spark.storage.StorageUtils$ (in unnamed module", "APP-08"),
        ("ModuleNotFoundError: No module named 'pandas'", "APP-08"),
        ("Caused by: com.mysql.cj.jdbc.exceptions.MysqlDataTruncation: Data truncation: Data too long", "SINK-08"),
        ("Caused by: org.projectnessie.error.NessieReferenceConflictException: Key 't' has conflicting", "SINK-07"),
        ("com.vendor.stream.client.GatewayTimeoutException: no answer", "SRC-05"),
        ("com.vendor.stream.client.RequestThrottlingException: slow down", "SRC-05"),
        ("com.vendor.format.EnvelopeDecodingException: bad byte", "APP-05"),
        (
            "java.lang.NullPointerException\n\tat org.apache.spark.sql.kafka010.KafkaMicroBatchStream.x(K.scala:1)",
            "VER-06",
        ),
        ("User application exited with 137", "APP-02"),
    ],
)
def test_a_name_is_enough(text: str, code: str) -> None:
    assert codes(text)[0] == code


def test_a_message_that_names_the_cause_is_before_a_name() -> None:
    message = "java.lang.IllegalStateException: batch 3 doesn't exist"

    assert codes(f"{message}\nCaused by: java.net.ConnectException: Connection refused")[0] == "LOG-06"


def test_the_inner_exception_is_before_the_outer_one() -> None:
    outer, inner = "java.net.ConnectException: refused", "java.lang.NoSuchMethodError: x"

    assert codes(f"{outer}\n\tat a.b(C.java:1)\nCaused by: {inner}")[0] == "VER-04"
    assert codes(f"{inner}\n\tat a.b(C.java:1)\nCaused by: {outer}")[0] == "SRC-05"


def test_the_state_of_a_known_condition_does_not_count() -> None:
    assert codes("[STATE_STORE_INVALID_PROVIDER] The provider is not one. SQLSTATE: 42K06")[0] == "CHG-09"


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("CLOUD_FILE_SOURCE_FILE_NOT_FOUND", "FSRC-03"),
        ("SOME_BUCKET_NOT_FOUND", "APP-06"),
        ("CF_SOURCE_DIRECTORY_PATH_REQUIRED", "APP-09"),
        ("CF_FAILED_TO_INFER_SCHEMA", "APP-05"),
        ("PUBSUB_SOMETHING", "SRC-05"),
        ("KINESIS_COULD_NOT_READ_SHARD_UNTIL_END_OFFSET", "SRC-01"),
        ("DELTA_STREAMING_SOMETHING", "DELTA-07"),
        ("STATE_STORE_SOMETHING", "STATE-02"),
        ("SOME_VENDOR_CONDITION", None),
    ],
)
def test_a_condition_of_a_vendor_is_known_by_its_family(condition: str, code: str | None) -> None:
    assert next(iter(codes(f"[{condition}] Something else.")), None) == code


def test_the_state_of_a_vendors_condition_counts_more_than_its_family() -> None:
    assert codes("[STATE_STORE_SOMETHING] Words of a vendor. SQLSTATE: 22023")[0] == "APP-09"


def test_a_class_at_the_end_of_a_sentence_is_one() -> None:
    assert codes("The job ends with a NoClassDefFoundError. Then I tried another jar.")[0] == "VER-04"


def test_a_class_in_a_stack_frame_is_no_failure() -> None:
    assert codes("\tat java.net.ConnectException.<init>(ConnectException.java:50)") == ()


def test_the_most_specific_key_is_first() -> None:
    assert list(keys_of("DIVIDE_BY_ZERO")) == ["DIVIDE_BY_ZERO", "DIVIDE_BY_ZERO", "SQLSTATE 22012", "SQLSTATE 22"]
    assert list(keys_of("SQLSTATE 23505")) == ["SQLSTATE 23505", "SQLSTATE 23505", "SQLSTATE 23"]
    assert list(keys_of("a.b.LockTimeoutException")) == [
        *("a.b.LockTimeoutException", "b.LockTimeoutException", "LockTimeoutException"),
        *("*LockTimeoutException", "*TimeoutException", "*Exception"),
    ]
