"""Signals that end a command as Ctrl-C does: it ends first what it has started."""

from __future__ import annotations

import signal
from types import FrameType


def interrupt_on_signals() -> None:
    """Raise KeyboardInterrupt for SIGTERM, and for SIGHUP (the terminal was closed) unless ``nohup`` has it ignored."""
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _interrupt)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    # Kernel and shell each send SIGHUP for one closed terminal: another one must not interrupt the ending.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise KeyboardInterrupt
