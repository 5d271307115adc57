"""The journal survives a kill at any byte, and a damaged one is an error, not a guess."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.apply.journal import JOURNAL, Journal
from slackwater.errors import FormatError

STEPS = [("build-generation", "begun"), ("build-generation", "done"), ("cut-sink", "begun")]


def _write(folder: Path) -> bytes:
    journal = Journal(folder)
    journal.write("build-generation", "begun", 1)
    journal.write("build-generation", "done", 2)
    journal.write("cut-sink", "begun", 3)
    return (folder / JOURNAL).read_bytes()


def test_states_are_read_back(tmp_path: Path) -> None:
    _write(tmp_path)
    journal = Journal(tmp_path)
    assert journal.state("build-generation") == "done"
    assert journal.state("cut-sink") == "begun"
    assert journal.state("switch-generation") is None


@given(cut=st.integers(0, 300))
def test_torn_last_line_was_never_acted_on(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    folder = tmp_path_factory.mktemp("journal")
    whole = _write(folder)
    torn = whole[: min(cut, len(whole))]
    (folder / JOURNAL).write_bytes(torn)
    journal = Journal(folder)
    told = torn.count(b"\n")
    assert journal.state("cut-sink") == ("begun" if told == 3 else None)
    assert journal.state("build-generation") == (None, "begun", "done", "done")[told]


def test_damaged_line_is_an_error(tmp_path: Path) -> None:
    (tmp_path / JOURNAL).write_text("nonsense\n")
    with pytest.raises(FormatError, match="does not read"):
        Journal(tmp_path)
