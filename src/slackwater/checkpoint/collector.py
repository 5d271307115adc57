"""Python's garbage collector, off while a checkpoint is read.

Reading makes many objects and none in a cycle. Each full collection looks at every object of the process, its imported
modules included: measured on 60,000 file names, a fifth of the whole time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_off() -> Iterator[None]:
    """No collections inside; afterwards as before. May be nested."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
