"""A ledger that another process has locked: the user is informed, the command waits, and in the end it gives up."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import cast

import pytest

from slackwater.cli.main import main
from slackwater.core.errors import EnvironmentMissing, UsageError
from slackwater.core.records import BatchRecord, LogLine
from slackwater.ledger.database import Database, parse_url
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.sqlite import BUSY_TIMEOUT_S, SqliteFile
from tests.ledger.programs import Program, start_program
from tests.support.errors import raises_code
from tests.support.homes import make_home
from tests.support.ledgers import STREAM
from tests.support.small_disk import small_disk

_HOLD = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA locking_mode = EXCLUSIVE")
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.readline()
"""


@contextmanager
def _locked_by_another_process(path: str | Path) -> Iterator[subprocess.Popen[str]]:
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        yield holder
    finally:
        holder.communicate("", timeout=30)


def _release(holder: subprocess.Popen[str]) -> None:
    assert holder.stdin is not None
    holder.stdin.write("go\n")
    holder.stdin.flush()


@pytest.mark.parametrize("arguments", [["status"], ["ledger"]], ids=" ".join)
def test_a_command_says_that_it_waits_and_then_works(tmp_path: Path, arguments: list[str]) -> None:
    path = make_home(tmp_path) / "ledger.db"
    command = [sys.executable, "-m", "slackwater", *arguments]
    unlocked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    with _locked_by_another_process(path):
        waiting = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert waiting.stderr is not None
        started = time.monotonic()
        messages = waiting.stderr.readline()
        after_s = time.monotonic() - started
    out, more = waiting.communicate(timeout=30)
    assert messages == f"the ledger {path} is locked by another process; waiting up to {BUSY_TIMEOUT_S} s\n"
    assert after_s < 10
    assert "clicks/per_page" in out
    assert (waiting.returncode, out) == (unlocked.returncode, unlocked.stdout), more


@pytest.mark.parametrize(
    "writes", [pytest.param(False, id="reading", marks=pytest.mark.thorough), pytest.param(True, id="writing")]
)
def test_it_counts_down_and_gives_up(sqlite_url: str, *, writes: bool) -> None:
    messages: list[str] = []
    file = SqliteFile(Path(sqlite_url), messages.append, wait_s=7)
    driver = file.connect()
    with closing(driver), _locked_by_another_process(sqlite_url), pytest.raises(EnvironmentMissing) as caught:
        file.begin(driver, writes=writes)
    assert (caught.value.code, caught.value.exit_code) == ("ledger-locked", 9)
    assert caught.value.hint is not None
    assert f"fuser -v {sqlite_url}" in caught.value.hint
    assert messages[0] == f"the ledger {sqlite_url} is locked by another process; waiting up to 7 s"
    assert [line.partition(";")[0] for line in messages[1:]] == ["the ledger is still locked"]


def test_a_short_wait_is_silent(sqlite_url: str) -> None:
    messages: list[str] = []
    with _locked_by_another_process(sqlite_url) as holder:
        _release(holder)
        with Ledger.open(sqlite_url, create=False, say=messages.append) as ledger:
            assert ledger.streams() == []
    assert messages == []


def test_after_a_wait_the_connection_works_as_before(sqlite_url: str) -> None:
    database = Database(parse_url(sqlite_url))
    with closing(database), _locked_by_another_process(sqlite_url) as holder:
        _release(holder)
        with database.write() as connection:
            connection.execute("INSERT INTO streams VALUES ('a/b', 'a', 'b', '{}', 'append', 'f', 1, NULL, NULL)")
    with closing(database), database.read() as connection:
        assert connection.scalar("SELECT count(*) FROM streams") == 1
        assert connection.scalar("PRAGMA busy_timeout") == BUSY_TIMEOUT_S * 1000


@pytest.mark.parametrize("value", ["\ud800", 2**63], ids=ascii)
def test_a_value_that_no_database_takes_is_refused(sqlite_url: str, value: object) -> None:
    with Ledger.open(sqlite_url, create=False) as ledger, raises_code(UsageError, "ledger-value"):
        ledger.generations(cast("str", value))


# A full disk is called full, whichever way SQLite reports it, also by a command that only reads.


@pytest.mark.parametrize("command", [["status"], ["plan", "resume", "per_page"], ["ledger"]])
def test_a_full_disk_is_not_a_question_of_permissions(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with small_disk(4) as disk:
        make_home(disk.folder)
        for beside in (disk.folder / ".slackwater").glob("ledger.db-*"):
            beside.unlink()
        with suppress(OSError), (disk.folder / "filler").open("wb") as filler:
            filler.write(bytes(8 << 20))

        code = main([*command, "--home", str(disk.folder / ".slackwater"), "--format", "json"])

    error = json.loads(capsys.readouterr().err.splitlines()[-1])["error"]
    assert (code, error["code"]) == (9, "disk-full"), error
    assert "permission" not in error["hint"]
    assert "free some space" in error["hint"]


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
