"""The display of a running apply."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from slackwater.cli.common.console import err
from slackwater.operations.action import Action, Inverse
from slackwater.operations.plan.plan import Plan


class ApplyDisplay:
    """A line for each action and a bar over the replayed batches, on stderr."""

    def __init__(self, plan: Plan) -> None:
        self._console = err()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            disable=not sys.stderr.isatty(),
        )
        self._task = self._progress.add_task("replay", total=sum(one.cost.batches_replayed for one in plan.members))

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def say(self, text: str) -> None:
        """A message."""
        self._console.print(text, soft_wrap=not sys.stderr.isatty())

    def action(self, action: Action | Inverse) -> None:
        """An action starts."""
        self._console.print(f"- {action.text()}", soft_wrap=not sys.stderr.isatty())

    def batch(self, batch: int) -> None:
        """A batch was replayed."""
        self._progress.update(self._task, advance=1, description=f"replayed batch {batch}")
