"""Passes on what the driver's JVM writes to stderr, without Java's warning about a module that Spark adds itself.

Spark 4 starts Java with ``--add-modules=jdk.incubator.vector``. Java then writes one line to stderr before anything
else runs; it has no option to suppress it.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

INCUBATOR_WARNING = b"WARNING: Using incubator modules: jdk.incubator.vector\n"
STDERR = 2
LAST_LINES_S = 0.2
_PIECE = 1 << 16


@contextmanager
def relayed_stderr() -> Iterator[int]:
    """A file descriptor to start the JVM with as its stderr. It is closed here at the end; the JVM has its copy."""
    read_end, write_end = os.pipe()
    relay = threading.Thread(target=_relay, args=(read_end, STDERR), name="jvm-stderr", daemon=True)
    relay.start()
    # What the JVM wrote last comes before the end of this process; a JVM that outlives it is not waited for.
    atexit.register(relay.join, LAST_LINES_S)
    try:
        yield write_end
    except BaseException:
        os.close(write_end)
        relay.join(LAST_LINES_S)
        raise
    os.close(write_end)


def _relay(source: int, target: int) -> None:
    """Copy until no process has the other end open, also where nothing can be written: the JVM must not block."""
    kept = b""
    with os.fdopen(source, "rb", buffering=0) as stream:
        while piece := stream.read(_PIECE):
            shown, kept = without_warning(kept + piece)
            with suppress(OSError):
                _write(target, shown)
    with suppress(OSError):
        _write(target, kept)


def without_warning(output: bytes) -> tuple[bytes, bytes]:
    """Output without the warning, and the part at its end that may be the beginning of one."""
    shown = output.replace(INCUBATOR_WARNING, b"")
    last_line = shown[shown.rfind(b"\n") + 1 :]
    if last_line and INCUBATOR_WARNING.startswith(last_line):
        return shown[: len(shown) - len(last_line)], last_line
    return shown, b""


def _write(target: int, data: bytes) -> None:
    while data:
        data = data[os.write(target, data) :]
