"""The request to an audit's process, and its result files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from slackwater.audit.steps import Step

RESULTS, ERROR = "results.jsonl", "error.json"


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """``scratch`` is the audit's folder, ``run`` a run in it.

    Without ``steps`` rows are laid down. ``first`` is the step to start with; ``again``: its drill took place before.
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
