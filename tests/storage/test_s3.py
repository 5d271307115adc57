"""What an inspection of an S3 store costs: requests, as each takes its time and is paid for."""

import gc
import json
from collections import Counter
from collections.abc import Callable, Iterator

import fsspec
import pytest

from slackwater.cli.main import main
from slackwater.cli.verbs.inspect import inspect_checkpoint
from slackwater.storage.open import open_write_store
from tests.support.s3 import before_requests

METADATA = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1, "conf": {"spark.sql.shuffle.partitions": "1"}})
INFO = {
    "operatorInfo": {"operatorId": 0, "operatorName": "dedupe"},
    "stateStoreInfo": [{"storeName": "default", "numColsPrefixKey": 0, "numPartitions": 1}],
}


@pytest.fixture
def asked(s3_location: str) -> Iterator[Counter[str]]:
    """Method and path of each request that the store made, listings as ``LIST``."""
    found: Counter[str] = Counter()

    def count(method: str, url: str) -> None:
        path = url.partition(s3_location.rpartition("/")[2])[2]
        found["LIST" if "list-type=2" in url else f"{method} {path}"] += 1

    with before_requests(count):
        yield found


def test_a_read_is_one_request(s3_location: str, asked: Counter[str]) -> None:
    store = open_write_store(s3_location)
    for data in (b"", b"some", bytes(9 << 20)):
        store.write("file", data)
        asked.clear()
        assert store.read("file") == data
        assert asked == {"GET /file": 1}


@pytest.mark.parametrize("size", [1, 12 << 20])
def test_an_upload_whose_source_fails_is_ended(s3_location: str, size: int) -> None:
    def failing() -> Iterator[bytes]:
        yield bytes(size)
        raise ValueError("the source failed")

    store = open_write_store(s3_location)
    with pytest.raises(ValueError, match="the source failed"):
        store.write_pieces("file", failing())
    gc.collect()
    listed = fsspec.filesystem("s3", skip_instance_cache=True).call_s3("list_multipart_uploads", Bucket="slackwater")
    # Tests of lost answers leave others in the bucket.
    prefix = s3_location.removeprefix("s3a://slackwater/")
    assert [upload["Key"] for upload in listed.get("Uploads", []) if upload["Key"].startswith(prefix)] == []


def test_each_file_is_asked_for_once(s3_location: str, asked: Counter[str]) -> None:
    store = open_write_store(s3_location)
    store.write("metadata", b'{"id":"x"}')
    for batch in range(3):
        store.write(f"offsets/{batch}", f'v1\n{METADATA}\n{{"logOffset":{batch}}}'.encode())
        store.write(f"commits/{batch}", b'v1\n{"nextBatchWatermarkMs":0}')
        store.write(f"state/0/0/{batch + 1}.delta", b"x")
    store.write("state/0/_metadata/metadata", f"v1\n{json.dumps(INFO)}".encode())
    asked.clear()
    report = inspect_checkpoint(s3_location)
    assert [(damage.path, damage.kind) for damage in report.damage] == [("state/0/0/_metadata/schema", "missing")]
    # The root is read before it is walked; logs and operators are listed each by themselves.
    assert asked.pop("LIST") == 6
    logs = {f"GET /{log}/{batch}" for log in ("offsets", "commits") for batch in range(3)}
    assert asked == dict.fromkeys({"GET /metadata", "GET /state/0/_metadata/metadata", *logs}, 1)


def test_a_bucket_that_does_not_exist_is_no_empty_folder(s3_location: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert s3_location
    location = "s3://no-such-bucket/checkpoint"
    store = open_write_store(location)
    looks: tuple[Callable[[], object], ...] = (store.list, lambda: list(store.folders()), lambda: store.exists("a"))
    for look in looks:
        with pytest.raises(OSError, match="no such bucket"):
            look()
    assert main(["inspect", location]) == 9
    assert "no such bucket" in capsys.readouterr().err


def test_whether_a_bucket_exists(s3_location: str) -> None:
    bucket = s3_location.rpartition("/")[0]
    assert open_write_store(bucket).exists("")
    assert not open_write_store(f"{bucket}-none").exists("")
