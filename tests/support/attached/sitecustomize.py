"""Python runs this file when a command starts that attaches to a JVM which outlives it (``tests/support/warm_jvm.py``).

When the JVM collects what an earlier command has passed to it, such as a batch function, it tells the command that is
attached then to forget the object of that number. Py4J counts from 0 in each process: it would be another object.
"""

from __future__ import annotations

import os

from py4j.java_gateway import PythonProxyPool

_initialise = PythonProxyPool.__init__


def _numbered_by_process(pool: PythonProxyPool) -> None:
    _initialise(pool)
    pool.next_id = os.getpid() << 32


PythonProxyPool.__init__ = _numbered_by_process
