"""What happens to the folder of a stream, as edits of it."""

import shutil
from collections.abc import Callable
from pathlib import Path

from tests.diagnose.live.frame import Scene

Damage = Callable[[Scene], None]


def in_order(*damages: Damage) -> Damage:
    def happens(scene: Scene) -> None:
        for one in damages:
            one(scene)

    return happens


def remove(path: Path) -> None:
    """Delete a folder, or a file with Hadoop's checksum of it."""
    if path.is_dir():
        shutil.rmtree(path)
        return
    path.unlink()
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def removed(*names: str) -> Damage:
    """Files or folders of the checkpoint are deleted; ``{n}`` is the newest batch, ``{p}`` the one before."""

    def happens(scene: Scene) -> None:
        newest = scene.newest
        for name in names:
            remove(scene.checkpoint / name.format(n=newest, p=newest - 1))

    return happens


def replaced(name: str, old: str, new: str) -> Damage:
    """A file of the checkpoint is edited, on a store without Hadoop's checksums."""

    def happens(scene: Scene) -> None:
        path = scene.checkpoint / name.format(n=scene.newest, p=scene.newest - 1)
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)

    return happens


def restored_checkpoint(scene: Scene) -> None:
    """The checkpoint is restored from the backup, and the output is not."""
    _replace(scene.checkpoint, scene.backup / "checkpoint")


def restored_commits_and_output(scene: Scene) -> None:
    """``commits/`` and the output are restored from the backup, and the rest of the checkpoint is not."""
    _replace(scene.checkpoint / "commits", scene.backup / "checkpoint" / "commits")
    _replace(scene.output, scene.backup / "out")


def archived_input(scene: Scene) -> None:
    """The files that were read are moved away, as a job does that keeps a landing folder small."""
    (scene.folder / "archive").mkdir()
    for file in sorted((scene.folder / "landing").iterdir()):
        file.rename(scene.folder / "archive" / file.name)


def _replace(place: Path, copy: Path) -> None:
    shutil.rmtree(place)
    shutil.copytree(copy, place)
