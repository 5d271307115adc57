"""The list of verbs stands beside the verbs, so that it can be shown without importing them; both must say the same."""

from __future__ import annotations

import pytest

from slackwater.cli.main import VERBS, make_app


def _help_of(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    make_app(arguments)(args=["--help"], prog_name="slackwater", standalone_mode=False)
    return capsys.readouterr().out


def test_the_list_of_verbs_says_what_they_say_of_themselves(capsys: pytest.CaptureFixture[str]) -> None:
    by_name_only = _help_of([], capsys)
    # A verb that does not come first brings all of them.
    assert by_name_only == _help_of(["--help", *VERBS], capsys)
    assert all(name in by_name_only for name in VERBS)
