"""What is known of a stream at one time: pure data, gathered once, from which plans and reports are derived.

What could not be gathered is a fact too: the error is kept in its place, and raised only for those who need the fact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from slackwater.core.errors import SlackwaterError
from slackwater.core.records import History, StreamRecord
from slackwater.core.snapshot import Snapshot
from slackwater.sources.common.contract import SourceRange

Problem = SlackwaterError | OSError
Fact = TypeVar("Fact")


@dataclass(frozen=True, slots=True)
class CheckpointFacts:
    """The snapshot of a stream, and what the same walk of its checkpoint shows beyond it.

    ``states`` are the batches whose state can be loaded, without those that need a damaged file. ``size_bytes`` is the
    size of the checkpoint, ``None`` where asking for the size of each file would take too long.
    """

    snapshot: Snapshot
    states: frozenset[int]
    size_bytes: int | None


@dataclass(frozen=True, slots=True)
class PipelineFacts:
    """The pipeline file as it is now, read without running it. Empty where no file is known.

    ``digest`` is the SHA-256 of the file and the project's modules that it imports, in hexadecimal; ``environment`` has
    the names of the variables that the file reads. ``changed`` says what of the environment of functions is not as it
    was when they made the newest state.
    """

    digest: str = ""
    environment: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """One stream. The fields whose type has ``Problem`` may have an error in place of the fact.

    ``stream`` names the pipeline file that was asked for. ``checkpoint_seen`` has marks, damage, output, operation,
    lease and last run; ``recorded`` the batches in the ledger, with the settings and code of their runs, updated from
    checkpoint and output. ``next_generation`` is the number that no generation has had yet. ``executed`` is what
    batches have read, empty where nobody asked for it. ``directory`` is that of a checkpoint that the user's own code
    names, or its URI on another store, ``None`` where Slackwater runs the stream.
    """

    stream: StreamRecord
    checkpoint_seen: CheckpointFacts | Problem
    recorded: History | Problem
    pipeline_read: PipelineFacts | Problem
    directory: str | Problem | None
    next_generation: int
    executed: tuple[SourceRange, ...] = ()

    @property
    def checkpoint(self) -> CheckpointFacts:
        """The checkpoint and the output. Raises what kept them from being read."""
        return known(self.checkpoint_seen)

    @property
    def snapshot(self) -> Snapshot:
        """The stream at that time. Raises what kept it from being read."""
        return self.checkpoint.snapshot

    @property
    def history(self) -> History:
        """The recorded batches. Raises what kept them from being read."""
        return known(self.recorded)

    @property
    def pipeline(self) -> PipelineFacts:
        """The pipeline file. Raises PipelineError where it cannot be read."""
        return known(self.pipeline_read)

    @property
    def adopted(self) -> str | None:
        """``directory``. Raises Refused where no other directory can be put in its place."""
        return known(self.directory)

    def problems(self) -> Iterator[Problem]:
        """What could not be gathered."""
        for fact in (self.directory, self.checkpoint_seen, self.recorded, self.pipeline_read):
            if isinstance(fact, SlackwaterError | OSError):
                yield fact


def known(fact: Fact | Problem) -> Fact:
    """The fact. Raises the error that is in its place."""
    if isinstance(fact, SlackwaterError | OSError):
        raise fact
    return fact
