"""Text logs: what is rendered is parsed, what Spark wrote is rendered byte for byte, what is damaged is an error."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.core.checkpoint_logs import CommitEntry, OffsetEntry, SinkFile, SourceFile, SourceOffset
from slackwater.core.errors import FormatError
from slackwater.formats.commit_log import parse_commit_entry, render_commit_entry
from slackwater.formats.compactible import parse_file_sink_log, parse_file_source_log
from slackwater.formats.offset_log import parse_offset_entry, render_offset_entry
from slackwater.formats.text_log import parse_query_metadata
from slackwater.sources.kafka import parse_initial_offsets, render_initial_offsets
from tests.support.corpus import VERSIONS, corpus_cases, corpus_folder
from tests.support.spark_logs import render_file_sink_log, render_file_source_log, render_query_metadata
from tests.support.strategies import commit_entries, damaged, offset_entries, sink_files, source_files


def kind_of(path: Path) -> Callable[[bytes], bytes] | None:
    """Parse and render again, for the files that are text logs."""
    if path.name.startswith(".") or path.suffix == ".crc":
        return None
    if path.parent.name == "offsets":
        return lambda data: render_offset_entry(parse_offset_entry(data))
    if path.parent.name == "commits":
        return lambda data: render_commit_entry(parse_commit_entry(data))
    if path.parent.name == "_spark_metadata":
        return lambda data: render_file_sink_log(parse_file_sink_log(data))
    if path.parent.parent.name == "sources" and b'"path"' in path.read_bytes():
        return lambda data: render_file_source_log(parse_file_source_log(data))
    if path.name == "metadata" and path.parent.name.startswith("checkpoint"):
        return lambda data: render_query_metadata(parse_query_metadata(data))
    return None


@pytest.mark.parametrize("version", VERSIONS)
def test_what_spark_wrote_is_rendered_byte_for_byte(version: str) -> None:
    checked = 0
    for case in corpus_cases(version):
        for path in corpus_folder(version, case).rglob("*"):
            again = kind_of(path) if path.is_file() else None
            if again is not None:
                data = path.read_bytes()
                assert again(data) == data, path
                checked += 1
    assert checked > 10


@given(offset_entries())
def test_offset_entries(entry: OffsetEntry) -> None:
    assert parse_offset_entry(render_offset_entry(entry)) == entry


@given(commit_entries())
def test_commit_entries(entry: CommitEntry) -> None:
    assert parse_commit_entry(render_commit_entry(entry)) == entry


@given(st.lists(source_files, max_size=5))
def test_source_logs(files: list[SourceFile]) -> None:
    assert list(parse_file_source_log(render_file_source_log(files))) == files


@given(st.lists(sink_files, max_size=5))
def test_sink_logs(files: list[SinkFile]) -> None:
    assert list(parse_file_sink_log(render_file_sink_log(files))) == files


@pytest.mark.parametrize(
    ("parse", "whole"),
    [
        (parse_offset_entry, offset_entries().map(render_offset_entry)),
        (parse_commit_entry, commit_entries().map(render_commit_entry)),
        (parse_file_source_log, st.lists(source_files, max_size=5).map(render_file_source_log)),
        (parse_file_sink_log, st.lists(sink_files, max_size=5).map(render_file_sink_log)),
        (parse_initial_offsets, st.just(render_initial_offsets('{"t":{"0":1}}'))),
        (parse_query_metadata, st.just(render_query_metadata("a"))),
    ],
    ids=["offsets", "commits", "source", "sink", "kafka", "metadata"],
)
def test_damaged_bytes_are_read_or_refused(parse: Callable[[bytes], Any], whole: st.SearchStrategy[bytes]) -> None:
    @given(damaged(whole))
    def check(data: bytes) -> None:
        with suppress(FormatError):
            parse(data)

    check()


def test_the_metadata_line_may_be_empty() -> None:
    entry = parse_offset_entry(b'v1\n\n{"0":{"value":34}}')
    assert entry.metadata is None
    assert entry.watermark_ms == 0
    assert entry.offsets == (SourceOffset("0", '{"0":{"value":34}}'),)


def test_a_dash_is_no_offset() -> None:
    assert parse_offset_entry(b"v1\n{}\n-\n7").offsets == (SourceOffset("0", None), SourceOffset("1", "7"))


def test_fields_of_later_releases_are_kept() -> None:
    line = b'v2\n{"batchWatermarkMs":1,"batchTimestampMs":2,"conf":{},"controlBatchInfo":{"a":1}}\nx:{"logOffset":1}'
    assert render_offset_entry(parse_offset_entry(line)) == line


@pytest.mark.parametrize("data", [b"v1", b"v1\n{}", b"v1\n"])
def test_commits_of_old_releases(data: bytes) -> None:
    assert parse_commit_entry(data) == CommitEntry(1, 0)


def test_kafka_offsets_have_a_leading_zero_byte() -> None:
    text = '{"topic":{"0":23,"1":-2}}'
    assert render_initial_offsets(text) == b'\0v1\n{"topic":{"0":23,"1":-2}}'
    assert parse_initial_offsets(render_initial_offsets(text)) == text


@pytest.mark.parametrize(
    ("parse", "data", "code"),
    [
        (parse_offset_entry, b"", "empty"),
        (parse_offset_entry, b"v", "torn"),
        (parse_offset_entry, b"v1", "torn"),
        (parse_offset_entry, b'v1\n{"batchWat', "torn"),
        (parse_offset_entry, b'v1\n{}\n{"logOff', "torn"),
        (parse_offset_entry, b"v3\n{}\n1", "too-new"),
        (parse_offset_entry, b"PAR1\x00\xff", "foreign"),
        (parse_commit_entry, b"v4\n{}", "too-new"),
        (parse_commit_entry, b'v1\n{"nextBatchWatermarkMs":"x"}', "foreign"),
        (parse_commit_entry, b'v1\n{"nextBatchWatermarkMs":true}', "foreign"),
        (parse_commit_entry, b"v1\n" + b"[" * 100_000, "torn"),
        (parse_file_source_log, b'v1\n{"path":"a","timestamp":1}', "foreign"),
        (parse_query_metadata, b'{"id":1}', "foreign"),
        (parse_query_metadata, b'{"id":"8f', "torn"),
        (parse_query_metadata, b"\xff\xfe", "foreign"),
    ],
)
def test_codes(parse: Callable[[bytes], Any], data: bytes, code: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse(data)
    assert caught.value.code == code
