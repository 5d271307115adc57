"""The journal of an operation that was taken back or refused counts no action as done: apply starts from the first."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.operations.apply.journal import End, Journal


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
