"""A Python that stays: commands that run to their end are forked from it, after what they import.

Importing Slackwater and PySpark takes longer than what most commands do then. A forked command has a process, a working
directory, an environment, outputs and an exit code of its own, and can start a JVM or attach to one. Commands that are
killed start a Python of their own.
"""

import gc
import json
import os
import pkgutil
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from runpy import run_path
from typing import Any

WAIT_S = 300.0
COMMAND = "slackwater"
LATER = ("pyspark.sql.functions", "pyspark.sql.streaming", "pyspark.java_gateway", "rich.console", "rich.table")
"""What Slackwater's functions import when they are called."""
NUMBERED = Path(__file__).parent / "attached"
"""What a command runs when it starts and attaches to a JVM that has had other commands (``warm_jvm``)."""


def run(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    *,
    in_one: bool = False,
    wait_s: float = WAIT_S,
) -> subprocess.CompletedProcess[str]:
    """``slackwater ...`` in a folder, to its end. ``in_one``: stderr goes to stdout."""
    return _run([COMMAND, *arguments], folder, environment, in_one=in_one, wait_s=wait_s)


def run_program(words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """``python PROGRAM ...``, a program of the user's, in a folder, to its end."""
    return _run(words, folder, environment, in_one=False, wait_s=WAIT_S)


def _run(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], *, in_one: bool, wait_s: float
) -> subprocess.CompletedProcess[str]:
    """The first word is Slackwater's command, or the file of a program."""
    server = _server(os.getpid())
    with tempfile.TemporaryDirectory(prefix="slackwater-command-") as name:
        out, err = Path(name, "out"), Path(name, "out" if in_one else "err")
        request = {
            "words": list(words),
            "folder": str(folder),
            "environment": {**os.environ, **environment},
            "outputs": [str(out), str(err)],
        }
        code = _answered(server, json.dumps(request), wait_s)
        stderr = "" if in_one else err.read_text(errors="replace")
        return subprocess.CompletedProcess(list(words), code, out.read_text(errors="replace"), stderr)


def _answered(server: subprocess.Popen[bytes], request: str, wait_s: float) -> int:
    """The exit code of a command; it is killed when it takes too long."""
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(f"{request}\n".encode())
    command = int(server.stdout.readline())
    if not select.select([server.stdout], [], [], wait_s)[0]:
        os.kill(command, signal.SIGKILL)
        server.stdout.readline()
        raise AssertionError(f"not within {wait_s:g} s: {json.loads(request)['words']}")
    return int(server.stdout.readline())


@cache
def _server(_: int) -> subprocess.Popen[bytes]:
    """Of a process, not of its forks. It exits when this process, whose end of a pipe it reads, has exited."""
    path = os.pathsep.join(filter(None, [str(NUMBERED), os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        # A reader's buffer could take the exit code of a quick command with its id, and ``select`` would wait for it.
        bufsize=0,
    )


def main() -> None:
    """Serve requests, one after the other; in a fork, become the command."""
    # Without the folder of this file, where a command has its working directory.
    sys.path[:] = [path for path in sys.path[1:] if path != str(NUMBERED)]
    import slackwater  # noqa: PLC0415 - what uses the server needs none of this

    names = [module.name for module in pkgutil.walk_packages(slackwater.__path__, "slackwater.")]
    for name in (*names, *LATER):
        # Another Spark may lack something; a command that needs it reports that.
        with suppress(ImportError):
            import_module(name)
    # What is imported stays, also in the forks.
    gc.collect()
    gc.freeze()
    while request := sys.stdin.readline():
        command = os.fork()
        if command == 0:
            break
        _answer(command)
        _, status = os.waitpid(command, 0)
        _answer(os.waitstatus_to_exitcode(status))
    else:
        return
    _become(json.loads(request))


def _answer(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def _become(request: Mapping[str, Any]) -> None:
    """Run the command as ``python -m slackwater`` does, or the program as ``python PROGRAM`` does."""
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for number, descriptor in enumerate(
        [os.open(os.devnull, os.O_RDONLY), *(os.open(path, flags, 0o600) for path in request["outputs"])]
    ):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.path.insert(0, str(Path.cwd()))
    program, *arguments = request["words"]
    if program != COMMAND:
        sys.argv = [program, *arguments]
        run_path(program, run_name="__main__")
        return
    sys.argv = [str(Path(import_module(COMMAND).__path__[0], "__main__.py")), *arguments]
    from slackwater.cli.main import entry  # noqa: PLC0415 - imported long ago

    entry()


if __name__ == "__main__":
    main()
