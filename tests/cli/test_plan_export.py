"""``slackwater plan ... --export``: a runbook next to the plan."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Slackwater
from tests.support.homes import HomeSpec, make_home


def test_the_runbook_is_written_beside_the_plan(slackwater: Slackwater, tmp_path: Path) -> None:
    make_home(tmp_path, HomeSpec(planned=6))

    done = slackwater("plan", "rebuild", "per_page", "--out", "plan.json", "--export", "runbook.md")

    runbook = (tmp_path / "runbook.md").read_text()
    assert done.code == 0
    assert runbook.startswith("# Runbook: rebuild clicks/per_page at ")
    assert f"export SLACKWATER_HOME={tmp_path / '.slackwater'}\n" in runbook
    assert "slackwater apply plan.json\n" in runbook


def test_a_file_that_exists_is_not_replaced(slackwater: Slackwater, tmp_path: Path) -> None:
    make_home(tmp_path)
    (tmp_path / "runbook.md").write_text("mine")

    done = slackwater("plan", "rebuild", "per_page", "--export", "runbook.md", "--format", "json")

    assert (done.code, done.error["code"]) == (2, "out-exists")
    assert (tmp_path / "runbook.md").read_text() == "mine"


def test_plan_and_runbook_are_two_files(slackwater: Slackwater, tmp_path: Path) -> None:
    make_home(tmp_path)

    done = slackwater("plan", "rebuild", "per_page", "--out", "one", "--export", "one", "--format", "json")

    assert (done.code, done.error["code"]) == (2, "out-exists")
