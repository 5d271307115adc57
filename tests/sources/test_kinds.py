"""What single kinds derive from their offsets."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.checkpoint.listing import read_listing
from slackwater.checkpoint.sources import SourceReader
from slackwater.core.checkpoint import OffsetEntry, SourceOffset
from slackwater.core.errors import FormatError
from slackwater.core.records import BatchRecord, BatchSource
from slackwater.diagnose.checks.common.check import lag_of
from slackwater.sources import SOURCES, kind_named
from slackwater.sources.common.contract import EmptyBase, SourceRange
from slackwater.sources.files import NO_FILES
from slackwater.storage.local import LocalStore
from tests.sources.examples import file_log
from tests.sources.made_up import EXAMPLE, Book
from tests.sources.test_contract import Outside

FILES, KAFKA = kind_named("files"), kind_named("kafka")


def _kafka(start: str | None, end: str | None, initial: str | None = None) -> SourceRange:
    return SourceRange("0", start, end, {} if initial is None else {0: f"\0v1\n{initial}"})


@pytest.mark.parametrize(
    ("start", "end", "rows"),
    [
        ('{"t":{"0":5}}', '{"t":{"0":7,"1":3}}', 5),
        ('{"t":{"0":5},"u":{"0":9}}', '{"t":{"0":7}}', 2),
        ('{"t":{"0":500}}', '{"t":{"0":300}}', 0),
        ('{"t":{"0":5}}', "{}", None),
        ('{"logOffset":5}', '{"t":{"0":7}}', None),
        (None, '{"t":{"0":7}}', None),
    ],
    ids=["new partition", "topic removed", "topic recreated", "no partitions", "another source", "start not recorded"],
)
def test_rows_of_a_topic(start: str | None, end: str, rows: int | None) -> None:
    assert KAFKA.rows(_kafka(start, end)) == rows


def test_offsets_are_counted_by_partition() -> None:
    span = _kafka('{"t":{"0":5,"2":1}}', '{"t":{"0":3,"1":4}}')

    assert KAFKA.counted(span) == {"t-0": -2, "t-1": 4, "t-2": None}
    assert KAFKA.counted(_kafka(None, '{"t":{"0":7}}')) is None


def test_rows_of_the_first_batch_start_at_the_initial_offsets() -> None:
    assert KAFKA.rows(_kafka(None, '{"t":{"0":7}}', initial='{"t":{"0":4}}')) == 3


def test_the_empty_base_of_a_topic_starts_where_the_range_starts() -> None:
    start = '{"t":{"0":5}}'

    assert KAFKA.empty_base(start) == EmptyBase(start, {"0": b'\0v1\n{"t":{"0":5}}'})
    assert KAFKA.empty_base(None) is None
    assert KAFKA.empty_base("{}") is None


@pytest.mark.parametrize(
    ("earliest", "unavailable"),
    [
        ('{"t":{"0":5,"1":0}}', ()),
        ('{"t":{"0":8,"1":0}}', ("t-0: offsets 5 to 7; the oldest that is left is 8",)),
        ('{"t":{"0":90,"1":0}}', ("t-0: offsets 5 to 9; the oldest that is left is 90",)),
        ('{"t":{"0":5,"1":2}}', ("t-1: offsets 0 to 1; the oldest that is left is 2",)),
        ('{"t":{"1":0}}', ("t-0: offsets 5 to 9; the partition no longer exists",)),
        ('{"t":{"0":5,"1":0,"2":7}}', ()),
        (
            "{}",
            (
                "t-0: offsets 5 to 9; the partition no longer exists",
                "t-1: offsets 0 to 2; the partition no longer exists",
            ),
        ),
        (None, ()),
    ],
    ids=["kept", "some", "all", "new partition", "partition deleted", "another partition", "topic deleted", "unknown"],
)
def test_what_a_topic_no_longer_has(earliest: str | None, unavailable: tuple[str, ...]) -> None:
    span = _kafka('{"t":{"0":5}}', '{"t":{"0":10,"1":3}}')

    assert KAFKA.unavailable(span, Outside(oldest=earliest)) == unavailable


@pytest.mark.parametrize(
    ("earliest", "latest", "unavailable"),
    [
        ('{"t":{"0":0,"1":0}}', '{"t":{"0":10,"1":3}}', ()),
        (
            '{"t":{"0":0,"1":0}}',
            '{"t":{"0":2,"1":3}}',
            ("t-0: offsets 5 to 9; the partition ends at 2: the topic was created again or truncated",),
        ),
        (
            '{"t":{"0":8,"1":0}}',
            '{"t":{"0":8,"1":1}}',
            (
                "t-0: offsets 8 to 9; the partition ends at 8: the topic was created again or truncated",
                "t-1: offsets 1 to 2; the partition ends at 1: the topic was created again or truncated",
            ),
        ),
        ('{"t":{"0":0}}', '{"t":{"0":10}}', ("t-1: offsets 0 to 2; the partition no longer exists",)),
        ('{"t":{"0":8,"1":0}}', None, ("t-0: offsets 5 to 7; the oldest that is left is 8",)),
    ],
    ids=["kept", "before the range", "in the range", "partition deleted", "end unknown"],
)
def test_what_a_topic_that_ends_earlier_no_longer_has(
    earliest: str, latest: str | None, unavailable: tuple[str, ...]
) -> None:
    span = _kafka('{"t":{"0":5}}', '{"t":{"0":10,"1":3}}')

    assert KAFKA.unavailable(span, Outside(oldest=earliest, newest=latest)) == unavailable


def test_a_partition_without_rows_in_the_range_is_not_missed() -> None:
    span = _kafka('{"t":{"0":5}}', '{"t":{"0":5}}')

    assert KAFKA.unavailable(span, Outside(oldest='{"t":{"0":90}}')) == ()
    assert KAFKA.unavailable(span, Outside(oldest='{"t":{"0":0}}', newest='{"t":{"0":3}}')) == ()


def test_positions_of_a_topic_for_people() -> None:
    assert KAFKA.describe('{"t":{"0":5,"1":7},"u":{"0":1}}') == "t-0: 5, t-1: 7, u-0: 1"


def test_entries_that_are_not_recorded_are_named_as_ranges() -> None:
    log = {entry: line for entry, line in file_log(12).items() if entry not in {0, 3, 4, 5, 9}}

    def unrecorded(start: str | None, end: str) -> tuple[str, ...]:
        return FILES.unrecorded(SourceRange("0", start, end, log))

    assert unrecorded(None, '{"logOffset":11}') == ("0", "3..5", "9")
    assert unrecorded('{"logOffset":3}', '{"logOffset":8}') == ("4..5",)
    assert unrecorded('{"logOffset":5}', '{"logOffset":9000000000000000000}') == ("9", "12..9000000000000000000")
    assert unrecorded(NO_FILES, NO_FILES) == ()


def test_a_base_of_a_file_source_precedes_all_files() -> None:
    assert FILES.empty_base('{"logOffset":7}') == EmptyBase('{"logOffset":-1}')
    assert FILES.log_until('{"logOffset":-1}', file_log(3), 10) == {}
    assert FILES.cut_entry('{"logOffset":7}') == 7


def test_two_compactions_are_written_where_there_were_two() -> None:
    assert sorted(FILES.log_until('{"logOffset":21}', file_log(25), 10)) == ["19.compact", "20", "21", "9.compact"]


def test_malformed_entries_are_copied_but_not_taken_for_files() -> None:
    log = {0: "v1\n{\udcff"}

    assert FILES.log_until('{"logOffset":0}', log, 10) == {"0": b"v1\n{\xff"}
    with pytest.raises(FormatError):
        FILES.files(SourceRange("0", None, '{"logOffset":0}', log))
    with pytest.raises(FormatError):
        KAFKA.initial({0: "\0v1\n{\udcff"})


def test_callers_find_a_registered_kind(tmp_path: Path) -> None:
    (log := tmp_path / "sources" / "0").mkdir(parents=True)
    (log / "0").write_text(EXAMPLE.log[0])
    store = LocalStore(tmp_path)
    source = BatchSource("a book", None, EXAMPLE.first, EXAMPLE.last, 0)
    entry = OffsetEntry(1, None, (SourceOffset("0", EXAMPLE.first),))

    assert lag_of(BatchRecord("p/s", 1, 0, timestamp_ms=0, input_rows=0, sources=(source,))) == EXAMPLE.rows
    (line,) = SourceReader(store, read_listing(store)).sources(entry)
    assert (line.kind, line.initial) == ("book", '{"page":1}')


@pytest.mark.parametrize("name", ["book", "files"])
def test_a_name_is_registered_once(name: str) -> None:
    with pytest.raises(ValueError, match=f"slackwater.sources has a '{name}' already"):
        SOURCES.register(name, Book())


def test_a_registered_kind_can_be_removed() -> None:
    SOURCES.register("atlas", Book())
    SOURCES.unregister("atlas")

    assert "atlas" not in SOURCES.names()
