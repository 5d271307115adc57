"""Formats that several pages share: timestamps, durations and numbers that may be absent."""

from __future__ import annotations

from slackwater.model.units import duration_text, utc_text


def timestamp(epoch_ms: int | None) -> str:
    """A timestamp in UTC; ``-`` where there is none (Spark's watermark starts at 0)."""
    if not epoch_ms or epoch_ms < 0:
        return "-"
    return utc_text(epoch_ms)


def span(milliseconds: int) -> str:
    """A duration for people."""
    return duration_text(milliseconds)


def number(value: int | None) -> str:
    """A count, or ``-`` where it is not known."""
    return "-" if value is None else f"{value:,}"


def counted(count: int, noun: str) -> str:
    """A count with its noun: ``1 file``, ``2 files``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def mark(batch: int | None) -> str:
    """A batch id, or ``-`` where there is none."""
    return "-" if batch is None or batch < 0 else str(batch)
