"""A password that a user has to write somewhere is printed nowhere, and what Slackwater writes is private."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from slackwater.home.home import Home
from slackwater.lease.lease import Lease
from slackwater.ledger.ledger import Ledger
from slackwater.storage.local import LocalStore
from tests.support.homes import STREAM, make_home

HIDDEN = "hunter2"


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("postgresql://ann@/ledger?host={folder}&password={password}", "ledger-unreachable"),
        ("postgresql://ann@/ledger?host={folder}&sslpassword={password}", "ledger-unreachable"),
        ("postgresql://ann:{password}@/ledger?host={folder}", "ledger-unreachable"),
        ("postgresql://ann:{password}/x@localhost:1/ledger", "ledger-url"),
        ("postgresql://ann:x@{password}@localhost:1/ledger", "ledger-url"),
        ("postgresql://ann:{password}@localhost:port/ledger", "ledger-url"),
        ("postgresql://ann:{password}", "ledger-url"),
        ("mysql://ann:{password}@localhost/ledger", "ledger-url"),
        ("postgres://ann:{password}@localhost/ledger", "ledger-url"),
    ],
)
@pytest.mark.parametrize("shown_as", ["text", "json"])
def test_the_password_of_a_ledger_is_not_printed(tmp_path: Path, address: str, code: str, shown_as: str) -> None:
    address = address.format(folder=tmp_path, password=HIDDEN)
    done = subprocess.run(
        [sys.executable, "-m", "slackwater", "ledger", "--format", shown_as],
        cwd=tmp_path,
        env={**os.environ, "SLACKWATER_LEDGER": address},
        capture_output=True,
        text=True,
        check=False,
    )
    assert code in done.stderr
    assert HIDDEN not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_reason_with_a_secret_is_masked_in_the_ledger_file(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    with Ledger.open(home / "ledger.db", create=False) as ledger:
        run = ledger.begin_run(STREAM, 1, "4.1.3")
        ended = ledger.end_run(run.id, "failed", f"PSQLException: cannot open jdbc:postgresql://db/x?password={HIDDEN}")
    assert ended.reason == "PSQLException: cannot open jdbc:postgresql://db/x?password=***"
    assert HIDDEN.encode() not in (home / "ledger.db").read_bytes()


def test_what_a_home_contains_is_private(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        home = Home(tmp_path / "new" / ".slackwater")
        with Ledger.open(home.ledger_url, create=True) as ledger:
            with Lease.acquire(ledger, STREAM, home.stream_folder("clicks", "per_page"), "run"):
                files = sorted(path.name for path in home.path.rglob("*") if path.is_file())
            assert files == ["lease.json", "ledger.db", "ledger.db-shm", "ledger.db-wal"]
            modes = {path: (path.is_dir(), _mode(path)) for path in tmp_path.rglob("*")}
    finally:
        os.umask(before)
    assert set(modes.values()) == {(True, 0o700), (False, 0o600)}


def test_a_stricter_umask_is_respected(tmp_path: Path) -> None:
    before = os.umask(0o277)
    try:
        LocalStore(tmp_path / "home", private=True)._make_directories(tmp_path / "home")
    finally:
        os.umask(before)
    assert _mode(tmp_path / "home") == 0o500


def test_a_folder_and_files_that_exist_keep_the_modes_of_their_owner(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o750)
    home.chmod(0o750)
    store = LocalStore(home, private=True)
    store.write("stream.json", b"1")
    assert _mode(home / "stream.json") == 0o600
    (home / "stream.json").chmod(0o640)
    store.write("stream.json", b"2")
    with Ledger.open(home / "ledger.db", create=True):
        pass
    (home / "ledger.db").chmod(0o640)
    with Ledger.open(home / "ledger.db", create=True) as ledger:
        assert ledger.streams() == []
        assert _mode(home / "ledger.db-wal") == 0o640
    assert (_mode(home), _mode(home / "stream.json"), _mode(home / "ledger.db")) == (0o750, 0o640, 0o640)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)
