"""When a stream's batches begin: Spark's own triggers, by Spark's own names.

Source: Structured Streaming programming guide, section "Triggers".
"""

from __future__ import annotations

from slackwater.errors import PipelineError
from slackwater.model.trigger import Trigger

__all__ = ["available_now", "continuous", "once", "processing_time"]


def processing_time(interval: str) -> Trigger:
    """A batch every ``interval`` (Spark's spelling: ``"10 seconds"``); ``"0 seconds"``: as soon as it can."""
    return Trigger("processing-time", _interval(interval))


def available_now() -> Trigger:
    """All that is there at the start, in as many batches as the source's limits make, then stop."""
    return Trigger("available-now")


def once() -> Trigger:
    """All that is there in one batch, then stop. Spark ignores the source's rate limits here; prefer available_now."""
    return Trigger("once")


def continuous(checkpoint_interval: str) -> Trigger:
    """Continuous processing with an epoch every ``checkpoint_interval``. Slackwater reads its marks, no more."""
    return Trigger("continuous", _interval(checkpoint_interval))


def as_trigger(value: Trigger | str | None) -> Trigger:
    """What a stream was given as its trigger: an interval alone means processing time, nothing Spark's default."""
    if value is None:
        return processing_time("0 seconds")
    if isinstance(value, Trigger):
        return value
    return processing_time(value)


def _interval(text: object) -> str:
    if not isinstance(text, str) or not text.strip():
        raise PipelineError(
            "trigger-interval",
            "A trigger's interval must be written as Spark writes it",
            expected='a text such as "10 seconds"',
            found=repr(text),
        )
    return text.strip()
