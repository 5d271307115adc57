"""Small words that several pages share: moments, lengths of time, numbers that may be absent."""

from __future__ import annotations

from datetime import UTC, datetime

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400


def moment(epoch_ms: int | None) -> str:
    """A time for people, in UTC; ``-`` where there is none (Spark's watermark begins at 0)."""
    if not epoch_ms or epoch_ms < 0:
        return "-"
    return f"{datetime.fromtimestamp(epoch_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def iso(epoch_ms: int | None) -> str | None:
    """A time for programs."""
    if not epoch_ms or epoch_ms < 0:
        return None
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def span(milliseconds: int) -> str:
    """A length of time: ``850 ms``, ``12 s``, ``4 min``, ``3.5 h``, ``2.1 d``."""
    seconds = milliseconds / 1000
    if seconds < 1:
        return f"{milliseconds} ms"
    if seconds < MINUTE_S:
        return f"{seconds:.1f} s"
    if seconds < HOUR_S:
        return f"{seconds / MINUTE_S:.1f} min"
    return f"{seconds / HOUR_S:.1f} h" if seconds < DAY_S else f"{seconds / DAY_S:.1f} d"


def number(value: int | None) -> str:
    """A count, or ``-`` where it is not known."""
    return "-" if value is None else f"{value:,}"


def mark(batch: int | None) -> str:
    """A batch id, or ``-`` where there is none."""
    return "-" if batch is None or batch < 0 else str(batch)
