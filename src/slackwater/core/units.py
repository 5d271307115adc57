import os
import zoneinfo
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import product
from pathlib import Path

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
_SIZES = (("TiB", 1 << 40), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB))
_FACTORS = {"": 1, "b": 1} | {
    f"{letter}{suffix}": int(base**power)
    for power, letter in enumerate("kmgt", start=1)
    for suffix, base in (("", 1024), ("ib", 1024), ("b", 1000))
}
_CYCLE_YEARS, _LAST_YEAR = 400, 9999
_CYCLE_MS = 146_097 * 86_400_000
"""The period of the Gregorian calendar."""
_SECOND_MS, _MINUTE_S, _HOUR_S, _DAY_S = 1000, 60, 3600, 86_400


def utc_text(epoch_ms: int) -> str:
    """``2026-01-31 12:00:00 UTC``; a year outside 0 to 9999 has its sign, as in ISO 8601."""
    return iso_text(epoch_ms, "seconds").replace("T", " ").replace("Z", " UTC")


def iso_text(epoch_ms: int, timespec: str = "milliseconds") -> str:
    """``2026-01-31T12:00:00.000Z``; outside the years 0 to 9999 ``+12345-01-31T...``. A row with a wrong event time
    moves a watermark beyond Python's ``datetime``.
    """
    cycles, within_ms = divmod(epoch_ms, _CYCLE_MS)
    time = EPOCH + timedelta(milliseconds=within_ms)
    year = time.year + cycles * _CYCLE_YEARS
    shown = f"{year:04d}" if 0 <= year <= _LAST_YEAR else f"{year:+05d}"
    return shown + time.isoformat(timespec=timespec)[4:].replace("+00:00", "Z")


def duration_text(milliseconds: int) -> str:
    """``850 ms``, ``12.0 s``, ``4.5 min``, ``3.5 h``, ``2.1 d``."""
    seconds = milliseconds / _SECOND_MS
    if seconds < 1:
        return f"{milliseconds} ms"
    if seconds < _MINUTE_S:
        return f"{seconds:.1f} s"
    if seconds < _HOUR_S:
        return f"{seconds / _MINUTE_S:.1f} min"
    return f"{seconds / _HOUR_S:.1f} h" if seconds < _DAY_S else f"{seconds / _DAY_S:.1f} d"


def batch_range(first: int, last: int) -> str:
    """``batch 7``, or ``batches 7..9``."""
    return f"batch {first}" if first == last else f"batches {first}..{last}"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """``1 file``, ``2 files``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def size_text(size: int) -> str:
    """``900 bytes``, ``64 MiB``, ``1.5 GiB``."""
    for unit, factor in _SIZES:
        if size >= factor:
            return f"{size // factor} {unit}" if size % factor == 0 else f"{size / factor:.1f} {unit}"
    return f"{size} bytes"


def parse_size(text: str) -> int:
    """Bytes from ``512``, ``64MiB``, ``4 GiB``, ``4g`` (binary) or ``1GB`` (decimal). Raises ``ValueError``."""
    digits = text.strip().rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    unit = text.strip()[len(digits) :].lower()
    digits = digits.strip()
    if not (digits.isascii() and digits.isdigit() and unit in _FACTORS):
        raise ValueError(text)
    return int(digits) * _FACTORS[unit]


LOCAL_TIME = Path("/etc/localtime")
_FOLDER = "/zoneinfo/"
_UTC = "UTC"
_NOT_A_ZONE = (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError)
_LAST_ZONE_YEAR = 2037
_DAYS_APART = 30


def process_zone(value: str | None, local_time: Path = LOCAL_TIME) -> str:
    """The zone's name for a ``TZ`` value; ``None``: not set, the machine's zone holds."""
    if value is None:
        return _zone_of_file(local_time)
    name = value.removeprefix(":")
    return _zone_of_file(Path(name)) if name.startswith("/") else name or _UTC


def is_same_zone(one: str, other: str) -> bool:
    """Whether both have the same times, as ``UTC`` and ``Etc/UTC`` do."""
    if one == other:
        return True
    try:
        zones = zoneinfo.ZoneInfo(one), zoneinfo.ZoneInfo(other)
    except _NOT_A_ZONE:
        return False
    # Times of the zone that is asked.
    start = EPOCH.replace(tzinfo=None)
    days = range(0, (start.replace(year=_LAST_ZONE_YEAR + 1) - start).days, _DAYS_APART)
    times = (start + timedelta(days=day) for day in days)
    return all(zones[0].utcoffset(time) == zones[1].utcoffset(time) for time in times)


def _zone_of_file(file: Path) -> str:
    real = os.path.realpath(file)
    if _FOLDER in real:
        return real.rpartition(_FOLDER)[2]
    try:
        content = Path(real).read_bytes()
    except OSError:
        return _UTC
    # A copy of a zone's file, as in a container.
    for name, folder in product(sorted(zoneinfo.available_timezones()), zoneinfo.TZPATH):
        known = Path(folder, name)
        with suppress(OSError):
            if known.stat().st_size == len(content) and known.read_bytes() == content:
                return name
    return f"{file} {sha256(content).hexdigest()[:16]}"


def minor_release(version: str) -> tuple[int, ...]:
    """``(4, 0)`` of ``4.0.5``."""
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
