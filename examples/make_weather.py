"""Writes input for weather.py: made-up hourly readings as JSON lines below ``landing/``, the same ones every time.

    python make_weather.py [FILES]

writes the first FILES files of ten days each (default: 6), or the next ones where there are some already. One reading
in 97 arrives with the next file, late but within the watermark's delay; one line in 211 is cut short and is not JSON.
"""

import json
import math
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

STATIONS = ("EWR", "JFK", "LGA")
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
HOURS = 10 * 24
LATE_EVERY, LATE_HOURS = 97, 24
CUT_EVERY = 211


def write(folder: Path, files: int) -> None:
    """Add files to the folder: the readings of three stations in ten days, ordered by the time they arrive."""
    folder.mkdir(exist_ok=True)
    first = len(list(folder.glob("readings-*.json")))
    for number in range(first, first + files):
        path = folder / f"readings-{number:04d}.json"
        # Readings of the last day before this file may be late, and arrive with it.
        candidates = range((number * HOURS - LATE_HOURS) * len(STATIONS), (number + 1) * HOURS * len(STATIONS))
        lines = [line(position) for position in candidates if position >= 0 and arrives_with(position) == number]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        # Spark's file source reads files in the order of their modification times.
        os.utime(path, (FIRST.timestamp() + number, FIRST.timestamp() + number))


def arrives_with(position: int) -> int:
    """The number of the file that a reading arrives with."""
    hour = position // len(STATIONS)
    return (hour + LATE_HOURS if position % LATE_EVERY == LATE_EVERY - 1 else hour) // HOURS


def line(position: int) -> str:
    """The reading at this position in the order of measurement."""
    hour, station = divmod(position, len(STATIONS))
    day_wave = math.sin(2 * math.pi * (hour % 24 - 9) / 24)
    year_wave = math.sin(2 * math.pi * (hour / 24 - 110) / 365)
    reading = {
        "station": STATIONS[station],
        "measured_at": (FIRST + timedelta(hours=hour)).isoformat(),
        "temperature_f": round(54 + 22 * year_wave + 7 * day_wave + station, 2),
        "humidity_percent": round(62 - 15 * day_wave, 2),
        "wind_speed_mph": round(9 + 5 * math.sin(position / 31), 2),
        "rain_inches": 0.1 if position % 41 == 0 else 0.0,
        "pressure_hpa": round(1015 + 8 * math.sin(hour / 53), 1),
    }
    text = json.dumps(reading)
    return text[: len(text) * 2 // 3] if position % CUT_EVERY == CUT_EVERY - 1 else text


if __name__ == "__main__":
    write(Path("landing"), int(sys.argv[1]) if len(sys.argv) > 1 else 6)
