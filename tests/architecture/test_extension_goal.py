"""A goal of another distribution, all of it in this file: planned, applied, undone, in JSON, in help and completion."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from scripts.reference_pages import PAGES
from slackwater.cli.main import main
from slackwater.core.plan import BATCH, Plan, Request
from slackwater.operations.goals.common.goal import GOALS, Flag, Goal, Value, WithQuery
from slackwater.operations.goals.resume import kept_scope
from slackwater.operations.plan.basis import Basis, Scope
from slackwater.operations.plan.document import parse
from slackwater.operations.plan.words import plan_again
from tests.support.extensions import Installed, killed_applies, killed_undos
from tests.support.homes import HomeSpec
from tests.support.rebuilds import Project, make_project

SUMMARY = "Process the newest batches again, from the state that is kept."
DAMAGED, UNKNOWN = "plan-damaged", "its goal is unknown"
EVERY = 61


class Redo(Goal):
    """The newest batches again. Its option is not one of Slackwater's own goals."""

    name = "redo"
    summary = SUMMARY
    flags = (Flag("--batches", "batches", "how many batches", metavar="N", default="1"),)

    def request(self, values: Mapping[str, Value], *, downstream: bool) -> Request:
        request = super().request({}, downstream=downstream)
        return replace(request, target=f"{BATCH}{values['batches']}")

    def own_arguments(self, request: Request, /) -> str:
        return f" --batches {request.target.removeprefix(BATCH)}"

    def scope(self, basis: Basis, _with_query: WithQuery, /) -> tuple[Basis, Scope | None]:
        count = self.continued_after(basis.request)
        assert count is not None
        scope = kept_scope(basis, basis.written - count)
        return basis, scope and replace(scope, keeps_pending=False)


GOAL = Redo()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A stream that has written batch 5, in the working directory, while the goal is registered."""
    monkeypatch.chdir(tmp_path)
    GOALS.register(GOAL.name, GOAL)
    yield make_project(tmp_path, HomeSpec())
    GOALS.unregister(GOAL.name)


@pytest.mark.usefixtures("project")
def test_it_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--help"]) == 0
    assert f"redo      {SUMMARY}" in capsys.readouterr().out

    assert main(["plan", "redo", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--batches N" in shown
    assert "--pipeline FILE|MODULE" in shown
    assert "--retention" not in shown


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.usefixtures("project")
def test_shells_complete_it(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0

    script = capsys.readouterr().out
    assert "redo" in script
    assert "batches" in script


def test_it_is_planned_applied_and_undone(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    before = project.in_use()
    assert main(["plan", "redo", "per_page", "--batches", "2", "--out", "plan.json", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    plan = parse(Path("plan.json").read_text(), "plan.json")
    assert (document["goal"], document["facts"]["target"]) == ("redo", 3)
    assert {"copy-generation", "cut-sink", "switch-generation"} <= {action["kind"] for action in document["actions"]}

    assert main(["apply", "plan.json", "--yes"]) == 0
    assert "continues after batch 3" in capsys.readouterr().out
    assert project.in_use() != before
    assert main(["ledger", "per_page"]) == 0
    assert "redo" in capsys.readouterr().out

    assert main(["undo", plan.id, "--yes"]) == 0
    assert project.in_use() == before


@pytest.mark.usefixtures("project")
def test_its_commands_are_printed_with_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "redo", "per_page", "--out", "plan.json"]) == 0
    assert "slackwater apply plan.json" in capsys.readouterr().err
    assert plan_again(parse(Path("plan.json").read_text(), "")) == "slackwater plan redo clicks/per_page --batches 1"


@pytest.mark.parametrize("changed", [{"retention_ms": 5}, {"only_source": "0"}, {"output": "clear"}, {"to": "latest"}])
def test_a_request_that_its_options_cannot_make_is_refused(changed: Mapping[str, object]) -> None:
    request = GOAL.request({"batches": "2"}, downstream=False)
    assert GOAL.accepts(request)
    assert not GOAL.accepts(Request(**{name: getattr(request, name) for name in request.__slots__} | dict(changed)))


def test_a_plan_is_refused_where_its_goal_is_not_installed(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    before = project.in_use()
    assert main(["plan", "redo", "per_page", "--out", "plan.json"]) == 0
    GOALS.unregister("redo")
    capsys.readouterr()
    code = main(["apply", "plan.json", "--yes"])
    GOALS.register("redo", GOAL)

    assert code == 2
    shown = capsys.readouterr().err
    assert DAMAGED in shown
    assert UNKNOWN in shown
    assert project.in_use() == before


def test_a_killed_apply_of_it_is_continued_or_undone(project: Project) -> None:
    before, plan = project.in_use(), _planned()

    for finished in killed_applies(project, plan, EVERY, project.apply):
        assert not finished or project.in_use() != before

    project.undo(plan)
    assert project.in_use() == before


def test_a_killed_undo_of_it_is_continued(project: Project) -> None:
    before, plan = project.in_use(), _planned()

    for killed in killed_undos(project, plan, EVERY, project.apply):
        assert project.in_use() == before, f"undo killed before change {killed}"


def _planned() -> Plan:
    assert main(["plan", "redo", "per_page", "--batches", "2", "--out", "plan.json"]) == 0
    return parse(Path("plan.json").read_text(), "plan.json")


@pytest.mark.usefixtures("project")
def test_the_page_of_verbs_has_it() -> None:
    page = PAGES["verbs"]()

    assert f"\n## plan redo\n\n{SUMMARY}\n" in page
    assert "| `--batches` | any | how many batches" in page


def test_an_installed_distribution_adds_it_by_an_entry_point(tmp_path: Path) -> None:
    installed = Installed(tmp_path, Path(__file__), "slackwater.goals", "redo", "GOAL")

    assert "--batches N" in installed.slackwater(["plan", "redo", "--help"], tmp_path)


def test_only_a_goal_knows_its_name(root: Path, source_files: list[Path]) -> None:
    """No module that plans, applies or prints compares the name of a goal, or has a table by it."""
    packages = root / "src/slackwater"
    own = packages / "operations/goals"
    places = [
        f"{file.relative_to(packages)}:{node.lineno}"
        for file in source_files
        if file.relative_to(packages).parts[0] in {"cli", "diagnose", "operations", "runtime"}
        and own not in file.parents
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Match | ast.Dict | ast.Compare) and _names_goals(node)
    ]
    assert places == []


def _names_goals(node: ast.Match | ast.Dict | ast.Compare) -> bool:
    names = {name for name in GOALS.names() if name != "redo"}
    if isinstance(node, ast.Match):
        return ast.unparse(node.subject).endswith("goal")
    if isinstance(node, ast.Dict):
        return len(names & {key.value for key in node.keys if isinstance(key, ast.Constant)}) > 1
    if not ast.unparse(node.left).endswith("goal"):
        return False
    constants = {one.value for right in node.comparators for one in ast.walk(right) if isinstance(one, ast.Constant)}
    return bool(names & constants)
