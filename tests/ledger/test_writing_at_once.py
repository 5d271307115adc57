from __future__ import annotations

import threading
from collections.abc import Callable

from slackwater.core.records import BatchRecord, LogLine
from slackwater.ledger.ledger import Ledger
from tests.ledger.programs import Program, start_program
from tests.support.ledgers import STREAM

COUNT = 60


def test_two_processes_write_to_two_streams(ledger: Ledger, ledger_url: str, new_stream: Callable[[str], str]) -> None:
    streams = [STREAM, new_stream("daily")]
    programs = [start_program("write_batches", ledger_url, stream, str(COUNT)) for stream in streams]
    _let_all_go_and_finish(programs)
    for stream in streams:
        assert [batch.batch_id for batch in ledger.batches(stream)] == list(range(COUNT))
        for log in ("offsets", "commits"):
            assert ledger.lines(stream, log) == {entry: f"v1\n{entry}" for entry in range(COUNT)}


def test_two_processes_write_the_same_entries(ledger: Ledger, ledger_url: str) -> None:
    programs = [start_program("write_batches", ledger_url, STREAM, str(COUNT)) for _ in range(2)]
    _let_all_go_and_finish(programs)
    assert [batch.batch_id for batch in ledger.batches(STREAM)] == list(range(COUNT))


def test_threads_of_one_process_share_a_ledger(ledger: Ledger) -> None:
    errors: list[Exception] = []

    def write(log: str) -> None:
        try:
            for entry in range(COUNT):
                ledger.record_lines([LogLine(STREAM, 1, log, entry, f"v1\n{log}")])
                ledger.record_batch(BatchRecord(STREAM, 1, entry, timestamp_ms=0, input_rows=0))
                assert entry in ledger.lines(STREAM, log)
        except Exception as error:  # noqa: BLE001 - reported to the test below
            errors.append(error)

    threads = [threading.Thread(target=write, args=(f"sources/{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert ledger.logs(STREAM) == [f"sources/{number}" for number in range(4)]
    assert all(len(ledger.lines(STREAM, log)) == COUNT for log in ledger.logs(STREAM))


def test_what_a_killed_process_had_recorded_is_there_and_whole(ledger: Ledger, ledger_url: str) -> None:
    program = start_program("write_until_killed", ledger_url, STREAM)
    reported = [int(program.read_line()) for _ in range(20)]
    program.kill()
    recorded = ledger.recorded_entries(STREAM, 1, "offsets")
    assert recorded >= set(reported)
    assert recorded == set(range(len(recorded)))
    assert ledger.recorded_entries(STREAM, 1, "sources/0") == recorded


def _let_all_go_and_finish(programs: list[Program]) -> None:
    assert [program.read_line() for program in programs] == ["ready"] * len(programs)
    for program in programs:
        program.write_line("go")
    assert [program.finish() for program in programs] == ["done"] * len(programs)
