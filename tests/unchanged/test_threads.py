"""Applications with threads of their own: they are waited for as Python does, and their queries are drained."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slackwater.checkpoint.logs import read_logs
from slackwater.ledger.home import Home
from slackwater.ledger.ledger import Ledger
from slackwater.runtime.application import OwnThreads, run_code
from slackwater.runtime.session import SessionOptions
from slackwater.storage.local import LocalStore
from tests.support.processes import Command
from tests.unchanged.scene import Scene

LATER = """
import sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

def work():
    time.sleep(0.3)
    import beside
    Path(sys.argv[1]).write_text(beside.TEXT)
"""
NEVER_STARTS = """
import time

def never(rows):
    rows.writeStream.option("checkpointLocation", "checkpoint").start("out")

print("sleeps", flush=True)
try:
    time.sleep(100)
finally:
    print("its finally block runs", flush=True)
"""

FAILS = """
import sys, threading, time
from pyspark.sql.streaming.readwriter import DataStreamWriter

def work():
    while threading.main_thread().is_alive():
        time.sleep(0.1)
    writer = object.__new__(DataStreamWriter)
    writer._df = None
    try:
        writer.start()
    except SystemExit:
        print("start() has ended the thread", flush=True)

def never(rows):
    return rows.writeStream

threading.Thread(target=work).start()
sys.path.index("not there")
"""


@pytest.mark.parametrize(
    "started",
    [
        "threading.Thread(target=work).start()",
        "threading.Thread(target=lambda: threading.Thread(target=work).start()).start()",
        "pool = ThreadPoolExecutor(2)\npool.submit(time.sleep, 0)\npool.submit(work)",
        "threading.Thread(target=work).start()\nsys.exit(3)",
    ],
)
def test_the_threads_of_a_program_are_waited_for_with_its_arguments_and_its_path(tmp_path: Path, started: str) -> None:
    (tmp_path / "app.py").write_text(f"{LATER}\n{started}\n")
    (tmp_path / "beside.py").write_text("TEXT = 'written'\n")
    argv, path = list(sys.argv), list(sys.path)
    threads = OwnThreads()
    try:
        if "sys.exit" in started:
            with pytest.raises(SystemExit, match="3"):
                run_code(f"{tmp_path / 'app.py'} -- {tmp_path / 'out.txt'}", threads, SessionOptions())
        else:
            run_code(f"{tmp_path / 'app.py'} -- {tmp_path / 'out.txt'}", threads, SessionOptions())
    finally:
        sys.modules.pop("beside", None)
    assert (tmp_path / "out.txt").read_text() == "written"
    assert (sys.argv, sys.path) == (argv, path)
    assert not threads.at_work()


def test_a_daemon_is_not_waited_for_and_a_thread_from_before_neither(tmp_path: Path) -> None:
    end = threading.Event()
    before = threading.Thread(target=end.wait)
    before.start()
    (tmp_path / "app.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(30,), daemon=True).start()\n"
    )
    started = time.monotonic()
    run_code(str(tmp_path / "app.py"), OwnThreads(), SessionOptions())
    end.set()
    before.join()
    assert time.monotonic() - started < 10


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., Command]]:
    commands: list[Command] = []

    def started(*words: str) -> Command:
        commands.append(Command(["run", *words], tmp_path))
        return commands[-1]

    yield started
    for command in commands:
        command.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, None], ids=["sigterm", "ctrl-c", "for"])
def test_an_application_whose_main_thread_starts_no_query_ends(
    tmp_path: Path, run: Callable[..., Command], number: signal.Signals | None
) -> None:
    (tmp_path / "app.py").write_text(NEVER_STARTS)
    command = run("app.py", *(["--for", "1s"] if number is None else []))
    command.wait_for(lambda: "sleeps" in command.log, "the program runs")
    if number is not None:
        command.signal_group(number)
    assert command.end(30) == 0, command.log
    assert "its finally block runs" in command.log


def test_no_thread_starts_a_query_after_its_application_has_failed(tmp_path: Path, run: Callable[..., Command]) -> None:
    (tmp_path / "app.py").write_text(FAILS)
    command = run("app.py")
    assert command.end(30) == 7, command.log
    assert "application-failed" in command.log
    assert "start() has ended the thread" in command.log


@pytest.mark.spark
@pytest.mark.parametrize(
    "number",
    [pytest.param(signal.SIGTERM, id="sigterm"), pytest.param(signal.SIGINT, id="ctrl-c", marks=pytest.mark.thorough)],
)
def test_queries_that_threads_start_run_until_they_are_stopped(
    tmp_path: Path, run: Callable[..., Command], number: signal.Signals
) -> None:
    scene = Scene(tmp_path, "in_threads.py")
    scene.add_files("data", 100)
    command = run("in_threads.py", "--", "data")

    def committed(name: str) -> int:
        return read_logs(LocalStore(tmp_path / "data/checkpoints" / name)).committed

    names = ("first", "second")
    command.wait_for(lambda: min(map(committed, names)) >= 2, "both queries commit batches")
    with Ledger.open(Home(tmp_path / ".slackwater").ledger_url, create=False) as ledger:
        leases = [ledger.lease(f"watched/{name}") for name in names]
        assert all(lease is not None and lease.holder is not None for lease in leases)
        assert all(ledger.runs(f"watched/{name}")[-1].end is None for name in names)

    # As ``timeout`` does it, too: the JVM that the application has started must not end before its batches have.
    command.signal_group(number)
    assert command.end(60) == 0, command.log
    assert "Traceback" not in command.log
    assert command.gone_within(20), command.log
    with Ledger.open(Home(tmp_path / ".slackwater").ledger_url, create=False) as ledger:
        for name in names:
            assert f"{name} has ended" in command.log
            logs = read_logs(LocalStore(tmp_path / "data/checkpoints" / name))
            assert logs.planned == logs.committed, command.log
            assert ledger.runs(f"watched/{name}")[-1].end == "stopped"
            assert ledger.newest_entry(f"watched/{name}", "commits") == logs.committed


@pytest.mark.spark
def test_queries_that_threads_start_are_read(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "in_threads.py")
    scene.add_files("data", 1)
    shown = scene.type("check", "in_threads.py", "--", "data")
    assert "watched/first" in shown
    assert "watched/second" in shown
    assert not (tmp_path / "data/checkpoints").exists()
