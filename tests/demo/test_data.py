"""The demo's input is the year it claims to be, and the same one every time."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import accumulate, pairwise
from pathlib import Path

import pytest

from examples.demo import data


@pytest.fixture(scope="module")
def lines() -> tuple[data.Line, ...]:
    return data.arriving_lines()


def test_every_hour_of_the_three_stations_is_there_once(lines: tuple[data.Line, ...]) -> None:
    assert Counter(line.station for line in lines) == {"EWR": 8703, "JFK": 8706, "LGA": 8706}
    assert len({(line.station, line.measured_at) for line in lines}) == 26115
    assert min(line.measured_at for line in lines) == datetime(2013, 1, 1, 6, tzinfo=UTC)
    assert max(line.measured_at for line in lines) == datetime(2013, 12, 30, 23, tzinfo=UTC)


def test_a_reading_is_what_the_weather_service_measured(lines: tuple[data.Line, ...]) -> None:
    reading = json.loads(lines[0].text)
    assert reading == {
        "station": "EWR",
        "measured_at": "2013-01-01T06:00:00Z",
        "temperature_f": 39.02,
        "humidity_percent": 59.37,
        "wind_speed_mph": 10.357019999999999,
        "rain_inches": 0.0,
        "pressure_hpa": 1012.0,
    }


def test_lines_come_in_the_order_they_arrive(lines: tuple[data.Line, ...]) -> None:
    arrivals = [line.arrives_at for line in lines]
    assert arrivals == sorted(arrivals)


def test_lines_are_either_late_enough_to_be_dropped_or_so_little_that_they_count(lines: tuple[data.Line, ...]) -> None:
    newest = accumulate((line.measured_at for line in lines), max)
    behind = [seen - line.measured_at for line, seen in zip(lines, newest, strict=True)]
    late = Counter("within" if delay < timedelta(days=2) else "beyond" for delay in behind if delay > timedelta(0))
    # Beyond means beyond the two days of delay, and the days that the two newest batches can span.
    assert not [delay for delay in behind if timedelta(days=2) < delay < timedelta(days=59)]
    assert late["beyond"] == 7
    assert late["within"] == 269


def test_malformed_lines_are_cut_short_or_say_the_wrong_thing(lines: tuple[data.Line, ...]) -> None:
    assert Counter(line.damage for line in lines) == {"none": 26076, "cut": 26, "mistyped": 13}
    for line in lines:
        if line.damage == "cut":
            with pytest.raises(json.JSONDecodeError):
                json.loads(line.text)
        if line.damage == "mistyped":
            assert json.loads(line.text)["temperature_f"] == "n/a"


def test_files_hold_all_lines_in_order_each_a_second_younger(lines: tuple[data.Line, ...], tmp_path: Path) -> None:
    laid_down = data.lay_down(lines, tmp_path / "landing", files=5)
    files = sorted((tmp_path / "landing").iterdir())
    assert laid_down == data.Input(rows=26115, late=276, malformed=39, files=5)
    assert [line for file in files for line in file.read_text().splitlines()] == [line.text for line in lines]
    times = [file.stat().st_mtime for file in files]
    assert [later - earlier for earlier, later in pairwise(times)] == [1.0] * 4


def test_the_year_is_the_same_every_time(lines: tuple[data.Line, ...]) -> None:
    assert data.arriving_lines() == lines
