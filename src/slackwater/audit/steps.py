"""The steps of an audit, a batch each with a drill while it is written, and the request to its process."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

Drill = Literal["none", "before", "line", "job", "task", "twice", "after"]
"""``before``, ``line``, ``job`` and ``after`` kill the process; ``task`` fails a task once; ``twice`` calls twice."""

CHOICES: tuple[Drill, ...] = ("before", "line", "job", "task", "twice", "after")
BY_FUNCTION: frozenset[Drill] = frozenset({"line", "twice"})
"""For a function that Spark calls for a batch, and not in tasks."""
LINES_MOST = 3
STEPS_MOST = len(CHOICES) + LINES_MOST + 1
"""An uninterrupted batch first and last."""
ROWS_OF_TASK = 10
TASKS = 2

TEXTS: dict[Drill, str] = {
    "none": "uninterrupted",
    "before": "killed before the function was called",
    "line": "killed before a line of the function",
    "job": "killed in the last Spark job of the batch, with one task of two finished",
    "task": "a task failed at its end and was retried",
    "twice": "called twice with the same batch",
    "after": "killed after the function, before Spark's commit",
}


@dataclass(frozen=True, slots=True)
class Step:
    """A batch with its drill. ``line``: which of the function's lines comes after the kill, from 1. ``last_pass``: how
    many jobs read the rows in the uninterrupted run.
    """

    drill: Drill
    line: int = 0
    place: str = ""
    last_pass: int = 0

    @property
    def text(self) -> str:
        return f"killed before {self.place}" if self.drill == "line" else TEXTS[self.drill]


def steps_for(lines: Sequence[str], wanted: Sequence[Drill], *, by_function: bool) -> tuple[Step, ...]:
    """Steps for the lines (``file:line``) of an uninterrupted batch. ``by_function``: Spark calls it once for a batch;
    in tasks it has no lines to be chosen.
    """
    drills = [drill for drill in CHOICES if drill in wanted and (by_function or drill not in BY_FUNCTION)]
    found: list[Step] = [Step("none")]
    spread = sorted({len(lines) * part // (LINES_MOST + 1) for part in range(1, LINES_MOST + 1)} - {0})
    for drill in drills:
        found += [Step("line", at, lines[at]) for at in spread] if drill == "line" else [Step(drill)]
    return (*found, Step("none"))


def most_steps(wanted: Sequence[Drill]) -> int:
    return 2 + sum(LINES_MOST if drill == "line" else 1 for drill in wanted)


RESULTS, ERROR = "results.jsonl", "error.json"


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """``scratch`` is the audit's folder, ``run`` a run in it. Without ``steps`` rows are laid down. ``first`` is the
    step to start with; ``again``: its drill took place before.
    """

    reference: str
    stream: str
    scratch: str
    run: str
    session: Mapping[str, Any]
    steps: tuple[Step, ...] = ()
    first: int = 0
    again: bool = False

    @property
    def folder(self) -> Path:
        return Path(self.scratch) / self.run

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> AuditRequest:
        fields = json.loads(text)
        return cls(**{**fields, "steps": tuple(Step(**step) for step in fields["steps"])})
