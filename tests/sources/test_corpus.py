"""Kinds, rows and logs of real checkpoints, against what Spark itself reported of their sources."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slackwater.checkpoint.listing import read_listing
from slackwater.checkpoint.sources import SourceReader
from slackwater.core.checkpoint import OffsetEntry, SourceOffset
from slackwater.core.errors import FormatError
from slackwater.core.records import BatchRecord, BatchSource
from slackwater.diagnose.checks.common.check import lag_of
from slackwater.formats.compactible import derive_interval, parse_entry_name
from slackwater.formats.text_log import parse_offset_entry
from slackwater.ledger.recording.log_copier import decode, split_source_compact
from slackwater.sources import SOURCES, UNKNOWN, kind_named, kind_of, kinds
from slackwater.sources.common.contract import EmptyBase, SourceRange, decoded
from slackwater.sources.files import NO_FILES
from slackwater.storage.local import LocalStore
from tests.checkpoint.cases import CASES, NAMES, checkpoint_folder, description
from tests.sources.examples import EXAMPLES, file_log
from tests.sources.made_up import EXAMPLE, Book
from tests.sources.test_contract import Outside

_KINDS = {
    "FileStreamSource": {"files"},
    "RateStreamV2": {"rate"},
    "RatePerMicroBatchStream": {"rate-micro-batch"},
    # Outside real-time mode it writes a number, in real-time mode a number for each partition.
    "MemoryStream": {"number", "unknown"},
    "PythonMicroBatchStream": {"unknown"},
}
"""What may be found for a source that progress events describe so."""


def _progress(version: str, case: str) -> list[dict[str, Any]]:
    return [progress for run in description(version, case).get("runs", []) for progress in run.get("progress", [])]


def _allowed(source: dict[str, Any]) -> set[str]:
    return next(kinds for name, kinds in _KINDS.items() if name in source["description"])


def _offset(reported: Any) -> str | None:
    """An offset of a progress event, which PySpark 4 shows as Python values."""
    if isinstance(reported, dict):
        return json.dumps(reported)
    return None if reported in {None, "None", "null"} else str(reported)


def _entries(checkpoint: Path) -> dict[int, OffsetEntry]:
    """The entries of the offset log that can be parsed; some cases are damaged on purpose."""
    found = {}
    for file in (checkpoint / "offsets").glob("[0-9]*"):
        try:
            found[int(file.name)] = parse_offset_entry(file.read_bytes())
        except FormatError:
            continue
    return found


def _log(folder: Path) -> dict[int, str]:
    """A source's own log as the ledger records it."""
    log: dict[int, str] = {}
    for file in sorted(folder.glob("[0-9]*"), key=lambda file: file.name.endswith(".compact")):
        parsed = parse_entry_name(file.name)
        assert parsed is not None
        content = decode(file.read_bytes())
        log |= split_source_compact(content, parsed[0]) if parsed[1] else {parsed[0]: content}
    return log


@pytest.mark.parametrize(("version", "case"), CASES, ids=NAMES)
def test_kinds_are_those_that_spark_reports(version: str, case: str) -> None:
    checkpoint, entries = checkpoint_folder(version, case), _entries(checkpoint_folder(version, case))
    for progress in _progress(version, case):
        entry = entries.get(progress["batchId"])
        if entry is None or len(entry.offsets) != len(progress["sources"]):
            continue
        for source, offset in zip(progress["sources"], entry.offsets, strict=True):
            found = kind_of(offset.text, _log(checkpoint / "sources" / offset.source))
            assert found.kind in _allowed(source) | ({"unknown"} if offset.text is None else set()), offset


@pytest.mark.parametrize(("version", "case"), CASES, ids=NAMES)
def test_rows_by_offsets_are_the_rows_that_spark_read(version: str, case: str) -> None:
    for progress in _progress(version, case):
        for source in progress["sources"]:
            span = SourceRange("0", _offset(source["startOffset"]), _offset(source["endOffset"]))
            rows = kind_of(span.end, {}).rows(span)
            assert rows in {None, source["numInputRows"]}, span


@pytest.mark.parametrize(("version", "case"), CASES, ids=NAMES)
def test_logs_of_file_sources_are_written_as_spark_wrote_them(version: str, case: str) -> None:
    for folder in (checkpoint_folder(version, case) / "sources").glob("*"):
        log = _log(folder)
        kind = kind_of(None, log)
        if kind is not kind_named("files") or set(log) != set(range(len(log))):
            continue
        on_disk = {file.name: file.read_bytes() for file in folder.glob("[0-9]*")}
        written = kind.log_until(f'{{"logOffset":{max(log)}}}', log, derive_interval(on_disk))
        both = written.keys() & on_disk.keys()

        assert both
        assert {name: written[name] for name in both} == {name: on_disk[name] for name in both}


def test_the_corpus_has_rate_and_file_sources() -> None:
    kinds = {
        kind_of(offset.text, _log(checkpoint_folder(version, case) / "sources" / offset.source)).kind
        for version, case in CASES
        for entry in _entries(checkpoint_folder(version, case)).values()
        for offset in entry.offsets
    }

    assert {"files", "rate"} <= kinds


# Which kind owns an offset: at most one, whatever the string and the log are.


_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5))
_FIELDS = st.sampled_from(
    (
        *("logOffset", "offset", "timestamp", "reservoirId", "reservoirVersion", "snapshot_id", "position"),
        *("streamName", "metadata", "shards", "value", "runTimeMs", "page", "0", "1", "00", "\u0663", "9" * 5000),
    )
)
_JSON = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(_FIELDS | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=8,
)
_OFFSETS = st.one_of(
    st.none(), st.text(), _JSON.map(json.dumps), st.sampled_from([offset for one in EXAMPLES for offset in one.offsets])
)
_ENTRIES = st.one_of(
    st.text(max_size=20),
    st.sampled_from([entry for one in (*EXAMPLES, EXAMPLE) for entry in one.log.values()]),
    st.sampled_from(["\0v1\n5", '\0v1\n{"path":"a"}', "v1", "v1\n", "5"]),
)
_LOGS = st.dictionaries(st.integers(0, 3), _ENTRIES, max_size=3)


@given(offset=_OFFSETS, log=_LOGS)
@example(offset="[" * 200_000, log={})
@example(offset='{"a":' * 200_000, log={})
@example(offset="9" * 5_000, log={})
@example(offset="-1e999", log={})
@example(offset='{"t":{"' + "9" * 5_000 + '":1}}', log={})
@example(offset='{"logOffset":' + "9" * 4_000 + "}", log={})
@example(offset='{"t":{"0":' + "9" * 4_000 + "}}", log={})
@example(offset="\ud800", log={0: "\udcff"})
def test_at_most_one_kind_owns_an_offset(offset: str | None, log: dict[int, str]) -> None:
    owners = [kind for kind in kinds() if kind is not UNKNOWN and kind.owns(decoded(offset), log)]

    assert len(owners) <= 1, [kind.kind for kind in owners]
    assert kind_of(offset, log) is (owners[0] if owners else UNKNOWN)


@pytest.mark.parametrize(
    "offset",
    [
        "{}",
        '{"t":{}}',
        '{"t":{"0":1},"u":{}}',
        '{"t":{"0":"1"}}',
        '{"t":{"0":true}}',
        '{"t":{"0":1.0}}',
        '{"t":{"0":-2}}',
        '{"t":{"00":1}}',
        '{"t":{"first":1}}',
        '{"t":[1]}',
        '{"0":1}',
        '{"logOffset":"3"}',
        '{"logOffset":true}',
        '{"logOffset":3,"more":1}',
        '{"logOffset":-2}',
        '{"logOffset":9223372036854775808}',
        '{"offset":1}',
        '{"offset":"1","timestamp":2}',
        '{"0":{"value":1}}',
        '{"snapshot_id":1}',
        '{"reservoirId":1,"reservoirVersion":2}',
        '{"streamName":{"0":"x"}}',
        "null",
        "true",
        "1.5",
        "NaN",
        '"text"',
        "not JSON",
        "{'logOffset': 3}",
        "",
    ],
)
def test_what_is_nearly_an_offset_is_unknown(offset: str) -> None:
    assert kind_of(offset, {}) is UNKNOWN


@pytest.mark.parametrize(
    ("log", "kind"),
    [({}, "number"), ({0: "v1\n1704067200000"}, "rate"), (file_log(3), "files"), ({0: "v1\nanything else"}, "number")],
    ids=["no log", "creation time", "files", "another log"],
)
def test_the_log_decides_on_bare_numbers(log: dict[int, Any], kind: str) -> None:
    assert kind_of("2", log).kind == kind


# What single kinds derive from their offsets.


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
