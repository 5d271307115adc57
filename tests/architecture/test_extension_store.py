"""A kind of store that one file has, registered by one line: a home and a checkpoint on it work like any other.

The store is that of ``tests/support/shelf_kind.py``; Spark runs on it in ``tests/restart/test_stores.py``.
"""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.reference_pages import PAGES
from slackwater.cli.main import main
from slackwater.cli.verbs.prune import delete_prunable
from slackwater.core.errors import UsageError
from slackwater.ledger.home import Home
from slackwater.storage.open import spark_uri
from slackwater.storage.registry import STORES, kind_of
from tests.support.extensions import killed_applies, killed_undos, points
from tests.support.kill_points import count_commits, kill_points
from tests.support.rebuilds import Project, make_project
from tests.support.shelf_kind import registered
from tests.support.stored_projects import StoredProject, on_shelf

EVERY = 61

count_commits()


@pytest.fixture(autouse=True)
def shelf() -> Iterator[None]:
    """The kind is known."""
    with registered():
        yield


@pytest.fixture
def project(tmp_path: Path) -> StoredProject:
    """A stream whose home is on the shelf, with a batch that was interrupted."""
    return on_shelf(tmp_path / "project")


def test_commands_read_a_home_on_it(
    project: StoredProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project.folder)

    assert main(["status", "--format", "json"]) in {0, 3}
    document = json.loads(capsys.readouterr().out)
    assert document["home"] == project.location
    assert [one["stream"] for one in document["streams"]] == ["clicks/per_page"]

    for arguments in (["ledger", "per_page"], ["inspect", "per_page"], ["offsets", "per_page"]):
        assert main([*arguments, "--format", "json"]) == 0, arguments
        assert json.loads(capsys.readouterr().out)
    checkpoint = f"{project.location}/streams/clicks/per_page/checkpoints/0001"
    assert main(["inspect", checkpoint]) == 0
    assert checkpoint in capsys.readouterr().out


def test_an_operation_by_commands(
    project: StoredProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project.checkpoint(1) / "commits" / "5").write_text('v1\n{"next')
    before = project.in_use()
    monkeypatch.chdir(project.folder)

    assert main(["plan", "resume", "per_page", "--out", "plan.json"]) == 0
    assert main(["apply", "plan.json", "--yes"]) == 0
    assert sorted(one.name for one in project.checkpoint(1).parent.iterdir()) == ["0001", "0002"]
    # Applied before: the plan in the operation's folder on the store is the same one.
    identifier = json.loads(Path("plan.json").read_text())["id"]
    own = f"{project.location}/streams/clicks/per_page/operations/{identifier}/plan.json"
    capsys.readouterr()
    assert main(["apply", own, "--yes"]) == 0
    assert "applied before" in capsys.readouterr().out
    assert main(["undo", identifier, "--yes"]) == 0
    assert project.in_use() == before
    assert main(["prune", "--keep", "0", "--yes"]) == 0


@pytest.mark.parametrize("goal", ["rebuild", "replay"])
def test_an_operation_ends_as_on_a_local_disk(project: StoredProject, tmp_path: Path, goal: str) -> None:
    local = make_project(tmp_path / "local")
    plan = project.plan("batch:3", goal=goal)
    other = local.plan("batch:3", goal=goal)
    before = project.in_use()

    project.apply(plan)
    local.apply(other)

    assert _names(project) == _names(local)
    assert [one.kind for one in plan.actions] == [one.kind for one in other.actions]
    project.undo(plan)
    assert project.in_use() == before


def _names(project: Project) -> list[str]:
    """What is in the new generation, but the hidden side files of Hadoop."""
    folder = project.checkpoint(2)
    return sorted(str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file())


def test_a_killed_apply_is_continued_or_undone(project: StoredProject) -> None:
    before, plan = project.in_use(), project.plan("batch:3")
    for finished in killed_applies(project, plan, EVERY, project.apply):
        assert not finished or project.checkpoint(2).is_dir()
    project.undo(plan)
    assert project.in_use() == before


def test_a_killed_undo_is_continued(project: StoredProject) -> None:
    before, plan = project.in_use(), project.plan("batch:3")
    for killed in killed_undos(project, plan, EVERY, project.apply):
        assert project.in_use() == before, f"undo killed before change {killed}"


def test_a_killed_prune_is_finished(project: StoredProject) -> None:
    plan = project.plan("batch:3")
    project.apply(plan)

    def prune() -> None:
        with project.open() as workspace:
            delete_prunable(workspace, None, 0, lambda _: None)

    for _ in kill_points(prune, project.folder, lambda: None, every=points(EVERY)):
        assert project.checkpoint(2).is_dir()
    prune()
    assert sorted(one.name for one in project.checkpoint(2).parent.iterdir()) == ["0002"]


def test_the_next_checkpoint_of_a_local_home_is_built_on_the_store_of_the_first(tmp_path: Path) -> None:
    """The pipeline names a checkpoint on the store; the home is a folder of this machine."""
    project = make_project(tmp_path / "project")
    shelf = tmp_path / "shelf" / "0001"
    shelf.parent.mkdir()
    project.checkpoint(1).rename(shelf)
    with project.open() as workspace:
        workspace.ledger.relocate(str(project.checkpoint(1).parent), f"shelf://{shelf.parent}")
    plan = project.plan("batch:3")

    project.apply(plan)

    assert (shelf.parent / "0001.0002" / "commits" / "3").is_file()
    assert not project.checkpoint(2).exists()
    with project.open() as workspace:
        assert workspace.ledger.generation(project.stream, 2).location == f"shelf://{shelf}.0002"
    project.undo(plan)
    assert sorted(one.name for one in shelf.parent.iterdir()) == ["0001"]


def test_the_page_of_stores_has_it() -> None:
    page = PAGES["stores"]()

    assert "| `shelf:` | no | yes | no | no | no | yes | yes | - |" in page
    assert "`file:`" in page


def test_a_home_on_it_needs_a_ledger(
    project: StoredProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project.folder / "slackwater.toml").unlink()
    monkeypatch.chdir(project.folder)
    assert main(["status", "--home", project.location]) == 2
    assert "needs an explicit ledger" in capsys.readouterr().err
    assert main(["status", "--home", "shelv:///home"]) == 2
    assert "did you mean shelf:?" in capsys.readouterr().err


def test_what_spark_is_given() -> None:
    assert spark_uri("shelf:///data/checkpoint") == "file:///data/checkpoint"
    assert spark_uri("/data/checkpoint") == "/data/checkpoint"
    assert Home("shelf:///data").checkpoint("a", "b", 1) == "shelf:///data/streams/a/b/checkpoints/0001"


def test_every_kind_has_schemes_of_its_own() -> None:
    schemes = [scheme for kind in STORES.all() for scheme in kind.schemes]
    assert len(schemes) == len(set(schemes))
    with pytest.raises(UsageError) as caught:
        kind_of("hdsf://host/x")
    assert caught.value.hint == "did you mean hdfs:?"


def test_no_other_file_names_a_kind(root: Path, source_files: list[Path]) -> None:
    """Only the registry has the kinds, by their names."""
    offenders = [
        f"{file.relative_to(root)}: {node.module}"
        for file in source_files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("slackwater.storage.kinds")
    ]
    assert offenders == []
