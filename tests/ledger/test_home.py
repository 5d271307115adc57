from dataclasses import replace
from pathlib import Path

import pytest

from slackwater.core.errors import FormatError
from slackwater.core.records import GenerationRecord
from slackwater.ledger.home import Home, StreamFile, read_stream_file, streams_of, write_stream_file
from tests.support.errors import raises_code

CONTENT = StreamFile(
    "2c1f",
    generation=2,
    sink={"kind": "files", "path": "file:///gold/hourly"},
    output_mode="append",
    pipeline_file="/project/weather.py",
    generations=(
        GenerationRecord("weather/hourly", 1, "/gold/checkpoints/0001", "61a8"),
        GenerationRecord("weather/hourly", 2, "/gold/0002", "61a8", 7, {"operators": []}, 1, {"0": 7}),
    ),
)


def test_everything_of_a_stream_lies_below_its_folder(tmp_path: Path) -> None:
    home = Home(tmp_path)
    folder = tmp_path / "streams" / "weather" / "hourly"
    assert home.ledger_url == str(tmp_path / "ledger.db")
    assert home.stream_folder("weather", "hourly") == str(folder)
    assert home.checkpoint("weather", "hourly", 1) == str(folder / "checkpoints" / "0001")
    assert home.checkpoint("weather", "hourly", 12345) == str(folder / "checkpoints" / "12345")
    assert home.operation("weather", "hourly", "20260131-1") == str(folder / "operations" / "20260131-1")


def test_a_relative_home_stays_where_it_was_when_the_working_directory_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    home = Home(".slackwater")
    monkeypatch.chdir("/")
    assert home.location == str(tmp_path / ".slackwater")


def test_a_stream_file_comes_back_as_it_was_written(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert read_stream_file(home, "weather", "hourly") is None
    write_stream_file(home, "weather", "hourly", CONTENT)
    assert read_stream_file(home, "weather", "hourly") == CONTENT


def test_replacing_a_stream_file_leaves_nothing_beside_it(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for generation in (1, 2):
        write_stream_file(home, "weather", "hourly", replace(CONTENT, generation=generation))
    assert [path.name for path in Path(home.stream_folder("weather", "hourly")).iterdir()] == ["stream.json"]


@pytest.mark.parametrize("text", ["", '{"id": "2c1f"', "[]", '{"id": "2c1f", "generation": "second", "sink": {}}', "7"])
def test_a_damaged_stream_file_is_an_error_and_not_taken_for_none(tmp_path: Path, text: str) -> None:
    home = Home(tmp_path)
    write_stream_file(home, "weather", "hourly", CONTENT)
    path = Path(home.stream_folder("weather", "hourly")) / "stream.json"
    path.write_text(text)
    with raises_code(FormatError, "stream-file-damaged", where=str(path)):
        read_stream_file(home, "weather", "hourly")


def test_streams_are_found_by_their_stream_files(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for pipeline, name in (("weather", "hourly"), ("clicks", "per_page"), ("clicks", "raw")):
        write_stream_file(home, pipeline, name, CONTENT)
    assert list(streams_of(home)) == [("clicks", "per_page"), ("clicks", "raw"), ("weather", "hourly")]


def test_only_folders_with_numbers_are_generations(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert home.generation_numbers("weather", "hourly") == []
    for name in ("0001", "0012", "12345", "tmp", "-1", "00000000000000001", "\u0663"):
        Path(home.stream_folder("weather", "hourly") / "checkpoints" / name).mkdir(parents=True)
    assert home.generation_numbers("weather", "hourly") == [1, 12, 12345]
