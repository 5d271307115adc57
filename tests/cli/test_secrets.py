"""A password that a user has to write somewhere is printed nowhere, and what Slackwater writes is private."""

import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from slackwater.ledger.home import Home
from slackwater.ledger.lease import Lease
from slackwater.ledger.ledger import Ledger
from slackwater.storage.local import LocalStore
from tests.support import warm_python
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
    done = warm_python.run(["ledger", "--format", shown_as], tmp_path, {"SLACKWATER_LEDGER": address})
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
                files = sorted(path.name for path in Path(home.location).rglob("*") if path.is_file())
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


SETTINGS = {
    "a list": f'[spark]\n"spark.hadoop.fs.s3a.secret.key" = ["{HIDDEN}"]\n',
    "a table": f'[spark]\nspark.hadoop.fs.s3a.secret.key = "{HIDDEN}"\n',
    "a long value that is cut": f'[spark]\n"spark.x.password" = ["{"x" * 60}{HIDDEN}{"y" * 60}"]\n',
    "no table": f'spark = "spark.hadoop.fs.s3a.secret.key={HIDDEN}"\n',
    "a key with a blank": f'[spark]\n"spark.x secret" = "{HIDDEN}"\n',
    "a level": f'log_level = "postgresql://ann:{HIDDEN}@h/d"\n',
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_a_setting_that_cannot_be_used_is_not_printed(tmp_path: Path, settings: str) -> None:
    (tmp_path / "slackwater.toml").write_text(settings)
    done = warm_python.run(["status"], tmp_path, {})
    assert done.returncode == 2
    assert HIDDEN not in done.stdout + done.stderr


def _new_process(folder: Path, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """The arguments of a process are known as it starts."""
    command = [sys.executable, "-m", "slackwater", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize(
    "arguments",
    [
        ("inspect", f"s3://AK:{HIDDEN}/x@bucket/checkpoint"),
        ("inspect", f"hdfs://ann:{HIDDEN}@host:9000/x"),
        ("run", "clicks.py", "--conf", f"spark.hadoop.fs.s3a.secret.key {HIDDEN}"),
        ("run", "clicks.py", "--conf", f"spark.hadoop.fs.s3a.secret.key:{HIDDEN}"),
        ("status", "--password", HIDDEN),
        ("status", f"--api-key={HIDDEN}"),
        ("status", "--token", HIDDEN, "--format", "json"),
        ("plan", "rebuild", STREAM, "--at", f"https://{HIDDEN}@host/x"),
    ],
    ids=" ".join,
)
def test_an_argument_with_a_secret_is_not_echoed(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    make_home(tmp_path)
    done = _new_process(tmp_path, arguments)
    assert done.returncode not in (0, 1)
    assert HIDDEN not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


SINKS = {
    "an object store": f'sinks.files("parquet", "s3a://AK:{HIDDEN}@bucket/out")',
    "a web server": f'sinks.foreach_batch(print, name="http://u:{HIDDEN}@h/x")',
    "an option": f'sinks.table("http://u:{HIDDEN}@h", format="parquet")',
}


@pytest.mark.parametrize("sink", SINKS.values(), ids=SINKS)
def test_a_sink_with_a_secret_is_refused_before_it_is_stored(tmp_path: Path, sink: str) -> None:
    (tmp_path / "p.py").write_text(
        "import slackwater\nfrom slackwater import sinks\n"
        f'pipeline = slackwater.Pipeline("p")\n@pipeline.stream(sink={sink})\ndef s(spark):\n    return None\n'
    )
    done = warm_python.run(["run", "p.py"], tmp_path, {})
    assert done.returncode == 2
    assert "-secret" in done.stderr or "table-name" in done.stderr
    assert HIDDEN not in done.stdout + done.stderr
    assert not (tmp_path / ".slackwater").exists()


def test_a_checkpoint_with_a_secret_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(
        "import slackwater\nfrom slackwater import sinks\n"
        'pipeline = slackwater.Pipeline("p")\n'
        f'@pipeline.stream(sink=sinks.noop(), checkpoint="s3://AK:{HIDDEN}@bucket/c")\ndef s(spark):\n    return None\n'
    )
    done = warm_python.run(["run", "p.py"], tmp_path, {})
    assert (done.returncode, "location-secret" in done.stderr) == (2, True)
    assert HIDDEN not in done.stdout + done.stderr


def test_the_traceback_of_debug_is_masked(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(
        f'raise ValueError("cannot open postgresql://ann:{HIDDEN}@h/d")  # password={HIDDEN}\n'
    )
    done = warm_python.run(["run", "p.py", "--debug"], tmp_path, {})
    assert "Traceback" in done.stderr
    assert HIDDEN not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        "run app.py --conf spark.hadoop.fs.s3a.secret.key {value}",
        "run --conf spark.hadoop.fs.s3a.secret.key {value} app.py",
        "check --conf spark.hadoop.fs.s3a.secret.key {value}",
        "plan rebuild per_page --conf=spark.ssl.keyStorePassword {value}",
        "status --password {value}",
        "watch out --source {value}",
        "watch out --source =0:{value}",
        "watch out --source kafka://ann:{value}@broker",
    ],
)
def test_a_value_on_the_command_line_is_not_printed(tmp_path: Path, arguments: str) -> None:
    done = _new_process(tmp_path, arguments.format(value="hunter-of-2").split())
    assert done.returncode == 2
    assert "hunter-of-2" not in done.stdout + done.stderr
