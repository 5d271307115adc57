"""A kind of action that one file has, registered by one line, is planned, shown, applied, killed and undone."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from slackwater.cli.main import main
from slackwater.core.action import ACTIONS, Action, ActionFacts, Inverse
from slackwater.core.errors import UsageError
from slackwater.operations.apply.operation import Operation
from slackwater.operations.plan.document import DIGEST, digest_of, parse, render
from slackwater.storage.local import LocalStore
from tests.support.extensions import Installed, killed_applies, killed_undos
from tests.support.homes import HomeSpec
from tests.support.rebuilds import Project, StopBefore, make_project

NOTE = "note"
MAKERS = {"assembly.py", "notes.py"}
"""The files outside of ``operations/actions`` that make actions, or data of them."""
EVERY = 29


@dataclass(frozen=True, slots=True)
class RemoveNote(Inverse):
    """Remove the note."""

    number: int
    kind: Literal["remove-note"] = "remove-note"

    def text(self) -> str:
        return f"remove the note about generation {self.number}"

    def take_back(self, operation: Operation) -> None:
        LocalStore(operation.folder).delete(NOTE)


@dataclass(frozen=True, slots=True)
class LeaveNote(Action):
    """Leave a note in the folder of the operation, which names the generation that it builds."""

    number: int
    kind: Literal["leave-note"] = "leave-note"

    needs = ("generation",)
    undone_by = RemoveNote

    @classmethod
    def added_to(cls, actions: Sequence[Action]) -> Sequence[Action]:
        built = next(one.built for one in actions if one.built is not None)
        return (*actions[:-1], cls(built), actions[-1])

    def text(self) -> str:
        return f"leave a note about generation {self.number}"

    def inverse(self) -> RemoveNote:
        return RemoveNote(self.number)

    def do(self, operation: Operation) -> ActionFacts:
        LocalStore(operation.folder).write(NOTE, str(self.number).encode())
        return {"note": self.number}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A stream whose newest entry is torn, so that a resume builds another generation; it needs no Spark."""
    made = make_project(tmp_path / "project", HomeSpec(planned=7, state=6, written=6))
    (made.checkpoint(1) / "commits" / "6").write_text('v1\n{"next')
    ACTIONS.register("leave-note", LeaveNote)
    yield made
    ACTIONS.unregister("leave-note")


def _note(project: Project, operation: str) -> Path:
    return project.home / "streams" / "clicks" / "per_page" / "operations" / operation / NOTE


def test_it_is_planned_shown_applied_and_undone_by_commands(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project.folder)
    before = project.in_use()

    assert main(["plan", "resume", "per_page", "--out", "plan.json"]) == 0
    page, document = capsys.readouterr().out, json.loads(Path("plan.json").read_text())
    assert "leave a note about generation 2" in page
    assert "- remove the note about generation 2" in page
    assert {"kind": "leave-note", "number": 2} in document["actions"]
    assert "remove-note" in {one["inverse"]["kind"] for one in document["undo"]}

    assert main(["apply", "plan.json", "--yes"]) == 0
    assert _note(project, document["id"]).read_text() == "2"
    assert "- leave a note about generation 2" in capsys.readouterr().err
    assert main(["undo", document["id"], "--yes"]) == 0
    assert not _note(project, document["id"]).exists()
    assert project.in_use() == before


def test_a_killed_apply_with_it_is_continued_or_undone(project: Project) -> None:
    before, plan = project.in_use(), project.plan(goal="resume")

    for finished in killed_applies(project, plan, EVERY, project.apply):
        assert not finished or _note(project, plan.id).read_text() == "2"

    project.undo(plan)
    assert not _note(project, plan.id).exists()
    assert project.in_use() == before


def test_a_killed_undo_with_it_is_continued(project: Project) -> None:
    before, plan = project.in_use(), project.plan(goal="resume")

    for killed in killed_undos(project, plan, EVERY, project.apply):
        assert not _note(project, plan.id).exists()
        assert project.in_use() == before, f"undo killed before change {killed}"


def test_an_installed_distribution_adds_it_by_an_entry_point(tmp_path: Path) -> None:
    made = make_project(tmp_path / "project", HomeSpec(planned=7, state=6, written=6))
    (made.checkpoint(1) / "commits" / "6").write_text('v1\n{"next')
    installed = Installed(tmp_path / "installed", Path(__file__), "slackwater.actions", "leave-note", "LeaveNote")

    planned = installed.slackwater(["plan", "resume", "per_page", "--out", "plan.json"], made.folder)
    assert "leave a note about generation 2" in planned
    installed.slackwater(["apply", "plan.json", "--yes"], made.folder)

    identifier = json.loads((made.folder / "plan.json").read_text())["id"]
    assert _note(made, identifier).read_text() == "2"
    installed.slackwater(["undo", identifier, "--yes"], made.folder)
    assert not _note(made, identifier).exists()


def test_before_it_the_user_can_stop_and_go_back(project: Project) -> None:
    before, plan = project.in_use(), project.plan(goal="resume")

    for kind in ("leave-note", "switch-generation"):
        with pytest.raises(KeyboardInterrupt):
            project.apply(plan, display=StopBefore(kind))
        assert _note(project, plan.id).exists() is (kind == "switch-generation")
    project.undo(plan)

    assert not _note(project, plan.id).exists()
    assert project.in_use() == before


@pytest.mark.parametrize("change", [{"kind": "made-up"}, {"kind": None}, {"number": "2"}, {"more": 1}], ids=str)
def test_a_damaged_one_is_no_plan(project: Project, change: dict[str, object]) -> None:
    document = json.loads(render(project.plan(goal="resume")))
    del document[DIGEST]
    action = next(one for one in document["actions"] if one["kind"] == "leave-note")
    action.update(change)

    with pytest.raises(UsageError) as caught:
        parse(json.dumps(document | {DIGEST: digest_of(document)}), "plan.json")

    assert caught.value.code == "plan-damaged"


def test_no_other_file_names_a_kind(root: Path, source_files: list[Path]) -> None:
    """Only the planner, which makes actions, imports their modules; nothing else compares kinds or classes."""
    folder = root / "src/slackwater/operations"
    kinds = set(ACTIONS.names())
    offenders = []
    for file in source_files:
        if folder / "actions" in file.parents:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and node.value in kinds:
                offenders.append(f"{file.relative_to(root)}: {node.value}")
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            kind = module.removeprefix("slackwater.operations.actions.").partition(".")[0].replace("_", "-")
            if kind in kinds and file.name not in MAKERS:
                offenders.append(f"{file.relative_to(root)}: {module}")
    assert offenders == []
