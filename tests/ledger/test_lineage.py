"""Which lines count, against a simple model: random histories of runs, rebuilds, resets and undos."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slackwater.core.records import GenerationRecord, LogLine
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.lineage import contributions
from tests.support.ledgers import stream_record

_BATCH_LOG = "offsets"
_SOURCE_LOG = "sources/0"


@dataclass
class Past:
    """A stream's logs as seen from one generation."""

    batches: dict[int, str] = field(default_factory=dict)
    files: dict[int, str] = field(default_factory=dict)

    def cut(self, batch: int, file: int) -> Past:
        return Past(_until(self.batches, batch), _until(self.files, file))


def _until(log: dict[int, str], last: int) -> dict[int, str]:
    return {entry: text for entry, text in log.items() if entry <= last}


@dataclass
class History:
    """A stream that is really recorded in a ledger, and the model next to it."""

    ledger: Ledger
    stream: str
    pasts: dict[int, Past] = field(default_factory=lambda: {1: Past()})
    in_use: int = 1
    texts: Iterator[str] = field(default_factory=lambda: (f"v1\ntext {number}" for number in itertools.count()))

    def run(self, batches: int, files: int) -> None:
        past = self.pasts[self.in_use]
        self._record(_BATCH_LOG, past.batches, range(_next(past.batches), _next(past.batches) + batches))
        self._record(_SOURCE_LOG, past.files, range(_next(past.files), _next(past.files) + files))

    def rebuild(self, at: int, redone: int, cut: int) -> None:
        """A new generation from the one in use: its own checkpoint repeats the last batches before its base."""
        old = self.pasts[self.in_use]
        at, cut = min(at, _next(old.batches) - 1), min(cut, _next(old.files) - 1)
        number = max(self.pasts) + 1
        self._add(GenerationRecord(self.stream, number, "", based_at=at, parent=self.in_use, source_cut={"0": cut}))
        self.pasts[number] = old.cut(at, cut)
        self.switch(number)
        self._record(_BATCH_LOG, self.pasts[number].batches, range(max(at - redone + 1, 0), at + 1))

    def reset(self) -> None:
        number = max(self.pasts) + 1
        self._add(GenerationRecord(self.stream, number, "", parent=self.in_use))
        self.pasts[number] = Past()
        self.switch(number)

    def undo(self, number: int) -> None:
        self.switch((number - 1) % len(self.pasts) + 1)

    def switch(self, number: int) -> None:
        self.in_use = number
        self.ledger.set_current_generation(self.stream, number)

    def _add(self, generation: GenerationRecord) -> None:
        self.ledger.add_generation(generation)

    def _record(self, log: str, past: dict[int, str], entries: range) -> None:
        texts = {entry: next(self.texts) for entry in entries}
        past.update(texts)
        self.ledger.record_lines(LogLine(self.stream, self.in_use, log, *item) for item in texts.items())


def _next(log: dict[int, str]) -> int:
    return max(log, default=-1) + 1


_steps = st.lists(
    st.one_of(
        st.tuples(st.just("run"), st.integers(0, 4), st.integers(0, 4)),
        st.tuples(st.just("rebuild"), st.integers(-1, 8), st.integers(0, 3), st.integers(-1, 8)),
        st.tuples(st.just("reset")),
        st.tuples(st.just("undo"), st.integers(1, 6)),
    ),
    max_size=9,
)
_stream_numbers = itertools.count()


@pytest.fixture(scope="module")
def module_ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    path: Path = tmp_path_factory.mktemp("ancestry") / "ledger.db"
    with Ledger.open(path, create=True) as ledger:
        yield ledger


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=_steps)
def test_a_discarded_line_never_comes_back_and_no_other_is_lost(
    module_ledger: Ledger, steps: list[tuple[str, int]]
) -> None:
    record = stream_record(f"history{next(_stream_numbers)}")
    module_ledger.register_stream(record)
    module_ledger.add_generation(GenerationRecord(record.full_name, 1, ""))
    history = History(module_ledger, record.full_name)
    for step, *arguments in steps:
        getattr(history, step)(*arguments)
    for generation, past in history.pasts.items():
        assert _texts(module_ledger, record.full_name, _BATCH_LOG, generation) == past.batches
        assert _texts(module_ledger, record.full_name, _SOURCE_LOG, generation) == past.files
    assert _texts(module_ledger, record.full_name, _BATCH_LOG, None) == history.pasts[history.in_use].batches
    assert module_ledger.entries(record.full_name, _SOURCE_LOG) == set(history.pasts[history.in_use].files)


def _texts(ledger: Ledger, stream: str, log: str, generation: int | None) -> dict[int, str]:
    return ledger.lines(stream, log, generation=generation)


def test_a_generation_without_a_named_parent_follows_the_one_numbered_before() -> None:
    lineage = contributions([_generation(1), _generation(2, based_at=10), _generation(3, based_at=12)], 3)
    assert [(share.generation, share.last_entry("offsets")) for share in lineage] == [(3, None), (2, 12), (1, 10)]


def test_an_older_generation_is_cut_at_the_lowest_base_of_all_younger_ones() -> None:
    lineage = contributions([_generation(1), _generation(2, based_at=10), _generation(3, based_at=4)], 3)
    assert [(share.generation, share.last_entry("sink")) for share in lineage] == [(3, None), (2, 4), (1, 4)]


def test_the_query_id_is_inherited_whatever_the_base() -> None:
    lineage = contributions([_generation(1), _generation(2, based_at=-1)], 2)
    assert [(share.generation, share.last_entry("metadata")) for share in lineage] == [(2, None), (1, None)]


def test_a_source_without_a_cut_inherits_all_entries() -> None:
    cut = GenerationRecord("weather/hourly", 2, "", based_at=10, source_cut={"0": 5})
    _, parent = contributions([_generation(1), cut], 2)
    assert [parent.last_entry(f"sources/{source}") for source in ("0", "1")] == [5, None]


def test_a_reset_inherits_nothing() -> None:
    assert [one.generation for one in contributions([_generation(1), _generation(2)], 2)] == [2]


@pytest.mark.parametrize("parent", [2, 3])
def test_a_parent_that_is_not_older_ends_the_lineage(parent: int) -> None:
    known = [_generation(1), GenerationRecord("s", 2, "", based_at=4, parent=parent), _generation(3, based_at=4)]
    assert [one.generation for one in contributions(known, 2)] == [2]


def test_a_generation_that_is_not_known_contributes_nothing() -> None:
    assert contributions([_generation(1)], 2) == ()


def _generation(number: int, based_at: int | None = None) -> GenerationRecord:
    return GenerationRecord("weather/hourly", number, "", based_at=based_at)
