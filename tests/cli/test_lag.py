"""Unread files: those in a source's directory that no entry of its log up to the newest batch lists."""

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from slackwater.cli.common import stream_status
from slackwater.cli.common.stream_status import Lag, lag_after, next_watermark_ms
from slackwater.core.checkpoint import CommitEntry, OffsetEntry, OffsetMetadata
from slackwater.core.records import BatchRecord, BatchSource
from slackwater.diagnose.checks.common.check import lag_of
from tests.cli.conftest import Slackwater
from tests.support.homes import HomeSpec, make_home


def batch_of(description: str, end: str = '{"logOffset":1}') -> BatchRecord:
    source = BatchSource(description, start=None, end=end, latest=None, input_rows=1)
    return BatchRecord("p/s", generation=1, batch_id=1, timestamp_ms=0, input_rows=1, sources=(source,))


def source_of(folder: Path) -> BatchRecord:
    return batch_of(f"FileStreamSource[file:{folder}]")


def entry(folder: Path, number: int, *names: str) -> str:
    files = [{"path": f"file://{quote(str(folder / name))}", "timestamp": 1, "batchId": number} for name in names]
    return "\n".join(["v1", *map(json.dumps, files)])


def lay(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x" * 10)


@pytest.mark.parametrize("name", ["in", "with a space", "100%", "a#b"])
def test_files_in_no_entry_are_unread(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    lay(folder, "0.json", "1.json", "2.json", "3.json")
    log = {0: entry(folder, 0, "0.json"), 1: entry(folder, 1, "1.json")}

    assert lag_after(source_of(folder), {0: log}) == Lag(files=2, bytes=20)


def test_a_file_that_a_later_batch_takes_is_unread(tmp_path: Path) -> None:
    lay(tmp_path, "0.json", "1.json", "2.json")
    log = {number: entry(tmp_path, number, f"{number}.json") for number in range(3)}

    assert lag_after(source_of(tmp_path), {0: log}) == Lag(files=1, bytes=10)


def test_hidden_files_are_not_input_and_partitions_are(tmp_path: Path) -> None:
    lay(tmp_path, "0.json", "_SUCCESS", ".part.crc", "day=1/hour=2/a.json", "_temporary/b.json", "plain/c.json")
    log = {0: entry(tmp_path, 0), 1: entry(tmp_path, 1, "0.json")}

    assert lag_after(source_of(tmp_path), {0: log}) == Lag(files=1, bytes=10)


def test_of_an_output_of_spark_only_the_files_in_its_manifest_count(tmp_path: Path) -> None:
    lay(tmp_path, "a.parquet", "b.parquet", "uncommitted.parquet")
    (tmp_path / "_spark_metadata").mkdir()
    for number, name in enumerate(("a.parquet", "b.parquet")):
        added = {"path": f"file://{tmp_path / name}", "size": 7, "isDir": False, "modificationTime": 1}
        added |= {"blockReplication": 1, "blockSize": 1, "action": "add"}
        (tmp_path / "_spark_metadata" / str(number)).write_text(f"v1\n{json.dumps(added)}")
    log = {0: entry(tmp_path, 0), 1: entry(tmp_path, 1, "a.parquet")}

    assert lag_after(source_of(tmp_path), {0: log}) == Lag(files=1, bytes=7)


@pytest.mark.parametrize(
    ("description", "reason"),
    [
        ("FileStreamSource[s3a://bucket/in]", "is not on a local disk: s3a://bucket/in"),
        ("FileStreamSource[file:/data/*/in]", "reads a path pattern: file:/data/*/in"),
        ("FileStreamSource[file:/no/such/folder]", "does not exist: file:/no/such/folder"),
    ],
)
def test_what_cannot_be_counted_is_unknown(description: str, reason: str) -> None:
    assert lag_after(batch_of(description), {0: {0: "v1", 1: "v1"}}) == Lag(unknown=f"source 0 {reason}")


def test_an_entry_that_is_not_recorded_makes_the_count_unknown(tmp_path: Path) -> None:
    lay(tmp_path, "0.json", "1.json")

    found = lag_after(source_of(tmp_path), {0: {0: entry(tmp_path, 0, "0.json")}})

    assert (found.files, found.unknown) == (None, "source 0 has read files that the ledger does not list")


def test_a_large_directory_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_status, "FILES_MAX", 3)
    lay(tmp_path, *(f"{number}.json" for number in range(4)))
    log = {0: entry(tmp_path, 0), 1: entry(tmp_path, 1)}

    assert lag_after(source_of(tmp_path), {0: log}) == Lag(unknown="source 0 has more than 3 files")


def test_rows_are_counted_beside_files(tmp_path: Path) -> None:
    kafka = BatchSource("KafkaV2[Subscribe[t]]", None, '{"t":{"0":5}}', '{"t":{"0":12}}', 5)
    files = BatchSource(f"FileStreamSource[file:{tmp_path}]", None, '{"logOffset":-1}', None, 0)
    lay(tmp_path, "0.json")
    batch = BatchRecord("p/s", 1, 1, 0, 5, sources=(kafka, files))

    assert lag_after(batch, {1: {}}) == Lag(rows=7, files=1, bytes=10)


# The lag of a batch: rows that its sources hold beyond its end, where their offsets determine them.


def _lag(*reported: tuple[str | None, str | None]) -> int | None:
    sources = tuple(BatchSource("a source", None, end, latest, 1) for end, latest in reported)
    return lag_of(BatchRecord("clicks/per_page", 1, 4, timestamp_ms=0, input_rows=1, sources=sources))


def test_lag_of_topics_is_the_sum_over_partitions() -> None:
    topic = ('{"t":{"0":5,"1":3}}', '{"t":{"0":9,"1":3,"2":1}}')

    assert _lag(topic) == 5
    assert _lag(topic, topic) == 10
    assert _lag(topic, ('{"logOffset":4}', None)) == 5
    assert _lag(("{}", "{}"), topic) == 5


@pytest.mark.parametrize(
    ("end", "latest"),
    [
        ("{}", "{}"),
        ('{"t":{"0":5}}', None),
        ('{"t":{"0":5}}', '{"logOffset":4}'),
        ('{"streamName":{"shardId-000000000000":5}}', '{"streamName":{"shardId-000000000000":8}}'),
        (None, '{"t":{"0":5}}'),
        ("5", "9"),
    ],
    ids=["no partitions", "not reported", "another kind", "Kinesis-like", "no offset yet", "number"],
)
def test_lag_is_unknown_where_offsets_do_not_determine_rows(end: str | None, latest: str | None) -> None:
    assert _lag((end, latest)) is None


# The watermark of the next batch: the rule, and that ``status`` and ``offsets`` follow it.


def planned(watermark_ms: int) -> OffsetEntry:
    return OffsetEntry(1, OffsetMetadata(watermark_ms, 0, {}), ())


@pytest.mark.parametrize(
    ("entry", "before", "commit", "expected"),
    [
        (planned(500), planned(100), CommitEntry(1, 900), 500),
        (None, planned(100), CommitEntry(1, 900), 900),
        (None, planned(900), CommitEntry(1, 0), 900),
        (None, planned(900), None, 900),
        (None, None, None, 0),
    ],
)
def test_the_rule(
    entry: OffsetEntry | None, before: OffsetEntry | None, commit: CommitEntry | None, expected: int
) -> None:
    assert next_watermark_ms(entry, before, commit) == expected


@pytest.mark.parametrize("spec", [HomeSpec(), HomeSpec(planned=6, state=5)], ids=["committed", "planned"])
def test_status_and_offsets_show_the_same(slackwater: Slackwater, tmp_path: Path, spec: HomeSpec) -> None:
    make_home(tmp_path, spec)

    status = slackwater("status", "per_page").out
    offsets = slackwater("offsets", "per_page").err

    shown = next(line.split(maxsplit=1)[1] for line in status.splitlines() if line.startswith("  watermark"))
    assert shown in offsets
    assert shown != "-"
