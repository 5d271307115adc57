"""The time zone of a process, as the C library finds it, and whether two of them are the same."""

from __future__ import annotations

import datetime as dt
import os
import zoneinfo
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

LOCAL_TIME = Path("/etc/localtime")
_FOLDER = "/zoneinfo/"
_UTC = "UTC"
_NOT_A_ZONE = (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError)
_FIRST_YEAR, _LAST_YEAR = 1970, 2037
_HOURS_APART = 24 * 30


def process_zone(value: str | None, local_time: Path = LOCAL_TIME) -> str:
    """The zone's name, of a ``TZ`` with this value; ``None``: it is not set, so that the machine's zone holds."""
    if value is None:
        return _zone_of_file(local_time)
    name = value.removeprefix(":")
    return _zone_of_file(Path(name)) if name.startswith("/") else name or _UTC


def is_same_zone(one: str, other: str) -> bool:
    """Whether both have the same times: several names, such as ``UTC`` and ``Etc/UTC``, are of one zone."""
    if one == other:
        return True
    try:
        zones = zoneinfo.ZoneInfo(one), zoneinfo.ZoneInfo(other)
    except _NOT_A_ZONE:
        return False
    return all(zones[0].utcoffset(time) == zones[1].utcoffset(time) for time in _times())


def _zone_of_file(file: Path) -> str:
    real = os.path.realpath(file)
    if _FOLDER in real:
        return real.rpartition(_FOLDER)[2]
    try:
        content = Path(real).read_bytes()
    except OSError:
        return _UTC
    # A copy of a zone's file, as in a container.
    folders = [Path(folder) for folder in zoneinfo.TZPATH]
    for name in sorted(zoneinfo.available_timezones()):
        if any(_has(folder / name, content) for folder in folders):
            return name
    return f"{file} {sha256(content).hexdigest()[:16]}"


def _has(file: Path, content: bytes) -> bool:
    try:
        return file.stat().st_size == len(content) and file.read_bytes() == content
    except OSError:
        return False


def _times() -> Iterator[dt.datetime]:
    time = dt.datetime(_FIRST_YEAR, 1, 1, tzinfo=None)  # noqa: DTZ001 - a time of the zone that is asked
    while time.year <= _LAST_YEAR:
        yield time
        time += dt.timedelta(hours=_HOURS_APART)
