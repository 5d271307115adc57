"""Without ``--yes`` a plan is applied, or undone, only when the name of its stream is typed."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from slackwater.operations.plan.document import render
from tests.cli.conftest import Slackwater
from tests.support.rebuilds import BEGINNING, make_project


class Terminal(io.StringIO):
    """stdin with what somebody types."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("typed", ["", "\n", "per_pages\n", "clicks\n", "yes\n"])
def test_another_name_changes_nothing(
    slackwater: Slackwater, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    project = make_project(tmp_path)
    slackwater("plan", "rebuild", "per_page", "--at", "batch:3", "--out", "plan.json")
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    before = project.in_use()

    done = slackwater("apply", "plan.json")

    assert done.code == 5
    assert "error name-mistyped: Another name was typed; nothing was changed; expected per_page" in done.err
    assert project.in_use() == before


@pytest.mark.parametrize("typed", ["per_page\n", "clicks/per_page\n"])
def test_its_name_is_taken(slackwater: Slackwater, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    project = make_project(tmp_path)
    before, plan = project.in_use(), project.plan("batch:3")
    project.apply(plan)
    monkeypatch.setattr("sys.stdin", Terminal(typed))

    done = slackwater("undo", plan.id)

    assert done.code == 0
    assert project.in_use() == before


class Script(io.StringIO):
    """stdin where nobody types."""

    def isatty(self) -> bool:
        return False


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--yes"], "give --confirm clicks/per_page"), (["--confirm", "per_pages"], "error name-mistyped")],
)
def test_clearing_an_output_needs_the_name(
    slackwater: Slackwater, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], said: str
) -> None:
    project = make_project(tmp_path)
    (tmp_path / "plan.json").write_text(render(project.plan_reset("clear", BEGINNING)))
    before = project.in_use()
    monkeypatch.setattr("sys.stdin", Script())

    done = slackwater("apply", "plan.json", *options)

    assert said in done.err
    assert project.in_use() == before


def test_it_needs_the_name_again_after_an_undo(
    slackwater: Slackwater, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project(tmp_path)
    plan = project.plan_reset("clear", BEGINNING)
    (tmp_path / "plan.json").write_text(render(plan))
    project.apply(plan)
    project.undo(plan)
    before = project.in_use()
    monkeypatch.setattr("sys.stdin", Script())

    done = slackwater("apply", "plan.json", "--yes")

    assert "give --confirm clicks/per_page" in done.err
    assert project.in_use() == before
