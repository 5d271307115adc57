"""Facts of a stream at a point in time. Access to a fact that could not be read raises its error."""

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
    """``states`` are loadable without damaged files. ``size_bytes`` is ``None`` if asking for sizes would take too
    long.
    """

    snapshot: Snapshot
    states: frozenset[int]
    size_bytes: int | None


@dataclass(frozen=True, slots=True)
class PipelineFacts:
    """The pipeline file, read without running it.

    ``digest`` is the SHA-256 of the file and the project's imported modules; ``environment`` has the names of variables
    that it reads. ``changed``: differences between the functions' environment and the newest state's.
    """

    digest: str = ""
    environment: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """A stream; an error may replace a fact.

    ``checkpoint_seen`` has marks, damage, output, operation, lease and last run; ``recorded`` the ledger's batches,
    updated from checkpoint and output. No generation has had the number ``next_generation``. ``directory`` is the
    checkpoint's path in the user's code.
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
        return known(self.checkpoint_seen)

    @property
    def snapshot(self) -> Snapshot:
        return self.checkpoint.snapshot

    @property
    def history(self) -> History:
        return known(self.recorded)

    @property
    def pipeline(self) -> PipelineFacts:
        """Raises PipelineError if it cannot be read."""
        return known(self.pipeline_read)

    @property
    def adopted(self) -> str | None:
        """The directory. Raises Refused if no other directory can replace it."""
        return known(self.directory)

    def problems(self) -> Iterator[Problem]:
        for fact in (self.directory, self.checkpoint_seen, self.recorded, self.pipeline_read):
            if isinstance(fact, SlackwaterError | OSError):
                yield fact


def known(fact: Fact | Problem) -> Fact:
    """The fact. Raises the error in its place."""
    if isinstance(fact, SlackwaterError | OSError):
        raise fact
    return fact
