"""Each text that Spark has for a failure of the catalogue is recognised, with the values in it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from slackwater.diagnose.error_texts import recognise

TABLE = Path(__file__).with_name("messages.toml")
MESSAGES: list[dict[str, Any]] = tomllib.loads(TABLE.read_text())["message"]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda one: f"{one['codes'][0]} in {one['versions']}")
def test_a_text_of_the_catalogue_is_recognised(message: dict[str, Any]) -> None:
    best = recognise(message["text"])[0]

    assert best.codes[0] == message["codes"][0]
    assert set(message["codes"]) <= set(best.codes)
    assert message.get("params", {}).items() <= best.params.items()
