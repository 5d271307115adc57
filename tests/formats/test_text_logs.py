"""Text logs: what is rendered is parsed, what Spark wrote is rendered byte for byte, what is damaged is an error."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.core.checkpoint import CommitEntry, OffsetEntry, OffsetMetadata, SinkFile, SourceFile, SourceOffset
from slackwater.core.errors import FormatError
from slackwater.formats.compactible import (
    parse_file_sink_log,
    parse_file_source_log,
    parse_sink_file,
    parse_source_file,
)
from slackwater.formats.text_log import (
    next_watermark_ms,
    parse_commit_entry,
    parse_offset_entry,
    parse_query_metadata,
    planned_watermark_ms,
    render_commit_entry,
    render_offset_entry,
)
from slackwater.sources.kafka import parse_initial_offsets, render_initial_offsets
from tests.support.corpus import VERSIONS, corpus_cases, corpus_folder
from tests.support.errors import raises_code
from tests.support.spark_logs import render_file_sink_log, render_file_source_log, render_query_metadata

words = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\x85\u2028\u2029"), min_size=1, max_size=20)
"""Text on one line, as everything in a log is."""

times = st.integers(0, 4_102_444_800_000)
counts = st.integers(0, 2**40)
settings = st.dictionaries(words.map(lambda word: f"spark.sql.{word}"), words, max_size=5)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
offset_texts = st.one_of(
    counts.map(str),
    counts.map(lambda number: json.dumps({"logOffset": number}, separators=(",", ":"))),
    st.dictionaries(words, st.dictionaries(counts.map(str), counts, max_size=3), max_size=3).map(json.dumps),
    st.dictionaries(words, json_values, max_size=3).map(json.dumps),
)

metadata = st.builds(OffsetMetadata, times, times, settings, st.just({}))
source_names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,12}", fullmatch=True)


@st.composite
def offset_entries(draw: st.DrawFn) -> OffsetEntry:
    """Entries of both versions, with sources that have no offset yet and with the empty metadata line."""
    version = draw(st.integers(1, 2))
    texts = draw(st.lists(st.none() | offset_texts, min_size=1, max_size=4))
    names = [str(index) for index in range(len(texts))]
    if version == 2:
        names = draw(st.lists(source_names, min_size=len(texts), max_size=len(texts), unique=True))
    offsets = tuple(SourceOffset(name, text) for name, text in zip(names, texts, strict=True))
    return OffsetEntry(version, draw(st.none() | metadata), offsets)


state_ids = st.dictionaries(
    st.integers(0, 3).map(str), st.lists(st.lists(st.uuids().map(str), min_size=1, max_size=4), max_size=3), max_size=2
)


@st.composite
def commit_entries(draw: st.DrawFn) -> CommitEntry:
    version = draw(st.integers(1, 3))
    ids = draw(st.none() | state_ids) if version > 1 else None
    sinks = draw(st.none() | st.dictionaries(words, st.dictionaries(words, words, max_size=2), max_size=2))
    return CommitEntry(version, draw(times), ids, sinks if version > 2 else None)


source_files = st.builds(SourceFile, words.map(lambda word: f"file:///{word}"), times, st.integers(0, 100))
sink_files = st.builds(
    SinkFile,
    words.map(lambda word: f"file:///{word}"),
    counts,
    times,
    action=st.sampled_from(["add", "delete"]),
    is_dir=st.booleans(),
    block_replication=counts,
    block_size=counts,
)


@st.composite
def cut_bytes(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    data = draw(whole)
    return data[: draw(st.integers(0, len(data)))]


@st.composite
def flipped_bytes(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    data = bytearray(draw(whole))
    if data:
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data)


def damaged(whole: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Bytes that a reader may meet where it expects ``whole``."""
    return st.one_of(cut_bytes(whole), flipped_bytes(whole), st.binary(max_size=200))


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


@pytest.mark.parametrize("version", VERSIONS)
def test_the_watermark_alone_is_that_of_the_whole_entry(version: str) -> None:
    found = set()
    for case in corpus_cases(version):
        checkpoint = corpus_folder(version, case) / "checkpoint"
        for path in (path for path in checkpoint.glob("offsets/*") if path.name.isdigit()):
            found.add(_same_watermark(path.read_text(), planned_watermark_ms, _of_offsets))
        for path in (path for path in checkpoint.glob("commits/*") if path.name.isdigit()):
            found.add(_same_watermark(path.read_text(), next_watermark_ms, _of_commit))
    assert len(found) > 10


@pytest.mark.parametrize(
    "text", ["v1", "v1\n{}", 'v1\n{"nextBatchWatermarkMs": 7}', 'v3\n{"x":1,"nextBatchWatermarkMs":7}']
)
def test_the_watermark_of_a_commit_that_spark_would_write_otherwise(text: str) -> None:
    _same_watermark(text, next_watermark_ms, _of_commit)


def _of_offsets(data: bytes) -> int:
    return parse_offset_entry(data).watermark_ms


def _of_commit(data: bytes) -> int:
    return parse_commit_entry(data).next_batch_watermark_ms


def _same_watermark(text: str, alone: Callable[[str], int], whole: Callable[[bytes], int]) -> int:
    assert alone(text) == whole(text.encode()), text
    return alone(text)


@given(sink_files | source_files, st.data())
def test_a_line_as_spark_writes_it_is_read_as_any_json(file: Any, data: st.DataObject) -> None:
    sink = isinstance(file, SinkFile)
    parse: Callable[[str], Any] = parse_sink_file if sink else parse_source_file
    line = (render_file_sink_log([file]) if sink else render_file_source_log([file])).decode().split("\n")[1]
    at = data.draw(st.integers(0, len(line)))
    changed = line[:at] + data.draw(st.sampled_from(['"', "0", "\\", "-", "}", "\x00", "é"])) + line[at + 1 :]
    for text in (line, changed):
        # With a space in front it is not as Spark writes it.
        assert _outcome(parse, text) == _outcome(parse, f" {text}"), text


def _outcome(parse: Callable[[str], Any], line: str) -> Any:
    try:
        return parse(line)
    except FormatError as error:
        return error.message


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


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("whole", [b"v1\n{}\n7\n-", b'v2\n{"conf":{}}\na:{"logOffset":1}'])
def test_one_line_break_at_the_end_is_no_line(whole: bytes, end: bytes) -> None:
    """``Source.getLines`` drops it; an editor adds it."""
    assert parse_offset_entry(whole + end) == parse_offset_entry(whole)
    with pytest.raises(FormatError, match="the entry has no offsets"):
        parse_offset_entry(whole + end + end)


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
    with raises_code(FormatError, code):
        parse(data)
