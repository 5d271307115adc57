"""Kills what changes a Delta table before each change to a file, in processes of their own (``change_delta``)."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import count
from pathlib import Path

from slackwater.core.sink import Cut, Swap


def points_of(
    action: str, table: Path, below: Path, argument: Cut | Swap | str, prepare: Callable[[], object], *, query: str = ""
) -> Iterator[int]:
    """Yield 1, 2, ...: after ``prepare()``, and after the action was killed before that change below ``below``.

    Ends when the action finishes, which it has then done once more, completely. ``query``: the id of the query whose
    table it is, where Spark's own writer fills it.
    """
    given = argument if isinstance(argument, str) else json.dumps(asdict(argument))
    for number in count(1):
        prepare()
        command = [sys.executable, "-m", "tests.sinks.programs.change_delta"]
        done = subprocess.run([*command, action, str(number), table, below, given, *filter(None, [query])], check=False)
        assert done.returncode in {0, -signal.SIGKILL}
        if done.returncode == 0:
            return
        yield number
