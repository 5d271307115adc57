"""Files that an operation takes out, puts back or replaces keep owner, group and mode, whoever applies it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.refusals.of_operations import planned, undo_of
from tests.refusals.scene import APPLY, Scene
from tests.support.memory import folder_in_memory
from tests.support.rebuilds import CLEAN
from tests.support.second_user import NOBODY


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    with folder_in_memory() as parent:
        folder = parent / "prod"
        folder.mkdir()
        monkeypatch.chdir(folder)
        monkeypatch.setenv("SLACKWATER_SAFE_DIRECTORY", str(folder))
        made = Scene(folder, CLEAN)
        made.must("run clicks.py")
        yield made
        monkeypatch.undo()


def test_they_come_back_as_they_were(scene: Scene) -> None:
    for path in (scene.folder, *scene.folder.rglob("*")):
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
        path.chmod(0o750 if path.is_dir() else 0o640)
    before = _owners(scene)
    mask = os.umask(0o077)
    try:
        planned(scene)
        scene.must(APPLY)
        assert len(before) > len(_owners(scene).keys() & before.keys())
        scene.must(undo_of(scene))
    finally:
        os.umask(mask)
    assert {path: owner for path, owner in _owners(scene).items() if path in before} == before


def _owners(scene: Scene) -> dict[Path, tuple[int, int, str]]:
    found = (path for folder in (scene.folder / "out", scene.stream) for path in folder.rglob("*"))
    statuses = {path: path.stat() for path in found}
    return {path: (one.st_uid, one.st_gid, oct(one.st_mode)) for path, one in statuses.items()}
