"""What is new in a compacted entry is the same whichever way it is found."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from slackwater.ledger.recording.log_copier import after_recorded, strip_sink_compact

_FILES = st.lists(st.lists(st.integers(0, 12), max_size=3), max_size=5)


def entry_of(files: list[int]) -> str:
    return "\n".join(["v1", *(f'{{"path":"file:///out/part-{number:02}","action":"add"}}' for number in files)])


@given(_FILES, st.lists(st.integers(0, 20), max_size=4))
def test_what_follows_the_recorded_lines_is_what_they_do_not_list(earlier: list[list[int]], own: list[int]) -> None:
    recorded = [entry_of(files) for files in earlier]
    compacted = entry_of([number for files in earlier for number in files] + own)
    found = after_recorded(compacted, recorded)
    listed = {number for files in earlier for number in files}
    assert (found is None) == (not listed.isdisjoint(own))
    assert found in {None, strip_sink_compact(compacted, recorded)}


@given(_FILES, _FILES)
def test_lines_in_another_order_are_compared_one_by_one(earlier: list[list[int]], listed: list[list[int]]) -> None:
    recorded = [entry_of(files) for files in earlier]
    compacted = entry_of([number for files in listed for number in files])
    assert after_recorded(compacted, recorded) in {None, strip_sink_compact(compacted, recorded)}


def test_a_line_that_goes_on_is_another_line() -> None:
    recorded = ["v1\nfile-1"]
    assert after_recorded("v1\nfile-10", recorded) is None
    assert after_recorded("v1\nfile-1", recorded) == "v1"
