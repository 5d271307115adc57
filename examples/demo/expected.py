"""The rows that ``weather_tables.py`` must write, computed from the demo's input in plain Python, without Spark."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal

from examples.demo.compare import Row, row_of
from examples.demo.data import Line
from examples.demo.places import STREAMS

DELAY = timedelta(days=2)
"""How far the watermark is behind the newest reading."""
_PLACES = {
    "temperature_f": 2,
    "humidity_percent": 2,
    "wind_speed_mph": 2,
    "rain_inches": 2,
    "pressure_hpa": 1,
}
"""The decimal places of a reading's columns."""
_PLACES_OF_A_MEAN = 6
"""Spark's mean of a DECIMAL(5, 2) is a DECIMAL(9, 6)."""


@dataclass(frozen=True, slots=True)
class _Reading:
    line: Line
    values: Mapping[str, object]


def expected_rows(lines: Sequence[Line], came_from: Sequence[str]) -> dict[str, Counter[Row]]:
    """What each stream must write for these lines, each with where it came from, in the order they arrive."""
    raw, rejects, readings = Counter[Row](), Counter[Row](), list[_Reading]()
    for line, origin in zip(lines, came_from, strict=True):
        columns: dict[str, object] = {"line": line.text, "came_from": origin}
        raw[row_of(columns)] += 1
        reading = _reading(line)
        if isinstance(reading, str):
            rejects[row_of({**columns, "reason": reading})] += 1
        else:
            readings.append(reading)
    usable = Counter(row_of(reading.values) for reading in readings)
    days = Counter(row_of(day) for day in _days(readings))
    return dict(zip(STREAMS, (raw, usable, rejects, days), strict=True))


def _reading(line: Line) -> _Reading | str:
    """The line's reading, or the reason why it has none."""
    try:
        fields = json.loads(line.text, parse_float=Decimal, parse_int=Decimal)
    except json.JSONDecodeError:
        return "not JSON"
    if isinstance(fields["temperature_f"], str):
        return "a value of the wrong type"
    if fields["temperature_f"] is None:
        return "no temperature"
    numbers = {name: None if fields[name] is None else _rounded(fields[name], _PLACES[name]) for name in _PLACES}
    return _Reading(line, {"station": line.station, "measured_at": line.measured_at, **numbers})


def _days(readings: Sequence[_Reading]) -> Iterator[dict[str, object]]:
    """The days that the last watermark has passed. A reading that is later than the watermark's delay is dropped."""
    temperatures: defaultdict[tuple[datetime, str], list[Decimal]] = defaultdict(list)
    for reading in readings:
        if reading.line.arrives_at - reading.line.measured_at <= DELAY:
            day = datetime.combine(reading.line.measured_at.astimezone(UTC).date(), time(), UTC)
            temperature = reading.values["temperature_f"]
            if isinstance(temperature, Decimal):
                temperatures[day, reading.line.station].append(temperature)
    watermark = max(reading.line.measured_at for reading in readings) - DELAY
    for (day, station), measured in temperatures.items():
        if day + timedelta(days=1) <= watermark:
            mean = _rounded(sum(measured, Decimal(0)) / len(measured), _PLACES_OF_A_MEAN)
            yield {
                "day": day,
                "station": station,
                "readings": len(measured),
                "mean_temperature_f": _rounded(mean, 1),
            }


def _rounded(number: Decimal, places: int) -> Decimal:
    return number.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
