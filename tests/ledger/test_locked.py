"""A ledger that another process has locked: the user is informed, the command waits, and in the end it gives up."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import cast

import pytest

from slackwater.core.errors import EnvironmentMissing, UsageError
from slackwater.ledger.database import Database, parse_url
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.sqlite import BUSY_TIMEOUT_S, SqliteFile
from tests.support.homes import make_home

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
    with Ledger.open(sqlite_url, create=False) as ledger, pytest.raises(UsageError) as caught:
        ledger.generations(cast("str", value))
    assert caught.value.code == "ledger-value"
