"""A rule is one file: a finding that is made up here is shown by every command that shows findings, and stops a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.error_codes import page as errors_page
from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.checks.common.rule import REFUSED, Rule
from slackwater.diagnose.number_line import RULES
from tests.refusals.scene import Scene
from tests.support.extensions import Installed
from tests.support.homes import STATELESS, STREAM, HomeSpec

CODE = "tide-out"


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A stop where batch 5 is committed."""
    if snapshot.marks.committed == 5:
        yield RULE.finding("the tide is out", advice="wait for the tide", expected="water", found="sand")


RULE = Rule(
    CODE,
    Severity.STOP,
    order=150,
    find=find,
    doc="""The tide is out.

What it finds: batch 5 is committed.
Why it matters: there is no water.
How to confirm: `slackwater status STREAM`.
What to do: wait six hours, then `slackwater run FILE`.
Is the remedy safe: yes.
References: docs/sinks.md
""",
    risk="stuck",
    exit_code=REFUSED,
)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.chdir(tmp_path)
    RULES.register(CODE, RULE)
    yield Scene(tmp_path, HomeSpec(layout=STATELESS, state=None))
    RULES.unregister(CODE)


def test_a_made_up_rule_is_shown_and_obeyed_everywhere(scene: Scene) -> None:
    status = scene.type(f"status {STREAM}")
    document = json.loads(scene.type(f"status {STREAM} --format json").text)["streams"][0]
    run = scene.type("run clicks.py")
    plan = scene.type(f"plan backfill {STREAM} --from earliest")
    explained = scene.type(f"explain {CODE}")
    document_of_code = json.loads(scene.type(f"explain {CODE} --format json").text)

    assert status.exit_code == run.exit_code == plan.exit_code == REFUSED
    for typed in (status, run, plan):
        assert "the tide is out" in typed.text
    assert "wait for the tide" in status.text
    assert run.code == CODE
    assert (document["verdict"]["code"], document["advice"]) == (CODE, "wait for the tide")
    assert document["findings"][0]["advice"] == "wait for the tide"
    assert "wait six hours" in explained.text
    assert document_of_code["commands"] == ["slackwater run FILE"]
    assert CODE in scene.type("explain").text


def test_without_it_the_same_stream_is_clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    scene = Scene(tmp_path, HomeSpec(layout=STATELESS, state=None))

    assert "clean: checkpoint and sink agree" in scene.type(f"status {STREAM}").text


@pytest.mark.usefixtures("scene")
def test_the_page_of_errors_has_it() -> None:
    page = errors_page()

    assert f"| `{CODE}` | stop | stuck | 5 | The tide is out. |" in page
    assert f"\n### {CODE}\n" in page


def test_an_installed_distribution_adds_it_by_an_entry_point(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "project", HomeSpec(layout=STATELESS, state=None))
    installed = Installed(tmp_path / "installed", Path(__file__), "slackwater.rules", CODE, "RULE")

    shown = installed.slackwater(["status", STREAM, "--format", "json"], scene.folder, exit_code=REFUSED)

    assert json.loads(shown)["streams"][0]["verdict"]["code"] == CODE
