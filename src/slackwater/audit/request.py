"""What the process of an audit is asked to do, as its parent writes it and it reads it; the files of its results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from slackwater.audit.steps import Step

RESULTS, ERROR = "results.jsonl", "error.json"


@dataclass(frozen=True, slots=True)
class Request:
    """What a process is to do. ``scratch`` is the audit's folder, ``run`` the name of the run in it.

    Without ``steps`` it lays down the rows. ``first`` is the step to start with, whose drill took place before where
    ``again`` is set.
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
        """The folder of the run."""
        return Path(self.scratch) / self.run

    def as_json(self) -> str:
        """As ``parse`` reads it."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> Request:
        """What ``as_json`` made."""
        fields = json.loads(text)
        return cls(**{**fields, "steps": tuple(Step(**step) for step in fields["steps"])})
