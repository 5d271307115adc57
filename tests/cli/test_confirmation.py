"""Without ``--yes`` a plan is applied, or undone, only when the name of its stream is typed."""

import io
import shutil
from pathlib import Path

import pytest

from slackwater.operations.plan.document import render
from tests.cli.conftest import Slackwater
from tests.cli.test_documents import undocumented
from tests.support.homes import STREAM
from tests.support.rebuilds import BEGINNING, Project, make_project


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
    assert "error name-mistyped: A different name was typed; nothing was changed; expected per_page" in done.err
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


# ``slackwater prune`` as it is typed.


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A stream in generation 2."""
    project = make_project(tmp_path)
    project.apply(project.plan("batch:3"))
    return project


def test_what_is_left_is_named(slackwater: Slackwater, project: Project) -> None:
    project.checkpoint(99).mkdir()

    done = slackwater("prune", "--keep", "0", "--yes")

    assert (done.code, project.checkpoint(99).is_dir()) == (0, True)
    assert "not deleted, as no run or operation has made it: <folder>" in " ".join(done.err.split())
    assert "checkpoints/0099" in done.err
    (again,) = slackwater("prune", "--keep", "0", "--format", "json").document["streams"]
    assert ([Path(one).name for one in again["left"]], again["folders"]) == (["0099"], [])


@pytest.mark.usefixtures("project")
def test_an_undo_that_is_refused_asks_for_nothing(slackwater: Slackwater, monkeypatch: pytest.MonkeyPatch) -> None:
    (made,) = slackwater("ledger", "--operations", "--format", "json").document["operations"]
    slackwater("prune", "--keep", "0", "--yes")
    monkeypatch.setattr("sys.stdin", Terminal("per_page\n"))

    done = slackwater("undo", made["id"])

    assert done.code == 5
    assert "error undo-pruned" in done.err
    assert "take the operation back" not in done.err


@pytest.mark.parametrize("typed", ["per_page\n", "clicks/per_page\n"])
def test_what_was_deleted_is_said(
    slackwater: Slackwater, project: Project, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(typed))

    done = slackwater("prune", "--keep", "0")

    assert done.code == 0
    assert f"{STREAM}: would delete 2 folders" in done.err
    assert f"{STREAM}: deleted 2 folders" in done.out
    assert "generations 1; no longer to be undone: 2" in done.out
    assert not project.checkpoint(1).exists()
    assert "nothing to delete" in slackwater("prune", "--keep", "0", "--yes").out
    assert "pruned" in slackwater("ledger", "per_page").out


def test_another_name_deletes_nothing(
    slackwater: Slackwater, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("yes\n"))
    before = project.in_use()

    done = slackwater("prune", "--keep", "0")

    assert (done.code, project.in_use()) == (5, before)
    assert "name-mistyped" in done.err


def test_with_enough_kept_nothing_is_asked(slackwater: Slackwater, project: Project) -> None:
    before = project.in_use()

    done = slackwater("prune", "per_page", "--keep", "1")

    assert (done.code, done.out.strip(), project.in_use()) == (0, "nothing to delete", before)


@pytest.mark.parametrize("arguments", [(), ("--keep",), ("--keep", "-1"), ("--keep", "all")], ids=" ".join)
def test_how_many_are_kept_must_be_said(slackwater: Slackwater, project: Project, arguments: tuple[str, ...]) -> None:
    before = project.in_use()

    done = slackwater("prune", "--yes", *arguments)

    assert (done.code, project.in_use()) == (2, before)
    assert "--keep" in done.err


def test_its_document(slackwater: Slackwater, project: Project) -> None:
    document = slackwater("prune", "--keep", "0", "--yes", "--format", "json").document

    assert [one["generations"] for one in document["streams"]] == [[1]]
    assert undocumented(document) == []
    assert not project.checkpoint(1).exists()


def test_a_link_as_an_old_checkpoint_is_removed_and_its_target_stays(
    slackwater: Slackwater, project: Project, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    project.checkpoint(1).rename(elsewhere)
    project.checkpoint(1).symlink_to(elsewhere)

    done = slackwater("prune", "--keep", "0", "--yes")

    assert done.code == 0, done.err
    assert not project.checkpoint(1).is_symlink()
    assert (elsewhere / "offsets" / "0").is_file()
    assert "nothing to delete" in slackwater("prune", "--keep", "0", "--yes").out


def test_a_deleted_operation_folder_does_not_stop_a_prune(slackwater: Slackwater, project: Project) -> None:
    for folder in (project.home / "streams" / "clicks" / "per_page" / "operations").iterdir():
        shutil.rmtree(folder)

    done = slackwater("prune", "--keep", "0", "--yes")

    assert done.code == 0, done.err
    assert not project.checkpoint(1).exists()
    assert project.checkpoint(2).exists()
    assert "nothing to delete" in slackwater("prune", "--keep", "0", "--yes").out
