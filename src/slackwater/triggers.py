"""When a stream's batches start: Spark's own triggers, by Spark's own names.

Source: Structured Streaming programming guide, section "Triggers".
"""

from __future__ import annotations

from slackwater.errors import PipelineError
from slackwater.model.trigger import Trigger

__all__ = ["available_now", "continuous", "once", "processing_time"]


def processing_time(interval: str) -> Trigger:
    """A batch every ``interval`` (``"10 seconds"``); with ``"0 seconds"`` as soon as the previous one has ended."""
    return Trigger("processing-time", _interval(interval))


def available_now() -> Trigger:
    """Everything available at the start, in as many batches as the source's limits require, then stop."""
    return Trigger("available-now")


def once() -> Trigger:
    """Everything available, in one batch, then stop. Spark ignores the source's rate limits; prefer available_now."""
    return Trigger("once")


def continuous(checkpoint_interval: str) -> Trigger:
    """Continuous processing with an epoch every ``checkpoint_interval``. Slackwater only reads its marks."""
    return Trigger("continuous", _interval(checkpoint_interval))


def as_trigger(value: Trigger | str | None) -> Trigger:
    """The trigger of a stream: an interval alone means processing time, ``None`` Spark's default."""
    if value is None:
        return processing_time("0 seconds")
    if isinstance(value, Trigger):
        return value
    return processing_time(value)


def _interval(interval: object) -> str:
    if not isinstance(interval, str) or not interval.strip():
        raise PipelineError(
            "trigger-interval",
            "Invalid interval of a trigger",
            expected='a string such as "10 seconds"',
            found=repr(interval),
        )
    return interval.strip()
