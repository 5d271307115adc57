"""What is printed as JSON can be parsed by any parser, whatever numbers are in the data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slackwater.cli.common.console import print_json
from tests.cli.conftest import Slackwater
from tests.support.homes import STREAM, make_home


def test_floats_that_are_no_numbers_are_strings(capsys: pytest.CaptureFixture[str]) -> None:
    infinite = float("inf")
    print_json({"rows": [{"value": float("nan"), "all": (infinite, -infinite, 0.5)}], "count": 1})

    text = capsys.readouterr().out

    found = json.loads(text, parse_constant=pytest.fail)
    assert found == {"rows": [{"value": "NaN", "all": ["Infinity", "-Infinity", 0.5]}], "count": 1}


def test_a_raw_file_as_json(slackwater: Slackwater, tmp_path: Path) -> None:
    make_home(tmp_path)

    done = slackwater("inspect", STREAM, "--raw", "offsets/0", "--format", "json")

    assert done.code == 0
    assert (done.document["schema"], done.document["path"]) == ("slackwater.file/1", "offsets/0")
    assert done.document["text"].startswith("v1\n{")
    assert slackwater("inspect", STREAM, "--raw", "offsets/0").out == done.document["text"]
