"""The comparison sees a row that is changed, missing, doubled or not committed."""

import ast
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import accumulate, pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from examples.demo import data
from examples.demo.compare import Row, committed_files, compare, row_of, rows_of, timestamp_of, up_to_then
from examples.demo.expected import expected_rows
from examples.demo.places import STREAMS
from examples.demo.story import RAW_FROM_KAFKA, UPGRADE, UPGRADED_STREAM
from examples.demo.topic import TOPIC, positions
from slackwater.cli.verbs.init import read_example, with_change, with_stream_of_change

ROWS = [{"station": "EWR", "mean": 38.7}, {"station": "JFK", "mean": 38.9}, {"station": "JFK", "mean": 38.9}]


def write(output: Path, name: str, rows: list[dict[str, object]], *, batch: str | None) -> None:
    (output / "_spark_metadata").mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.Table.from_pylist(rows), output / name)
    if batch is not None:
        log(output, batch, [name])


def log(output: Path, batch: str, names: list[str]) -> None:
    entries = [
        json.dumps(
            {"path": f"file:///elsewhere/{name}", "size": 1, "isDir": False, "modificationTime": 1, "action": "add"}
        )
        for name in names
    ]
    (output / "_spark_metadata" / batch).write_text("\n".join(["v1", *entries]))


@pytest.fixture
def expected(tmp_path: Path) -> Counter[Row]:
    write(tmp_path / "expected", "part-0.parquet", ROWS, batch="0")
    return rows_of(tmp_path / "expected")


@pytest.mark.parametrize(
    ("found", "missing", "extra"),
    [
        (ROWS[::-1], 0, 0),
        ([{"station": "EWR", "mean": 38.8}, *ROWS[1:]], 1, 1),
        (ROWS[:2], 1, 0),
        ([*ROWS, ROWS[0]], 0, 1),
        ([{**row, "rain": None} for row in ROWS], 3, 3),
    ],
    ids=["other order", "changed row", "one of two equal rows missing", "doubled row", "one more column"],
)
def test_rows_are_compared_as_a_multiset(
    expected: Counter[Row], tmp_path: Path, found: list[dict[str, object]], missing: int, extra: int
) -> None:
    write(tmp_path / "found", "part-0.parquet", found, batch="0")
    comparison = compare("gold", expected, rows_of(tmp_path / "found"))
    assert (comparison.missing, comparison.extra) == (missing, extra)
    assert comparison.equal is (missing == extra == 0)


def test_files_that_the_manifest_does_not_name_do_not_count(expected: Counter[Row], tmp_path: Path) -> None:
    write(tmp_path / "found", "part-0.parquet", ROWS, batch="0")
    write(tmp_path / "found", "part-left-by-a-killed-task.parquet", ROWS, batch=None)
    assert compare("gold", expected, rows_of(tmp_path / "found")).equal


def test_files_without_rows_and_compacted_entries_are_read(tmp_path: Path) -> None:
    empty = pa.Table.from_pylist([], schema=pa.schema([("station", pa.string())]))
    output = tmp_path / "found"
    for batch in range(12):
        write(output, f"part-{batch}.parquet", [{"batch": batch}], batch=None)
    parquet.write_table(empty, output / "part-12.parquet")
    # Spark keeps the entries that it has compacted for a while.
    for batch in range(13):
        log(output, str(batch), [f"part-{batch}.parquet"])
    (output / "_spark_metadata" / "9").unlink()
    log(output, "9.compact", [f"part-{batch}.parquet" for batch in range(10)])
    assert len(committed_files(output)) == 13
    assert {dict(row)["batch"] for row in rows_of(output)} == set(range(12))


def test_old_rows_up_to_a_time_and_new_ones_after_it() -> None:
    def row(day: int, version: str) -> Row:
        return (("day", datetime(2013, 1, day)), ("version", version))  # noqa: DTZ001 - as pyarrow reads Spark's

    old = Counter([row(1, "old"), row(2, "old"), row(2, "old"), row(3, "old")])
    new = Counter([row(1, "new"), row(3, "new"), row(3, "new")])
    expected = up_to_then(old, new, lambda candidate: timestamp_of(candidate, "day") < datetime(2013, 1, 3, tzinfo=UTC))
    assert expected == Counter([row(1, "old"), row(2, "old"), row(2, "old"), row(3, "new"), row(3, "new")])


# The demo's input is the year it claims to be, and the same one every time.


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


# The rows that plain Python expects: few enough here to be seen.


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


# The examples are found, and the demo's changes of them do what they describe.


def functions(text: str) -> dict[str, str]:
    return {node.name: ast.unparse(node) for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(("change", "function"), [(UPGRADE, "daily"), (RAW_FROM_KAFKA, "raw")])
def test_a_change_replaces_one_function_and_nothing_else(change: str, function: str) -> None:
    before, after = (
        functions(read_example("weather.py")),
        functions(with_change(read_example("weather.py"), read_example(change))),
    )
    assert {name for name in before if before[name] != after[name]} == {function}
    assert before.keys() == after.keys()


def test_a_changed_stream_keeps_its_decorator_and_gets_its_imports() -> None:
    text = with_change(read_example("weather.py"), read_example(RAW_FROM_KAFKA))
    assert "import os\n" in text
    assert "@pipeline.stream(name='sensor-raw-ingest'" in functions(text)["raw"]
    assert '.format("kafka")' in text


def test_the_pipeline_of_tables_reads_kafka_by_the_same_change() -> None:
    tables = read_example("weather_tables.py")
    before, after = functions(tables), functions(with_change(tables, read_example(RAW_FROM_KAFKA)))
    assert {name for name in before if before[name] != after[name]} == {"raw"}
    assert "sinks.delta('out/raw')" in after["raw"]


def test_old_and_new_code_stand_side_by_side() -> None:
    before = functions(read_example("weather.py"))
    upgrade = read_example(UPGRADE)
    after = functions(
        with_stream_of_change(read_example("weather.py"), upgrade, renamed="upgraded_daily", stream=UPGRADED_STREAM)
    )
    assert set(after) - set(before) == {"upgraded_daily", "upgraded_gold"}
    assert after["daily"] == before["daily"]
    assert after["upgraded_daily"] == functions(upgrade)["daily"].replace("def daily(", "def upgraded_daily(")
