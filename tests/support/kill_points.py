"""Kills a function with SIGKILL before each of its changes to files, one after the other.

The function runs in a forked child. An audit hook there counts the calls that open a file for writing, create, rename,
link, truncate or remove below one folder, and kills the child before the n-th. Writes of SQLite and of other libraries
that make system calls of their own are not counted.
"""

import functools
import os
import signal
import sqlite3
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PATHS_OF = {
    "os.chmod": 1,
    "os.link": 2,
    "os.mkdir": 1,
    "os.remove": 1,
    "os.rename": 2,
    "os.rmdir": 1,
    "os.symlink": 2,
    "os.truncate": 1,
    "os.utime": 1,
}
"""How many paths an event starts with; the file descriptors of their directories are its last arguments."""
_HAS_DIRECTORIES = frozenset(_PATHS_OF) - {"os.symlink", "os.truncate"}


def run_killed_at(number: int, function: Callable[[], object], below: Path, *, sql: bool = False) -> bool:
    """Run ``function`` in a child that is killed before its ``number``-th (from 1) file change below ``below``.

    With ``sql``, statements and commits of SQLAlchemy's engines and of SQLite count, too.

    Returns whether it was killed; ``False`` means that it finished with fewer changes. Raises AssertionError if the
    function raised.
    """
    code = exit_code(functools.partial(_run, number, function, os.path.realpath(below), sql=sql))
    assert code in {0, -signal.SIGKILL}, f"the function failed before file change {number}; its traceback is on stderr"
    return code != 0


def exit_code(function: Callable[[], object]) -> int:
    """Of a child that runs ``function``: of one that was ended by a signal its number, negative; 1 where it raised."""
    with warnings.catch_warnings():
        # The child only runs the function and exits: locks of other threads do not matter to it.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            function()
        except BaseException:  # noqa: BLE001 - whatever it is becomes the child's exit code
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def kill_points(
    function: Callable[[], object],
    below: Path,
    prepare: Callable[[], object],
    *,
    sql: bool = False,
    every: range = range(1, sys.maxsize),
) -> Iterator[int]:
    """Yield 1, 2, ...: each time after ``prepare()`` and after ``function`` was killed before that file change.

    Of many changes ``every`` takes some.

    Ends when the function finishes, which it has then done once more, completely.
    """
    for number in every:
        prepare()
        if not run_killed_at(number, function, below, sql=sql):
            return
        yield number


def die_before(number: int, below: str, *, sql: bool = False) -> None:
    """Kill this process before its ``number``-th (from 1) file change below the real path ``below``.

    With ``sql``, statements and commits of SQLAlchemy's engines and of SQLite count, too.
    """
    left = number

    def reached() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def count(event: str, arguments: tuple[object, ...]) -> None:
        if any(_is_below(path, below) for path in _changed_paths(event, arguments)):
            reached()

    sys.addaudithook(count)
    if sql:
        _listen(reached)


@functools.cache
def count_commits() -> None:
    """Count each commit to a SQLite file as one change: SQLite's own writes raise no audit event."""
    _trace_sqlite(_mark)


def _mark(path: str, statement: str) -> None:
    if path and statement == "COMMIT":
        sys.audit("os.mkdir", path, 0o700, -1)


def _trace_sqlite(traced: Callable[[str, str], None]) -> None:
    """Call ``traced`` with the file and the text of each statement on connections that are opened from now on.

    Through ``sqlite3.connect``: its audit event comes before a connection can be traced.
    """
    connect = sqlite3.connect

    @functools.wraps(connect)
    def connect_traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        path = connection.execute("PRAGMA database_list").fetchone()[2]
        connection.set_trace_callback(
            lambda statement: None if statement.startswith("PRAGMA") else traced(path, statement)
        )
        return connection

    vars(sqlite3)["connect"] = connect_traced


def _run(number: int, function: Callable[[], object], below: str, *, sql: bool) -> None:
    die_before(number, below, sql=sql)
    function()


def _listen(reached: Callable[[], None]) -> None:
    from sqlalchemy import Engine, event  # noqa: PLC0415 - only tests of databases need it

    event.listen(Engine, "before_cursor_execute", lambda *_: reached())
    event.listen(Engine, "commit", lambda *_: reached())
    _trace_sqlite(lambda _path, _statement: reached())


def _changed_paths(event: str, arguments: tuple[object, ...]) -> Iterator[str]:
    if event == "open":
        path, _, flags = arguments
        if isinstance(flags, int) and flags & _WRITING:
            yield from _absolute(path, None)
    elif event in _PATHS_OF:
        count = _PATHS_OF[event]
        directories = arguments[-count:] if event in _HAS_DIRECTORIES else (None,) * count
        for path, directory in zip(arguments[:count], directories, strict=True):
            yield from _absolute(path, directory)


def _absolute(path: object, directory: object) -> Iterator[str]:
    if isinstance(path, int):
        yield _path_of(path)
    elif isinstance(path, str | bytes | os.PathLike):
        start = _path_of(directory) if isinstance(directory, int) and directory >= 0 else ""
        yield os.path.join(start, os.fsdecode(path))  # noqa: PTH118 - runs in an audit hook, for every file


def _path_of(descriptor: int) -> str:
    return str(Path(f"/proc/self/fd/{descriptor}").readlink())


def _is_below(path: str, below: str) -> bool:
    folder, name = os.path.split(path)
    return f"{os.path.realpath(folder)}/{name}".startswith(below + "/")
