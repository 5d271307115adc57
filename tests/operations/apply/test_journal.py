"""The journal survives a kill at any byte, and a damaged one is an error, not a guess."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.core.errors import FormatError
from slackwater.operations.apply.journal import JOURNAL, End, Journal, State
from tests.support.errors import raises_code

STEPS: list[tuple[int, str, State]] = [
    (0, "build-generation", "started"),
    (0, "build-generation", "done"),
    (1, "cut-sink", "started"),
    (2, "cut-sink", "started"),
]


def _write(folder: Path) -> bytes:
    journal = Journal(folder)
    for at_ms, (index, kind, state) in enumerate(STEPS, start=1):
        journal.write(index, kind, state, at_ms, {"layout": {"operators": []}} if state == "done" else None)
    return (folder / JOURNAL).read_bytes()


def test_states_and_facts_are_read_back(tmp_path: Path) -> None:
    _write(tmp_path)
    journal = Journal(tmp_path)
    assert journal.state(0) == "done"
    assert journal.state(1) == "started"
    assert journal.state(3) is None
    assert journal.facts(0) == {"layout": {"operators": []}}
    assert journal.facts(1) == {}
    assert (journal.started_ms, journal.end, journal.in_progress) == (1, None, True)


def test_two_actions_of_one_kind_are_kept_apart(tmp_path: Path) -> None:
    _write(tmp_path)
    Journal(tmp_path).write(1, "cut-sink", "done", 5)
    journal = Journal(tmp_path)
    assert (journal.state(1), journal.state(2)) == ("done", "started")


def test_an_action_that_was_undone_counts_as_not_started(tmp_path: Path) -> None:
    _write(tmp_path)
    Journal(tmp_path).write(1, "restore-sink", "undoing", 5)
    assert Journal(tmp_path).state(1) == "undoing"
    Journal(tmp_path).write(1, "restore-sink", "undone", 6)
    assert Journal(tmp_path).state(1) is None


def test_an_end_holds_until_the_next_step(tmp_path: Path) -> None:
    _write(tmp_path)
    Journal(tmp_path).write_end("undone", 5)
    journal = Journal(tmp_path)
    assert (journal.end, journal.in_progress) == ("undone", False)
    journal.write(0, "build-generation", "started", 6)
    assert Journal(tmp_path).in_progress


@given(cut=st.integers(0, 600))
def test_a_torn_last_line_was_never_acted_on(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    folder = tmp_path_factory.mktemp("journal")
    whole = _write(folder)
    torn = whole[: min(cut, len(whole))]
    (folder / JOURNAL).write_bytes(torn)
    journal = Journal(folder)
    lines = torn.count(b"\n")
    assert journal.state(1) == ("started" if lines >= 3 else None)
    assert journal.state(0) == (None, "started", "done", "done", "done")[lines]
    # What is written next takes the place of the torn line.
    journal.write(3, "switch-generation", "started", 9)
    assert Journal(folder).state(3) == "started"
    assert (folder / JOURNAL).read_bytes().startswith(torn[: torn.rfind(b"\n") + 1])


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "[]",
        "7",
        '{"at_ms": 1}',
        '{"index": 0, "state": "half", "at_ms": 1}',
        '{"index": "x", "state": "done", "at_ms": 1}',
        '{"end": "perhaps", "at_ms": 1}',
    ],
)
def test_a_damaged_line_is_an_error(tmp_path: Path, line: str) -> None:
    (tmp_path / JOURNAL).write_text(line + "\n")
    with raises_code(FormatError, "journal-damaged", match="cannot be parsed"):
        Journal(tmp_path)


# The journal of an operation that was taken back or refused counts no action as done: apply starts from the first.


def _interrupted_undo(folder: Path) -> Journal:
    """Two actions were done; the first has an inverse, which was started."""
    journal = Journal(folder)
    for at_ms, (index, kind) in enumerate([(0, "build-generation"), (1, "replay-batches")]):
        journal.write(index, kind, "started", at_ms)
        journal.write(index, kind, "done", at_ms, {"layout": {}})
    journal.write(0, "remove-generation", "undoing", 5)
    return journal


def test_an_interrupted_undo_is_seen(tmp_path: Path) -> None:
    _interrupted_undo(tmp_path)
    journal = Journal(tmp_path)
    assert journal.being_undone
    assert journal.in_progress


@pytest.mark.parametrize("end", ["undone", "refused"])
def test_no_action_is_done_after_the_end(end: End, tmp_path: Path) -> None:
    written = _interrupted_undo(tmp_path)
    written.write(0, "remove-generation", "undone", 6)
    written.write_end(end, 7)
    for journal in (written, Journal(tmp_path)):
        assert [journal.state(index) for index in (0, 1)] == [None, None]
        assert not journal.facts(0)
        assert not journal.being_undone
        assert not journal.in_progress
        assert journal.end == end


def test_an_applied_operation_keeps_its_states(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.write(0, "build-generation", "done", 1)
    journal.write_end("applied", 2)
    assert Journal(tmp_path).state(0) == "done"
