"""The facts on which actions rely, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from slackwater.core.strict import STRICT

PreconditionName = Literal[
    "generation",
    "planned",
    "committed",
    "written",
    "history",
    "pipeline",
    "source-files",
    "readers",
    "writer",
    "side-output",
    "others",
]
PRECONDITIONS: Mapping[PreconditionName, str] = {
    "generation": "the generation in use",
    "planned": "the newest batch in offsets/",
    "committed": "the newest batch in commits/",
    "written": "the newest batch the sink shows",
    "history": "the recorded ranges of the batches to be replayed",
    "pipeline": "the pipeline file",
    "source-files": "source files that no longer exist",
    "readers": "streams that have read what is to be cut",
    "writer": "files of the checkpoint that the query has written since the operation was started",
    "side-output": "what is in the backfill directory",
    "others": "what is in the output",
}


@dataclass(frozen=True, slots=True)
class Precondition:
    """A fact that one action relies on, as a string. It is checked just before that action starts, not after."""

    __pydantic_config__: ClassVar = STRICT

    action: int
    name: PreconditionName
    expected: str
