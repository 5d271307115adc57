"""A plan: frozen data, made from facts, carried out as it stands or not at all.

``explain``, the JSON document and ``apply`` consume the same list of actions; each must handle every kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PLAN_SCHEMA: Literal["slackwater.plan/1"] = "slackwater.plan/1"


@dataclass(frozen=True, slots=True)
class BuildGeneration:
    """Lay the base of a new checkpoint aside: the query's id, the source logs, and an empty state before ``first``."""

    number: int
    location: str
    query_id: str
    first: int
    last: int
    kind: Literal["build-generation"] = "build-generation"


@dataclass(frozen=True, slots=True)
class ReplayBatches:
    """Run the recorded batches again under their own ids and watermarks, without output, to make their state anew."""

    first: int
    last: int
    kind: Literal["replay-batches"] = "replay-batches"


@dataclass(frozen=True, slots=True)
class VerifyGeneration:
    """Read the new checkpoint back: marks, ranges and watermarks must be the recorded ones."""

    last: int
    kind: Literal["verify-generation"] = "verify-generation"


@dataclass(frozen=True, slots=True)
class CutSink:
    """Take whole batches out of the sink; their files are moved into the operation's backup."""

    after: int
    batches: tuple[int, ...]
    files: tuple[str, ...]
    bytes: int
    kind: Literal["cut-sink"] = "cut-sink"


@dataclass(frozen=True, slots=True)
class SwitchGeneration:
    """Make the new checkpoint the one in use; the old one stays."""

    old: int
    new: int
    kind: Literal["switch-generation"] = "switch-generation"


Action = BuildGeneration | ReplayBatches | VerifyGeneration | CutSink | SwitchGeneration


@dataclass(frozen=True, slots=True)
class Precondition:
    """A fact the plan stands on. ``name`` is one of ``PRECONDITIONS``; ``expected`` is the fact as text."""

    name: str
    expected: str


PRECONDITIONS = {
    "writer": "processes that may write to the stream",
    "generation": "the generation in use",
    "planned": "the newest batch in offsets/",
    "committed": "the newest batch in commits/",
    "written": "the newest batch the sink shows",
    "history": "the recorded ranges of the batches to be replayed",
    "pipeline": "the pipeline file",
    "readers": "streams that have read what is to be cut",
    "source-files": "source files that are gone",
}


@dataclass(frozen=True, slots=True)
class Cost:
    """What carrying the plan out takes. Rows are those that progress events told; ``batches_uncounted`` had none."""

    batches_replayed: int
    rows_read_again: int
    batches_uncounted: int
    rows_recorded: int
    batches_cut: int
    files_cut: int
    bytes_cut: int


@dataclass(frozen=True, slots=True)
class Facts:
    """What was seen when the plan was made. Marks are batch ids, -1 for none."""

    planned: int
    committed: int
    state: int | None
    written: int
    target: int
    contributing: int
    watermark_ms: int
    retention_ms: int | None
    delay_ms: int | None
    checkpoint_present: bool
    ranges_from: Literal["checkpoint", "ledger"]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """One goal for one stream, with everything ``apply`` needs to do it or refuse."""

    id: str
    goal: Literal["rebuild"]
    stream: str
    pipeline_file: str
    made_at: str
    target: str
    facts: Facts
    preconditions: tuple[Precondition, ...]
    actions: tuple[Action, ...]
    cost: Cost
    irreversible: tuple[str, ...]
    undo: tuple[str, ...]
    schema: Literal["slackwater.plan/1"] = PLAN_SCHEMA
