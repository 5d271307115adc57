"""The rows that plain Python expects: few enough here to be seen."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from examples.demo import data
from examples.demo.compare import row_of
from examples.demo.expected import expected_rows
from examples.demo.places import STREAMS
from examples.demo.topic import TOPIC, positions

FIRST = datetime(2013, 1, 1, tzinfo=UTC)


def line(hour: int, temperature: str, *, late: timedelta = timedelta(0)) -> data.Line:
    measured_at = FIRST + timedelta(hours=hour)
    text = (
        f'{{"station": "EWR", "measured_at": "{measured_at:%Y-%m-%dT%H:%M:%SZ}", "temperature_f": {temperature}, '
        '"humidity_percent": 59.375, "wind_speed_mph": null, "rain_inches": 0, "pressure_hpa": 1012.05}'
    )
    return data.Line(text, "EWR", measured_at, measured_at + late, "none")


def test_each_line_has_a_reading_or_a_reason() -> None:
    lines = [line(0, "1.005"), line(1, "null"), line(2, '"n/a"'), line(3, "2, ..")]
    raw, readings, rejects, _ = (expected_rows(lines, ["a", "a", "b", "b"])[stream] for stream in STREAMS)
    assert raw[row_of({"line": lines[2].text, "came_from": "b"})] == 1
    assert raw.total() == 4
    values = {
        "station": "EWR",
        "measured_at": FIRST,
        "temperature_f": Decimal("1.01"),
        "humidity_percent": Decimal("59.38"),
        "wind_speed_mph": None,
        "rain_inches": Decimal("0.00"),
        "pressure_hpa": Decimal("1012.1"),
    }
    assert readings == Counter([row_of(values)])
    assert Counter(dict(row)["reason"] for row in rejects) == {
        "no temperature": 1,
        "a value of the wrong type": 1,
        "not JSON": 1,
    }


def test_a_day_is_written_when_the_watermark_has_passed_it_without_what_came_too_late() -> None:
    lines = [
        line(0, "1"),
        line(23, "2", late=timedelta(hours=45)),
        line(5, "100", late=timedelta(days=60)),
        line(24, "3"),
        line(72, "4"),
    ]
    days = expected_rows(lines, [""] * 5)["sensor-merge-gold"]
    day = {"day": FIRST, "station": "EWR", "readings": 2, "mean_temperature_f": Decimal("1.5")}
    assert days == Counter([row_of(day)])
    later = expected_rows([*lines, line(96, "5")], [""] * 6)["sensor-merge-gold"]
    second = {"day": FIRST + timedelta(days=1), "station": "EWR", "readings": 1, "mean_temperature_f": Decimal("3.0")}
    assert later == Counter([row_of(day), row_of(second)])


def test_a_line_is_known_by_its_place_in_the_topic_or_by_its_file() -> None:
    lines = data.arriving_lines()
    places = positions(lines)
    assert len(set(places)) == len(lines)
    assert {place.rpartition("-")[0] for place in places} == {f"{TOPIC}-{number}" for number in range(3)}
    files = data.file_names(lines)
    assert len(files) == len(lines)
    assert Counter(files)["readings-0001.json"] == len(lines) // data.FILES
