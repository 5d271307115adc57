"""What names code or a place is used only where this user or root has put it there, and is no link to elsewhere."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.refusals.of_operations import planned
from tests.refusals.scene import APPLY, Scene
from tests.support.memory import folder_in_memory
from tests.support.rebuilds import CLEAN
from tests.support.second_user import NOBODY

SAFE = "SLACKWATER_SAFE_DIRECTORY"
OPERATION = "streams/clicks/per_page/operations/*"
IN_A_HOME = ["", "ledger.db", "streams/clicks", "streams/clicks/per_page/stream.json", OPERATION]
COMMANDS = ["plan rebuild per_page", "plan reset per_page --from earliest", APPLY, "undo latest --yes", "run clicks.py"]
GiveAway = Callable[[Path], None]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.delenv("SUDO_UID", raising=False)
    monkeypatch.delenv(SAFE, raising=False)
    with folder_in_memory() as parent:
        folder = parent / "prod"
        folder.mkdir()
        monkeypatch.chdir(folder)
        made = Scene(folder, CLEAN)
        made.must("run clicks.py")
        planned(made)
        made.must(APPLY)
        yield made
        monkeypatch.undo()


@pytest.fixture
def give_away(monkeypatch: pytest.MonkeyPatch) -> GiveAway:
    """Gives a file or folder to another user; who is not root becomes somebody else."""
    if os.geteuid() == 0:
        return lambda path: os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    other = os.geteuid() + 1
    return lambda _: monkeypatch.setattr(os, "geteuid", lambda: other)


@pytest.mark.parametrize("path", [*IN_A_HOME, f"{OPERATION}/plan.json", f"{OPERATION}/journal.jsonl"])
def test_what_belongs_to_another_user_is_not_used(
    scene: Scene, give_away: GiveAway, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    home = scene.project.home
    named = next(home.glob(path)) if path else home
    before = _contents(scene)
    # Whoever plans imports the file that the ledger names.
    (scene.folder / "clicks.py").write_text("raise SystemExit(70)\n")
    give_away(named)
    for command in COMMANDS[:-1]:
        refused = scene.type(command)
        assert (refused.exit_code, refused.code) == (2, "home-owner"), refused.text
        assert f"export {SAFE}={home}" in refused.text
    assert _contents(scene) == before
    monkeypatch.setenv(SAFE, str(home))
    assert scene.type(COMMANDS[0]).code != "home-owner"


def test_nothing_is_run_in_the_home_of_another_user(scene: Scene, give_away: GiveAway) -> None:
    give_away(scene.project.home)
    before = _contents(scene)
    assert [scene.type(command).code for command in COMMANDS] == ["home-owner"] * len(COMMANDS)
    assert _contents(scene) == before


def test_a_home_of_another_user_can_be_looked_at(scene: Scene, give_away: GiveAway) -> None:
    shown = scene.must("status").text
    for path in (scene.project.home, *scene.project.home.rglob("*")):
        give_away(path)
    assert scene.must("status").text == shown
    assert "read access only" in scene.must("offsets per_page").text


def test_code_of_another_user_is_used_if_it_is_named(
    scene: Scene, give_away: GiveAway, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = scene.folder / "clicks.py"
    give_away(code)
    refused = scene.type("plan rebuild per_page")
    assert refused.code == "home-owner", refused.text
    monkeypatch.setenv(SAFE, f"/nowhere:{scene.folder}")
    scene.must("plan rebuild per_page")


def test_a_link_is_used_if_link_and_target_are_own(scene: Scene, give_away: GiveAway) -> None:
    streams, disk = scene.project.home / "streams", scene.folder / "disk"
    streams.rename(disk)
    streams.symlink_to(disk)
    scene.must("plan rebuild per_page")
    give_away(disk)
    assert scene.type("plan rebuild per_page").code == "home-owner"


def test_a_ledger_that_is_a_link_to_nothing_is_not_created_there(scene: Scene) -> None:
    for file in scene.project.home.glob("ledger.db*"):
        file.unlink()
    target = scene.folder / "target"
    (scene.project.home / "ledger.db").symlink_to(target)
    refused = scene.type("run clicks.py")
    assert (refused.code, target.exists()) == ("ledger-unreachable", False), refused.text


def test_a_linked_journal_is_not_written_through(scene: Scene) -> None:
    planned(scene)
    scene.interrupt("switch-generation")
    journal, target = next(scene.stream.glob(f"operations/{scene.operation}/journal.jsonl")), scene.folder / "precious"
    target.write_bytes(journal.read_bytes())
    before = target.read_bytes()
    journal.unlink()
    journal.symlink_to(target)
    refused = scene.type(APPLY)
    assert (refused.code, target.read_bytes()) == ("journal-damaged", before), refused.text
    assert f"mv {journal} " in refused.text
    journal.rename(journal.with_suffix(".damaged"))
    scene.must(APPLY)
    assert target.read_bytes() == before


def _contents(scene: Scene) -> dict[Path, bytes]:
    found = (path for path in scene.project.home.rglob("*") if not path.name.startswith("ledger.db-"))
    return {path: path.read_bytes() for path in found if path.is_file()}
