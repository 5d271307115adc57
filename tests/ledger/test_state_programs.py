from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from slackwater.core.program import MOST, entries_until, made_by, program_of_batch, with_started
from slackwater.ledger.home import Home, streams_of
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.stream_files import restore_lost, write_stream_file_of
from tests.support.ledgers import STREAM

OLD, NEW, NEWER = {"keys": "old"}, {"keys": "new"}, {"keys": "newer"}


def test_the_program_of_a_batch_is_the_newest_that_was_started_before_it() -> None:
    entries = with_started(with_started(None, OLD, -1), NEW, 4)

    assert [program_of_batch(entries, batch) for batch in (-1, 0, 4, 5, 90)] == [None, OLD, OLD, NEW, NEW]


def test_a_program_that_committed_nothing_made_nothing() -> None:
    entries = with_started(with_started(None, OLD, -1), NEW, 4)

    assert program_of_batch(entries, 4) == OLD
    assert with_started(entries, OLD, 4) == made_by(OLD)
    assert with_started(entries, NEWER, 4) == [*made_by(OLD), {"after": 4, "program": NEWER}]


def test_the_same_program_again_adds_nothing() -> None:
    entries = with_started(made_by(OLD), OLD, 7)

    assert entries == made_by(OLD)


def test_batches_of_an_earlier_version_have_no_program() -> None:
    entries = with_started(None, NEW, 7)

    assert (program_of_batch(entries, 7), program_of_batch(entries, 8)) == (None, NEW)


def test_copied_state_inherits_the_programs_up_to_its_batch() -> None:
    entries = with_started(with_started(None, OLD, -1), NEW, 4)

    assert entries_until(entries, 4) == made_by(OLD)


def test_only_the_newest_programs_are_kept() -> None:
    entries: Sequence[Mapping[str, object]] = []
    for batch in range(3 * MOST):
        entries = with_started(entries, {"version": batch}, batch)

    assert len(entries) == MOST


def test_programs_and_accepted_changes_are_recorded(ledger: Ledger) -> None:
    programs = with_started(made_by(OLD), NEW, 3)
    ledger.update_generation(STREAM, 1, programs=programs)
    run = ledger.begin_run(STREAM, 1, "4.1.3", program="ab" * 32, accepted={"codes": ["keys-changed"], "by": "ann"})

    assert ledger.generation(STREAM, 1).programs == programs
    assert ledger.last_run(STREAM) == run
    assert (run.program, run.accepted) == ("ab" * 32, {"codes": ["keys-changed"], "by": "ann"})


def test_a_lost_ledger_is_restored_with_the_programs(ledger: Ledger, tmp_path: Path) -> None:
    home, programs = Home(tmp_path), with_started(made_by(OLD), NEW, 3)
    ledger.update_generation(STREAM, 1, programs=programs)
    write_stream_file_of(home, ledger, STREAM)

    with Ledger.open(tmp_path / "ledger.db", create=True) as restored:
        restore_lost(home, restored, streams_of(home))
        assert restored.generation(STREAM, 1).programs == programs
