"""Kills a run of Slackwater for real, at a named point of a batch: python and JVM, by their own process ids."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

HELD_WITHIN_S = 400.0
POLL_S = 0.0002
NEAR_POLL_S = 0.002


def children_of(pid: int) -> list[int]:
    """The process ids of a process's children."""
    found: list[int] = []
    # Not a glob: it looks at each process by itself, and fails where one ends meanwhile.
    for folder in (path for path in Path("/proc").iterdir() if path.name.isdigit()):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == pid:
            found.append(int(folder.name))
    return found


def kill_when(
    process: subprocess.Popen[bytes],
    reached: Callable[[], bool],
    ready: Callable[[], bool],
    near: Callable[[], bool] | None = None,
) -> None:
    """Kill the JVM, then Python, as soon as ``reached``. ``ready`` is true once the JVM can be looked up.

    ``near`` is true before ``reached`` and costs less: until then the processes have the cores for themselves.

    The JVM goes first: it is the one that writes. Raises AssertionError if the process ends by itself before.
    """
    _wait(process, ready, 0.05)
    jvms = children_of(process.pid)
    if near is not None:
        _wait(process, near, NEAR_POLL_S)
    _wait(process, reached, POLL_S)
    kill_with_children(process, jvms)


def kill_when_held(arguments: Sequence[str], folder: Path, points: Sequence[Path]) -> None:
    """Run ``slackwater ...`` in a folder, and kill it when a thread is held before each of these files gets its name.

    The file system of the tests' JVMs holds them.
    """
    hold, log = folder / "hold", folder / "killed.log"
    hold.mkdir()
    (hold / "points").write_text("\n".join(map(str, points)))
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "slackwater", *arguments],
            cwd=folder,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "SLACKWATER_TEST_HOLD": str(hold)},
        )
    deadline = time.monotonic() + HELD_WITHIN_S
    try:
        while missing := [str(point) for n, point in enumerate(points) if not (hold / f"held-{n}").exists()]:
            assert process.poll() is None, f"ended before these were held: {missing}\n{log.read_text(errors='replace')}"
            assert time.monotonic() < deadline, f"never held: {missing}\n{log.read_text(errors='replace')}"
            time.sleep(0.05)
    finally:
        kill_with_children(process, children_of(process.pid))
    shutil.rmtree(hold)


def kill_at_call(event: str, function: str, arguments: Sequence[str], folder: Path, **environment: str) -> None:
    """Run ``slackwater ...`` and kill -9 it at an event of a function (``killed_call``); its JVM exits then, too."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("killed_call.py")), event, function, *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


def kill_with_children(process: subprocess.Popen[bytes], children: Iterable[int]) -> None:
    """Kill a process and those of its children that are alive still, children first; return when all have exited."""
    alive = [pid for pid in children if _is_alive(pid)]
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
    process.kill()
    process.wait()
    while any(_is_alive(pid) for pid in alive):
        time.sleep(0.01)


def _wait(process: subprocess.Popen[bytes], happened: Callable[[], bool], pause_s: float) -> None:
    looked = time.perf_counter()
    while not happened():
        assert process.poll() is None, f"the run ended with {process.returncode} before it could be killed"
        # A look that reads tables takes no more than half of a core from the run.
        time.sleep(max(pause_s, time.perf_counter() - looked))
        looked = time.perf_counter()


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
