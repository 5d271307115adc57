"""Runs applications that start their own queries, or reads their queries.

Here: runs an application like ``python FILE ARGUMENTS`` or ``python -m MODULE ARGUMENTS``, and waits for its threads,
as Python does: they may start queries later.
"""

import os
import runpy
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import thread as executors
from contextlib import contextmanager
from functools import partial
from typing import Any

from pyspark import SparkContext

from slackwater.core.reference import split_reference
from slackwater.ledger.workspace import to_stderr
from slackwater.runtime.loader import locate
from slackwater.runtime.session import SessionOptions
from slackwater.runtime.session.launch import launch_apart
from slackwater.runtime.session.session import JARS, jars_with
from slackwater.runtime.session.settings import remember_options

POLL_S = 0.2
IDLE_LOOKS = 2
"""An executor's thread is idle for a moment between two tasks, too."""
_IDLE = (executors.__file__, "_worker")
_OF_PROCESSES = "concurrent.futures.process"


class OwnThreads:
    """The non-daemon threads started from now on; like Python at its exit, ignores daemons."""

    def __init__(self) -> None:
        self._before = frozenset(threading.enumerate())

    def wait(self) -> None:
        """Wait until no thread is at work. Raises the exception of a signal handler."""
        looks = 0
        while looks < IDLE_LOOKS and (own := self._own()):
            looks = 0 if any(map(_is_at_work, own)) else looks + 1
            time.sleep(POLL_S)

    def at_work(self) -> bool:
        return any(map(_is_at_work, self._own()))

    def _own(self) -> list[threading.Thread]:
        others = {*self._before, threading.current_thread()}
        return [one for one in threading.enumerate() if one not in others and not one.daemon]


def _is_at_work(thread: threading.Thread) -> bool:
    """Return whether a thread still works.

    An executor's idle thread, which Python ends only at exit, and a process pool's manager do not.
    """
    if type(thread).__module__ == _OF_PROCESSES:
        return False
    frame = sys._current_frames().get(thread.ident or 0)
    return frame is None or (frame.f_code.co_filename, frame.f_code.co_name) != _IDLE


def run_code(reference: str, threads: OwnThreads, given: SessionOptions) -> None:
    """Run the code; its exceptions, including SystemExit, are raised.

    Does not wait for ``threads`` after other exceptions.
    """
    _, arguments = split_reference(reference)
    file, module = locate(reference)
    argv, path = sys.argv, list(sys.path)
    sys.argv = [str(file), *arguments]
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    remember_options()
    try:
        with _jvm_of_its_own(given):
            if module is not None:
                runpy.run_module(module, run_name="__main__", alter_sys=True)
            else:
                # ``python FILE`` does so, and ``runpy.run_path`` does not.
                sys.path.insert(0, str(file.parent))
                runpy.run_path(str(file), run_name="__main__")
            threads.wait()
    except SystemExit:
        # Also where the queries were drained: what waits for them in a thread ends then.
        threads.wait()
        raise
    finally:
        sys.argv = argv
        sys.path[:] = path


@contextmanager
def _jvm_of_its_own(given: SessionOptions) -> Iterator[None]:
    """Start this process's JVM as for a pipeline: a signal to the process group does not reach it."""
    module: Any = sys.modules[SparkContext.__module__]
    original = module.launch_gateway

    def start(conf: Any = None, popen_kwargs: Any = None) -> Any:
        if popen_kwargs is not None:
            return original(conf, popen_kwargs)
        own = dict(conf.getAll()) if conf is not None else {}
        jars = jars_with({**given.settings, **own}, given.connectors, to_stderr)
        if jars is not None and JARS in own:
            conf.set(JARS, jars)
        settings = {**given.settings, **({} if jars is None else {JARS: jars})}
        gateway, signals = launch_apart(partial(original, conf), settings)
        # Its handler is in place again: that of the application, or of what runs it.
        if signals.last is not None:
            signal.raise_signal(signals.last)
        return gateway

    module.launch_gateway = start
    try:
        yield
    finally:
        module.launch_gateway = original
