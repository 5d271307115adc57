"""A user who may read a home, but not write to it: what works, what does not, and the messages."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from slackwater.ledger.lease import Lease
from slackwater.ledger.ledger import Ledger
from tests.cli.evidence.conftest import contents
from tests.support.homes import STREAM, HomeSpec, edit_ledger, make_home
from tests.support.second_user import as_reader, make_readable_only, make_writable_again, slackwater_as_reader

NOT_REFRESHED = (
    f"{STREAM}: read access only; the ledger is not updated from the checkpoint, "
    "and batches that are not recorded yet are not included\n"
)
COMMANDS = [["status"], ["ledger"], ["ledger", STREAM], ["offsets", STREAM], ["inspect", STREAM]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return make_home(tmp_path)


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_it_shows_the_same_as_to_the_owner(home: Path, tmp_path: Path, arguments: list[str]) -> None:
    before = _as_owner(tmp_path, *arguments)
    make_readable_only(tmp_path)
    done = slackwater_as_reader(*arguments, folder=tmp_path)
    after = _files(tmp_path)
    make_writable_again(tmp_path)
    assert done.stdout == before.stdout != "", done.stderr
    assert done.returncode == before.returncode, done.stderr
    assert done.stderr.count(NOT_REFRESHED) == (1 if arguments[0] == "offsets" else 0)
    assert sorted(path.name for path in after if path.parent == home) == ["ledger.db", "streams"]


def test_a_source_folder_that_may_not_be_entered_is_a_fact(tmp_path: Path) -> None:
    make_home(tmp_path)
    make_readable_only(tmp_path / "clicks")
    (tmp_path / "clicks").chmod(0o000)
    done = slackwater_as_reader("doctor", STREAM, "--format", "json", folder=tmp_path)
    made = slackwater_as_reader("evidence", STREAM, "--out", "bundle.zip", folder=tmp_path)
    (tmp_path / "clicks").chmod(0o755)
    make_writable_again(tmp_path)

    reason = "the files of source 0 cannot be looked up: [Errno 13] Permission denied"
    assert (done.returncode, made.returncode) == (5, 0), done.stderr + made.stderr
    (stream,) = json.loads(done.stdout)["streams"]
    assert [one["code"] for one in stream["not_checked"] if one["reason"].startswith(reason)] == ["SW-FSRC-009"]
    unknown = json.loads(contents(tmp_path / "bundle.zip")["evidence.json"])["unknown"]
    assert [one["what"] for one in unknown if one["reason"].startswith(reason)] == ["source 0"]


def test_what_a_live_writer_has_just_recorded_is_seen(home: Path, tmp_path: Path) -> None:
    with Ledger.open(home / "ledger.db", create=False) as ledger:
        run = ledger.begin_run(STREAM, 1, "4.1.3")
        make_readable_only(tmp_path)
        done = slackwater_as_reader("ledger", "--format", "json", folder=tmp_path)
        make_writable_again(tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["streams"][0]["runs"][-1]["id"] == run.id


def test_what_a_killed_writer_had_recorded_is_seen(home: Path, tmp_path: Path) -> None:
    program = (
        "import os, signal, sys\nfrom slackwater.ledger.ledger import Ledger\n"
        "ledger = Ledger.open(sys.argv[1], create=False)\n"
        f"ledger.begin_run({STREAM!r}, 1, '4.1.3')\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(home / "ledger.db")], check=False)
    assert killed.returncode == -signal.SIGKILL
    make_readable_only(tmp_path)
    done = slackwater_as_reader("ledger", "--format", "json", folder=tmp_path)
    (home / "ledger.db-shm").unlink()
    without_shm = slackwater_as_reader("ledger", folder=tmp_path)
    make_writable_again(tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["streams"][0]["runs"]) == 2
    assert without_shm.returncode == 3
    assert "error ledger-wal-unread: " in without_shm.stderr
    assert STREAM in _as_owner(tmp_path, "status").stdout
    assert not (home / "ledger.db-wal").exists()


def test_offsets_go_by_what_is_recorded(tmp_path: Path) -> None:
    # Spark has planned and committed two more batches since the ledger was written.
    home = make_home(tmp_path, HomeSpec(planned=7, committed=7, state=7, written=7))
    edit_ledger(
        home, "DELETE FROM log_lines WHERE entry > 5 AND log <> 'metadata'", "DELETE FROM batches WHERE batch_id > 5"
    )
    make_readable_only(tmp_path)
    done = slackwater_as_reader("offsets", STREAM, folder=tmp_path)
    make_writable_again(tmp_path)
    assert done.returncode == 0, done.stderr
    assert NOT_REFRESHED in done.stderr
    assert f"{STREAM}, last-written: after batch 5\n" in done.stderr


def test_stop_is_refused(tmp_path: Path) -> None:
    home = make_home(tmp_path, HomeSpec(run="open"))
    with Ledger.open(home / "ledger.db", create=False) as ledger, Lease.acquire(ledger, STREAM, tmp_path, "run"):
        ledger.begin_run(STREAM, 1, "4.1.3")
        make_readable_only(tmp_path)
        _assert_refused(slackwater_as_reader("stop", STREAM, folder=tmp_path))
        make_writable_again(tmp_path)


def test_run_is_refused_before_spark_is_started(home: Path, tmp_path: Path) -> None:
    (home.parent / "clicks.py").write_text(
        "import slackwater as sw\npipeline = sw.Pipeline('clicks')\n"
        "@pipeline.stream(sink=sw.sinks.files('parquet', 'out'))\ndef per_page(spark):\n    return None\n"
    )
    make_readable_only(tmp_path)
    before = _files(tmp_path)
    done = slackwater_as_reader("run", "clicks.py", folder=tmp_path)
    after = _files(tmp_path)
    make_writable_again(tmp_path)
    if os.geteuid() == 0:
        # Here the home is another user's; elsewhere it is an own one without write permission.
        assert (done.returncode, done.stdout) == (2, "")
        assert "error home-owner: " in done.stderr
    else:
        _assert_refused(done)
    assert after == before


def _assert_refused(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 9, done.stdout + done.stderr
    assert "error ledger-read-only: The ledger cannot be written: this user has only read access" in done.stderr
    assert "hint: run the command as user " in done.stderr


def test_a_home_that_may_not_be_entered(home: Path, tmp_path: Path) -> None:
    make_readable_only(tmp_path)
    home.chmod(0o000 if os.geteuid() else 0o700)
    done = slackwater_as_reader("status", folder=tmp_path)
    home.chmod(0o755)
    make_writable_again(tmp_path)
    assert done.returncode == 9, done.stderr
    assert "error home-inaccessible: " in done.stderr


def test_rows_read_while_the_file_changed_are_not_shown(home: Path, tmp_path: Path) -> None:
    program = (
        "import sys\nfrom slackwater.core.errors import SlackwaterError\nfrom slackwater.ledger.ledger import Ledger\n"
        "ledger = Ledger.open(sys.argv[1], create=False)\nprint('opened', flush=True)\nsys.stdin.readline()\n"
        "try:\n    print(ledger.streams())\nexcept SlackwaterError as error:\n    print(error.code)\n"
    )
    make_readable_only(tmp_path)
    reader = subprocess.Popen(
        as_reader(sys.executable, "-c", program, str(home / "ledger.db")),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert reader.stdout is not None
    assert reader.stdout.readline() == "opened\n"
    make_writable_again(tmp_path)
    with Ledger.open(home / "ledger.db", create=False) as ledger:
        ledger.begin_run(STREAM, 1, "4.1.3")
    assert reader.communicate("go\n", timeout=30)[0] == "ledger-changed\n"


def _as_owner(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "slackwater", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def _files(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}
