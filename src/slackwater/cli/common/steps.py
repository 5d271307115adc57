"""The steps of a long command on stderr."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status


class Steps:
    """One line for each step with its time, and a spinner on a terminal while it runs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._folder: Path | None = None
        self._what = ""
        self._started = self._step_started = time.monotonic()
        self._status: Status | None = None

    def works_in(self, folder: Path) -> None:
        """Show where the demo works."""
        self._folder = folder
        self._console.print(f"Working in {folder}", style="dim")

    def begin(self, what: str) -> None:
        """Show the step that starts."""
        self._what, self._step_started = what, time.monotonic()
        if self._console.is_terminal:
            self._status = self._console.status(f"{what} ...")
            self._status.start()

    def end(self, outcome: str) -> None:
        """Write the step's line."""
        self.close()
        now = time.monotonic()
        self._console.print(f"{now - self._started:6.1f} s  {self._what}: {outcome} ({now - self._step_started:.1f} s)")

    def interrupted(self) -> None:
        """Report what is left."""
        self.close()
        self._console.print(f"Interrupted while: {self._what}.")
        self._console.print(f"All processes have exited. The files are in {self._folder}")

    def close(self) -> None:
        """Stop the progress display."""
        if self._status is not None:
            self._status.stop()
            self._status = None
