"""A second apply, a second undo, an undo that comes too late, and a home that was copied without its outputs."""

import shutil
from pathlib import Path

import pytest

from slackwater.cli.main import main
from slackwater.ledger.lease import Lease
from slackwater.ledger.ledger import Ledger
from tests.refusals.of_operations import all_run_since, applied_twice, planned, run_since, undo_of
from tests.refusals.of_streams import edited_offsets
from tests.refusals.scene import APPLY, Scene
from tests.support.homes import STREAM, HomeSpec
from tests.support.rebuilds import CLEAN, Project

UNCOMPARED = ("ledger.db", "lease.json")


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Scene(folder, CLEAN)


def _everything(project: Project) -> dict[str, str]:
    """All files but ledger and lease, which commands that refuse write, too."""
    found = project.files(project.folder)
    return {name: content for name, content in found.items() if not name.split("/")[-1].startswith(UNCOMPARED)}


def test_a_second_apply_changes_nothing_and_says_so(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    planned(scene)
    scene.must(APPLY)
    before = _everything(scene.project)

    assert main(APPLY.split()) == 0

    assert "applied before" in capsys.readouterr().out
    assert _everything(scene.project) == before


def test_a_second_undo_changes_nothing_and_says_so(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    original = scene.project.in_use()
    planned(scene)
    scene.must(APPLY)
    assert scene.project.in_use() != original

    assert main(undo_of(scene).split()) == 0
    assert "is as it was before" in capsys.readouterr().out
    assert scene.project.in_use() == original
    before = _everything(scene.project)
    assert main(undo_of(scene).split()) == 0

    assert "nothing to undo" in capsys.readouterr().out
    assert _everything(scene.project) == before


def test_an_undo_after_a_run_changes_nothing(scene: Scene) -> None:
    undo = run_since(scene)
    before = _everything(scene.project)

    refused = scene.type(undo)

    assert (refused.code, refused.exit_code) == ("undo-late", 5)
    assert refused.named == ["plan rebuild clicks/per_page --at batch:3"]
    assert _everything(scene.project) == before


def test_an_undo_of_a_rebuild_from_the_beginning_names_the_beginning(scene: Scene) -> None:
    refused = scene.type(all_run_since(scene))

    assert refused.code == "undo-late"
    assert refused.named == ["plan rebuild clicks/per_page --at earliest"]


def test_operations_are_undone_the_newest_first(scene: Scene) -> None:
    original = scene.project.in_use()
    older = applied_twice(scene)
    before = _everything(scene.project)

    refused = scene.type(older)

    assert (refused.code, refused.exit_code) == ("undo-superseded", 5)
    assert _everything(scene.project) == before
    (newer,) = refused.named
    assert newer == undo_of(scene)
    scene.must(newer)
    scene.must(older)
    assert scene.project.in_use() == original


def test_a_home_copied_alone_leaves_the_original_and_its_output_alone(scene: Scene, tmp_path: Path) -> None:
    scene.must("plan rebuild per_page")
    copy = tmp_path / "backup" / "home"
    shutil.copytree(scene.project.home, copy)
    before, home = _everything(scene.project), f"--home {copy}"
    planned(scene)
    expected = _everything(scene.project)
    assert expected.keys() - before.keys() == {"plan.json"}

    for command in (f"run clicks.py {home}", f"plan rebuild per_page {home}", f"{APPLY} {home}"):
        refused = scene.type(command)
        assert (refused.code, refused.exit_code) == ("home-copied", 5), refused.text
        assert "--copied" in refused.text
    assert scene.type(f"status {home}").exit_code == 5
    scene.must(f"home accept --copied {home}")
    for command in (f"{APPLY} {home}", f"run clicks.py {home}", f"plan rebuild per_page {home}"):
        refused = scene.type(command)
        assert (refused.code, refused.exit_code) == ("sink-owned", 5), refused.text

    # All that is new is the mark of the owner, which the copy leaves at the original's output.
    found = _everything(scene.project)
    assert found.keys() - expected.keys() == {"out/_slackwater.json"}
    assert expected.items() <= found.items()
    assert scene.type("run clicks.py").started


def test_a_home_copied_while_the_original_runs_has_a_lease_of_its_own(scene: Scene, tmp_path: Path) -> None:
    copy = tmp_path / "backup" / "home"
    with (
        Ledger.open(scene.project.home / "ledger.db", create=False) as ledger,
        Lease.acquire(ledger, STREAM, scene.stream, "run"),
    ):
        ledger.begin_run(STREAM, 1, "4.1.3")
        shutil.copytree(scene.project.home, copy)

        scene.must(f"home accept --copied --home {copy}")
        assert scene.type(f"run clicks.py --home {copy}").code == "sink-owned"
        assert scene.type("run clicks.py").code == "lease-held"


def test_a_rebuild_after_an_edited_entry_has_the_recorded_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    scene = Scene(tmp_path, HomeSpec())
    recorded = (scene.checkpoint / "offsets" / "5").read_text()
    refused = scene.type(edited_offsets(scene))
    assert "at stake: all rows from batch 5 on" in refused.text

    scene.must("plan rebuild per_page --out plan.json")
    scene.must("apply plan.json --yes")

    assert (scene.stream / "checkpoints" / "0002" / "offsets" / "5").read_text() == recorded
    assert scene.type("run clicks.py").started
