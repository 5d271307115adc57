"""Files that do not exist: their paths say whose they are, and only where a text calls them missing."""

from __future__ import annotations

import time

import pytest

from slackwater.diagnose.error_texts import recognise
from slackwater.diagnose.errors.common.paths import missing_places

MISSING = "java.io.FileNotFoundException: File does not exist: "


def _code(text: str) -> str:
    found = recognise(text)
    return found[0].codes[0] if found else "none"


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/etc/ssl/kafka.client.truststore.jks", "APP-09"),
        ("dbfs:/FileStore/certs/client.pem", "APP-09"),
        ("/opt/conf/kafka_client_jaas.conf", "APP-09"),
        ("file:/tmp/temporary-2b1f1a4e-7d0c-4b8e-9a64-5d2c7f0f1a11/state/0/1/.1.delta.x.tmp", "STORE-06"),
        ("s3a://b/ck/state/0/17/42.delta", "STATE-01"),
        ("s3a://b/ck/state/0/17/left-keyToNumValues/42.snapshot", "STATE-01"),
        ("s3a://b/ck/state/0/17/42_6f0a.zip", "STATE-04"),
        ("hdfs://n/out/_spark_metadata/12", "FSINK-01"),
        ("hdfs://n/in/part-00136-b6403bac-a240-44f8-a792-fc2e174682b7-c000.csv", "FSRC-03"),
        ("hdfs://n/ck/sources/0/12", "FSRC-01"),
        ("hdfs://n/ck/offsets/12", "LOG-06"),
        ("s3://b/t/metadata/snap-123-1-abc.avro", "SRC-01"),
        ("/data/blockmgr-2b1f1a4e-7d0c-4b8e-9a64-5d2c7f0f1a11/0c/shuffle_0_1_0.index", "APP-02"),
        ("s3a://b/in/day=1/part-0.json", "APP-06"),
    ],
)
def test_the_path_of_a_missing_file_says_what_it_belongs_to(path: str, code: str) -> None:
    assert _code(MISSING + path) == code


@pytest.mark.parametrize(
    "line",
    [
        "26/11/23 10:00:00 INFO CheckpointFileManager: Renamed temp file to s3a://b/ck/offsets/12",
        "26/11/23 10:00:00 INFO HDFSBackedStateStoreProvider: Committed version 42 to s3a://b/ck/state/0/17/42.delta",
        "26/11/23 10:00:00 INFO SslFactory: loaded /etc/ssl/kafka.client.truststore.jks",
        "java.io.FileNotFoundException: no path is here",
        "java.io.FileNotFoundException: /tmp/blockmgr-fc1eb59c-7919-4bd0-96da-1880b57460bf/26/x (Too many open files)",
        "java.io.FileNotFoundException: /etc/ssl/client.jks (Permission denied)",
    ],
)
def test_a_path_is_nothing_where_no_file_is_missing(line: str) -> None:
    assert list(missing_places(line)) == []


def test_the_last_missing_file_of_a_kind_is_reported() -> None:
    [(name, place)] = missing_places(f"{MISSING}/ck/offsets/3\n{MISSING}/ck/offsets/4\n")

    assert (name, place.params["path"]) == ("missing entry of offsets", "/ck/offsets/4")


def test_the_work_grows_with_the_length_only() -> None:
    text = f"{MISSING}/ck/offsets/3\n" * 20_000
    started = time.perf_counter()

    assert list(missing_places(text))

    assert time.perf_counter() - started < 2
