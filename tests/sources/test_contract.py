"""The contract that every kind of source keeps, a kind that is made up here included."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.formats.compactible import parse_entry_name
from slackwater.ledger.recording.log_copier import decode, split_source_compact
from slackwater.sources import UNKNOWN, kind_named, kind_of, kinds
from slackwater.sources.common.contract import Reach, SourceEntries, SourceRange
from slackwater.sources.common.source import Source
from tests.sources.examples import EXAMPLES, Example
from tests.sources.made_up import EXAMPLE

ALL = (*EXAMPLES, EXAMPLE)
every_example = pytest.mark.parametrize("example", ALL, ids=str)
every_interval = pytest.mark.parametrize("interval", [2, 7, 10, 100])


@dataclass(frozen=True)
class Outside(Reach):
    """What the outside still has."""

    files: bool = True
    oldest: str | None = None
    newest: str | None = None

    def exists(self, path: str) -> bool:
        return self.files and path != ""

    def modified_ms(self, path: str) -> int | None:
        return None if self.exists(path) else 0

    def all_modified_ms(self, paths: Iterable[str]) -> Mapping[str, int]:
        return {path: 0 for path in paths if not self.exists(path)}

    def size(self, path: str) -> int | None:
        return 0 if self.exists(path) else None

    def earliest(self, source: str) -> str | None:
        return self.oldest if source == "0" else None

    def latest(self, source: str) -> str | None:
        return self.newest if source == "0" else None


def _kind(example: Example) -> Source:
    return kind_named(example.kind)


def _span(example: Example, start: str | None, end: str | None, log: SourceEntries | None = None) -> SourceRange:
    return SourceRange("0", start, end, example.log if log is None else log)


def _read_back(files: Mapping[str, bytes]) -> dict[int, str]:
    """The entries in a folder of files, as the ledger records them."""
    entries: dict[int, str] = {}
    for name, data in files.items():
        parsed = parse_entry_name(name)
        assert parsed is not None, name
        number, compacted = parsed
        entries |= split_source_compact(decode(data), number) if compacted else {number: decode(data)}
    return entries


def test_every_registered_kind_has_an_example() -> None:
    assert {example.kind for example in ALL} == {kind.kind for kind in kinds()}
    assert len({kind.kind for kind in kinds()}) == len(kinds())


@every_example
def test_exactly_one_kind_owns_an_offset(example: Example) -> None:
    for offset in example.offsets:
        assert kind_of(offset, example.log) is _kind(example), offset


@every_example
def test_the_log_shows_the_kind_where_there_is_no_offset_yet(example: Example) -> None:
    assert kind_of(None, example.log) is (_kind(example) if example.log else UNKNOWN)


@every_example
def test_an_empty_base_reads_nothing(example: Example) -> None:
    kind = _kind(example)
    for start in example.offsets:
        base = kind.empty_base(start)
        if base is None:
            continue
        log = {**example.log, **_read_back(base.log)}
        empty = _span(example, None, base.end, log)
        assert kind_of(base.end, log) is kind
        assert kind.rows(empty) in {0, None}
        assert kind.files(empty) == ()
        assert kind.unrecorded(empty) == ()


@every_example
@every_interval
def test_a_log_that_is_written_out_reads_the_same(example: Example, interval: int) -> None:
    kind = _kind(example)
    for end in example.offsets:
        written = _read_back(kind.log_until(end, example.log, interval))
        cut = kind.cut_entry(end)
        kept = {entry: line for entry, line in example.log.items() if cut is None or entry <= cut}
        assert written == kept
        assert kind_of(end, written) is kind
        assert kind.initial(written) == kind.initial(example.log)
        assert kind.unrecorded(_span(example, None, end, written)) == ()
        assert kind.files(_span(example, None, end, written)) == kind.files(_span(example, None, end))


@every_example
def test_a_log_without_an_offset_holds_what_precedes_batch_0(example: Example) -> None:
    kind = _kind(example)
    written = _read_back(kind.log_until(None, example.log, 10))

    assert written == ({} if kind.cut_entry(None) == -1 else example.log)


@every_example
def test_rows_add_up(example: Example) -> None:
    kind = _kind(example)
    first, middle, last = example.offsets
    parts = [kind.rows(_span(example, start, end)) for start, end in ((first, middle), (middle, last))]

    assert kind.rows(_span(example, first, last)) == example.rows
    assert parts == [None, None] if example.rows is None else sum(part or 0 for part in parts) == example.rows
    assert kind.rows(_span(example, middle, middle)) in {0, None}
    assert kind.rows(_span(example, first, None)) is None


@every_example
def test_parts_are_counted_in_both_directions(example: Example) -> None:
    kind = _kind(example)
    there, back, nowhere = (
        kind.counted(_span(example, start, end))
        for start, end in ((example.first, example.last), (example.last, example.first), (example.last, example.last))
    )

    assert there is None or any((count or 0) > 0 for count in there.values())
    assert back is None or not any((count or 0) > 0 for count in back.values())
    assert nowhere is None or set(nowhere.values()) == {0}


@every_example
def test_rows_from_the_initial_position_are_those_from_the_beginning(example: Example) -> None:
    kind = _kind(example)
    initial = kind.initial(example.log)

    if initial is not None:
        assert kind_of(initial, example.log) is kind
        assert kind.rows(_span(example, None, example.last)) == kind.rows(_span(example, initial, example.last))
        assert kind.files(_span(example, None, example.last)) == kind.files(_span(example, initial, example.last))


@every_example
def test_files_and_missing_entries(example: Example) -> None:
    kind = _kind(example)
    first, middle, last = example.offsets
    files = kind.files(_span(example, first, last))

    assert files == (*kind.files(_span(example, first, middle)), *kind.files(_span(example, middle, last)))
    assert kind.unrecorded(_span(example, first, last)) == ()
    assert kind.files(_span(example, first, last, {})) == ()
    if files:
        assert kind.unrecorded(_span(example, first, last, {})) != ()


@every_example
def test_what_no_longer_exists(example: Example) -> None:
    kind = _kind(example)
    first, _, last = example.offsets
    span = _span(example, first, last)

    assert kind.unavailable(span, Outside()) == ()
    assert kind.unavailable(span, Outside(oldest=example.oldest or first)) == ()
    assert kind.unavailable(span, Outside(files=False)) == tuple(file.path for file in kind.files(span))


@every_example
def test_a_position_is_described_on_one_line(example: Example) -> None:
    described = [_kind(example).describe(offset) for offset in (None, *example.offsets)]

    assert len(set(described)) == len(described)
    assert all(line and "\n" not in line for line in described)


@given(
    example=st.sampled_from(ALL),
    foreign=st.one_of(st.text(), st.sampled_from([offset for other in ALL for offset in other.offsets])),
)
def test_an_offset_of_another_kind_raises_nothing(example: Example, foreign: str) -> None:
    kind = _kind(example)
    for span in (_span(example, foreign, example.last), _span(example, example.first, foreign)):
        kind.empty_base(foreign)
        kind.rows(span)
        kind.counted(span)
        kind.unrecorded(span)
        kind.files(span)
        kind.unavailable(span, Outside(oldest=foreign, newest=foreign))
        kind.describe(foreign)
        kind.cut_entry(foreign)
