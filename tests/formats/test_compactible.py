"""Compacted logs: names, intervals, and laying out a log that Spark reads as exactly these entries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.formats.compactible import derive_interval, lay_out, parse_entry_name
from tests.support.spark_logs import entry_name


@pytest.mark.parametrize(
    ("names", "default", "interval"),
    [
        ([], 10, 10),
        (["0", "1"], 3, 3),
        (["2.compact", "5.compact", "6"], 10, 3),
        (["9.compact", "19.compact", "2.compact"], 3, 10),
        (["4.compact"], 10, 5),
        (["9.compact"], 10, 10),
        (["19.compact"], 10, 20),
        (["29.compact"], 10, 10),
        (["11.compact"], 5, 6),
        (["22.compact"], 10, 23),
        (["24.compact", ".24.compact.crc", "x.compact"], 4, 5),
    ],
)
def test_intervals_are_derived_as_spark_does(names: list[str], default: int, interval: int) -> None:
    assert derive_interval(names, default) == interval


def test_names() -> None:
    assert [entry_name(entry, 3) for entry in range(4)] == ["0", "1", "2.compact", "3"]
    assert parse_entry_name("12.compact") == (12, True)
    assert parse_entry_name("12") == (12, False)
    assert [parse_entry_name(name) for name in ("x", ".1.crc", "", "1.compact.crc", "-1", "²")] == [None] * 6


def read_as_spark(files: dict[str, str], last: int, interval: int) -> list[str]:
    """All entries, the way ``CompactibleFileStreamLog.allFiles`` finds them: only by the names it computes."""
    newest = (last + 1) // interval * interval - 1
    needed = range(max(newest, 0), last + 1)
    return [line for entry in needed for line in files[entry_name(entry, interval)].split("\n")[1:]]


@given(st.integers(0, 60), st.integers(1, 12), st.data())
def test_a_log_laid_out_is_read_back(last: int, interval: int, data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(0, 2), min_size=last + 1, max_size=last + 1))
    entries = {entry: [f"{entry}-{index}" for index in range(count)] for entry, count in enumerate(counts)}
    files = lay_out(entries, last, interval)
    everything = [line for entry in range(last + 1) for line in entries[entry]]
    assert read_as_spark(files, last, interval) == everything
    compacted = [name for name in files if name.endswith(".compact")]
    if last + 1 >= 2 * interval:
        assert len(compacted) == 2
        assert derive_interval(files, 10) == interval
    elif compacted:
        # With one compaction Spark may take a divisor; it must still find every entry.
        derived = derive_interval(files, 10)
        assert read_as_spark(files, last, derived) == everything


def test_entries_after_the_last_one_are_left_out() -> None:
    assert lay_out({0: ["a"], 1: ["b"], 2: ["c"]}, 1, 10) == {"0": "v1\na", "1": "v1\nb"}


def test_an_entry_without_lines_is_there() -> None:
    assert lay_out({}, 0, 10) == {"0": "v1"}


def test_nothing() -> None:
    assert lay_out({}, -1, 10) == {}
