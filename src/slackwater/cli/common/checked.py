"""The streams of a pipeline file, each with the verdict on its code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from slackwater.core.errors import SlackwaterError
from slackwater.core.stream_verdict import StreamVerdict
from slackwater.core.verdict import Effect


@dataclass(frozen=True, slots=True)
class CheckedStream:
    """A stream with its verdict, or with the error of a stream that cannot be compared. ``next`` are the ways on.

    ``settings`` are the values in the session of the settings that Spark takes from a checkpoint.
    """

    stream: str
    verdict: StreamVerdict | None = None
    error: SlackwaterError | None = None
    next: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckedPipeline:
    """All streams that were compared."""

    reference: str
    streams: tuple[CheckedStream, ...]

    @property
    def effect(self) -> Effect | None:
        """The gravest effect of a change, ``None`` where no stream was compared."""
        found = [one.verdict.effect for one in self.streams if one.verdict is not None]
        return max((effect for effect in found if effect is not None), default=None)

    @property
    def starts(self) -> bool:
        """Whether a run would start all streams."""
        return all(one.verdict is not None and one.verdict.verdict.starts for one in self.streams)

    @property
    def is_compared(self) -> bool:
        """Whether each stream was compared with the whole program that made its state, if it has state."""
        return all(one.verdict is not None and one.verdict.basis in ("recorded", "nothing") for one in self.streams)

    @property
    def error(self) -> SlackwaterError | None:
        """The error of the first stream that cannot be compared."""
        return next((one.error for one in self.streams if one.error is not None), None)
