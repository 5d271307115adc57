from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.errors import FormatError
from slackwater.home.home import Home, StreamFile

CONTENT = StreamFile("2c1f", generation=2, sink={"kind": "files", "path": "file:///gold/hourly"})


def test_everything_of_a_stream_lies_below_its_folder(tmp_path: Path) -> None:
    home = Home(tmp_path)
    folder = tmp_path / "streams" / "weather" / "hourly"
    assert home.ledger_url == str(tmp_path / "ledger.db")
    assert home.stream_folder("weather", "hourly") == folder
    assert home.checkpoint("weather", "hourly", 1) == folder / "checkpoints" / "0001"
    assert home.checkpoint("weather", "hourly", 12345) == folder / "checkpoints" / "12345"
    assert home.operation("weather", "hourly", "20260131-1") == folder / "operations" / "20260131-1"


def test_a_relative_home_stays_where_it_was_when_the_working_directory_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    home = Home(".slackwater")
    monkeypatch.chdir("/")
    assert home.path == tmp_path / ".slackwater"


def test_a_stream_file_comes_back_as_it_was_written(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert home.read_stream_file("weather", "hourly") is None
    home.write_stream_file("weather", "hourly", CONTENT)
    assert home.read_stream_file("weather", "hourly") == CONTENT


def test_replacing_a_stream_file_leaves_nothing_beside_it(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for generation in (1, 2):
        home.write_stream_file("weather", "hourly", StreamFile("2c1f", generation, {}))
    assert [path.name for path in home.stream_folder("weather", "hourly").iterdir()] == ["stream.json"]


@pytest.mark.parametrize("text", ["", '{"id": "2c1f"', "[]", '{"id": "2c1f", "generation": "second", "sink": {}}', "7"])
def test_a_damaged_stream_file_is_told_and_not_taken_for_none(tmp_path: Path, text: str) -> None:
    home = Home(tmp_path)
    home.write_stream_file("weather", "hourly", CONTENT)
    path = home.stream_folder("weather", "hourly") / "stream.json"
    path.write_text(text)
    with pytest.raises(FormatError) as caught:
        home.read_stream_file("weather", "hourly")
    assert (caught.value.code, caught.value.where) == ("stream-file-damaged", str(path))
