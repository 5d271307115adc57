"""Mistakes of a user: each gives a code, a place or a comparison, and its exit code; never a traceback."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from slackwater.operations.plan.document import digest_of
from tests.cli.conftest import Slackwater
from tests.support.homes import make_home

FAILING = "import slackwater as sw\n\ndef helper():\n    raise ValueError('one')\n\nhelper()\n"


def test_debug_shows_the_users_own_frames_and_no_others(slackwater: Slackwater, tmp_path: Path) -> None:
    (tmp_path / "pipeline.py").write_text(FAILING)

    done = slackwater("run", "pipeline.py", "--debug")

    assert done.code == 2
    *traceback, error, _hint = done.err.splitlines()
    assert traceback[0] == "Traceback (most recent call last):"
    assert [line for line in traceback if line.startswith("  File ")] == [
        '  File "<folder>/pipeline.py", line 6, in <module>',
        '  File "<folder>/pipeline.py", line 4, in helper',
    ]
    assert traceback[-1] == "ValueError: one"
    assert error.startswith("error pipeline-fails: ")


@pytest.mark.parametrize("verb", [("apply", "absent.json", "--yes"), ("plan", "rebuild", "absent")])
def test_debug_is_taken_by_the_other_verbs_that_read_a_pipeline(slackwater: Slackwater, verb: tuple[str, ...]) -> None:
    done = slackwater(*verb, "--debug")

    assert "Traceback" not in done.err
    assert done.err.startswith("error ")


def test_a_plan_of_another_home(slackwater: Slackwater, tmp_path: Path) -> None:
    plan = _plan(slackwater, tmp_path)
    document = json.loads(plan.read_text()) | {"stream": "clicks/other"}
    document.pop("digest")
    plan.write_text(json.dumps(document | {"digest": digest_of(document)}))

    done = slackwater("apply", "plan.json", "--yes", "--format", "json")

    assert (done.code, done.error["code"]) == (4, "stream-unknown")


def test_a_plan_file_can_be_named_after_a_batch(slackwater: Slackwater, tmp_path: Path) -> None:
    _plan(slackwater, tmp_path).rename(tmp_path / "replay-batch:3.json")
    done = slackwater("apply", "replay-batch:3.json")
    assert (done.code, "error unconfirmed" in done.err) == (2, True)


@pytest.mark.parametrize("arguments", [("qqq",), ("status", "--qqq")])
def test_a_word_like_no_other_gets_none(slackwater: Slackwater, arguments: tuple[str, ...]) -> None:
    done = slackwater(*arguments)

    assert done.code == 2
    assert "did you mean" not in done.err


def test_help_is_no_error(slackwater: Slackwater) -> None:
    for arguments in ((), ("--help",), ("status", "--help")):
        assert slackwater(*arguments).code == 0


@pytest.mark.parametrize("verb", [("status",), ("ledger",), ("offsets", "per_page"), ("plan", "rebuild", "per_page")])
def test_every_verb_takes_a_home(slackwater: Slackwater, tmp_path: Path, verb: tuple[str, ...]) -> None:
    make_home(tmp_path)
    shutil.move(tmp_path / ".slackwater", tmp_path / "elsewhere")

    for shown_as in ("text", "json"):
        done = slackwater(*verb, "--home", "elsewhere", "--format", shown_as)
        assert done.code in {0, 5}
        assert "ledger-missing" not in done.err


def _plan(slackwater: Slackwater, folder: Path) -> Path:
    make_home(folder)
    assert slackwater("plan", "rebuild", "per_page", "--out", "plan.json").code == 0
    assert json.loads((folder / "plan.json").read_text())["stream"] == "clicks/per_page"
    return folder / "plan.json"
