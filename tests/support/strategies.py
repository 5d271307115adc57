"""hypothesis strategies for the logs of a checkpoint: valid entries, whole checkpoints, and bytes that are neither."""

from __future__ import annotations

import json

from hypothesis import strategies as st

from slackwater.core.checkpoint import (
    CommitEntry,
    OffsetEntry,
    OffsetMetadata,
    SinkFile,
    SourceFile,
    SourceOffset,
)

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
    """Entries of all three versions."""
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
    """The beginning of something valid."""
    data = draw(whole)
    return data[: draw(st.integers(0, len(data)))]


@st.composite
def flipped_bytes(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """Something valid with one byte changed."""
    data = bytearray(draw(whole))
    if data:
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data)


def damaged(whole: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Bytes that a reader may meet where it expects ``whole``."""
    return st.one_of(cut_bytes(whole), flipped_bytes(whole), st.binary(max_size=200))
