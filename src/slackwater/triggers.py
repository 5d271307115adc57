"""When a stream's batches start: Spark's own triggers, by Spark's own names.

Source: Structured Streaming programming guide, section "Triggers".
"""

from __future__ import annotations

import re

from slackwater.core.errors import PipelineError
from slackwater.core.masking import brief
from slackwater.core.program import Trigger

__all__ = ["available_now", "continuous", "once", "processing_time", "real_time"]

_UNITS_US = {
    "week": 604_800_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
_SPACE = r"[ \t\n\r\f\v]"
_ONE_PART = rf"([+-]?){_SPACE}*([0-9]{{0,19}})(\.[0-9]{{0,9}})?{_SPACE}+({'|'.join(_UNITS_US)})s?"
_PART = re.compile(_ONE_PART)
_PLAIN_PART = _ONE_PART.replace("(", "(?:")
_INTERVAL = re.compile(rf"(?:interval{_SPACE}+)?(?P<parts>{_PLAIN_PART}(?:{_SPACE}+{_PLAIN_PART})*)")
_TOO_LONG = 2**63


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


def real_time(batch_duration: str = "5 minutes") -> Trigger:
    """Real-time mode (Spark 4.1 and later): rows are written as they arrive, in batches of ``batch_duration``.

    Spark records the range of a batch when it has ended: a restart reads all of an interrupted one again.
    """
    return Trigger("real-time", _interval(batch_duration))


def as_trigger(value: Trigger | str | None) -> Trigger:
    """The trigger of a stream: an interval alone means processing time, ``None`` Spark's default."""
    if value is None:
        return processing_time("0 seconds")
    if isinstance(value, Trigger):
        return value
    return processing_time(value)


def waits_ms(trigger: Trigger) -> int | None:
    """The time between the starts of two batches, ``None`` for a trigger that does not wait."""
    microseconds = _microseconds(trigger.interval.lower()) if trigger.waits and trigger.interval else None
    return None if microseconds is None else microseconds // 1000


def _interval(text: object) -> str:
    """An interval that Spark can parse, as it was written. Raises PipelineError (``trigger-interval``)."""
    microseconds = _microseconds(text.strip().lower()) if isinstance(text, str) else None
    if not isinstance(text, str) or microseconds is None or not 0 <= microseconds < _TOO_LONG:
        raise PipelineError(
            "trigger-interval",
            "A trigger's interval cannot be parsed by Spark",
            expected='a number and a unit, such as "10 seconds", "1.5 seconds" or "1 hour 30 minutes"',
            found=brief(repr(text)),
            hint="units are week, day, hour, minute, second, millisecond and microsecond; only seconds can have "
            "fractions",
        )
    return text.strip()


def _microseconds(text: str) -> int | None:
    """The length of an interval, ``None`` where Spark would refuse it (``IntervalUtils.stringToInterval``)."""
    parts = _INTERVAL.fullmatch(text)
    if parts is None:
        return None
    total = 0
    for sign, integer, fraction, unit in _PART.findall(parts["parts"]):
        if (fraction and unit != "second") or not (integer or fraction.strip(".")):
            return None
        length = int(integer or 0) * _UNITS_US[unit] + int(fraction[1:7].ljust(6, "0") if fraction else 0)
        total += -length if sign == "-" else length
    return total
