"""How a stream comes to be refused: one situation for each code, and what is done about it.

``make`` brings a project into the situation and returns the command that is refused. Where its text names commands,
these are typed. Where it names none, it must say what a person has to do (``says``), which ``by_hand`` does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.refusals.scene import Scene
from tests.support.homes import HomeSpec
from tests.support.rebuilds import CLEAN

RUN = "run clicks.py"


@dataclass(frozen=True)
class Situation:
    """``by_hand`` returns the command to type next, ``None`` for the refused one again.

    ``shown_as`` is the code that the command ends with, where it is not ``code`` itself.
    """

    code: str
    make: Callable[[Scene], str]
    by_hand: Callable[[Scene], str | None] | None = None
    says: str = ""
    spec: HomeSpec = CLEAN
    shown_as: str | None = None


def removed_aside(scene: Scene, path: str) -> None:
    """Move something away, as if it had been lost while a backup exists."""
    (scene.folder / path).rename(scene.folder / "lost")


def brought_back(path: str | Callable[[Scene], Path]) -> Callable[[Scene], None]:
    def back(scene: Scene) -> None:
        (scene.folder / "lost").rename(scene.folder / (path if isinstance(path, str) else path(scene)))

    return back


def spoilt(spoil: Callable[[Scene], object], command: str = RUN) -> Callable[[Scene], str]:
    def make(scene: Scene) -> str:
        spoil(scene)
        return command

    return make


def edit(scene: Scene, path: str, old: str, new: str) -> None:
    """Replace a string in a file, once; keep the file as it was in ``lost``."""
    file = scene.folder / path
    (scene.folder / "lost").write_bytes(file.read_bytes())
    text = file.read_text()
    assert old in text, f"{path} has no {old!r}: {text}"
    file.write_text(text.replace(old, new, 1))


def another_output(scene: Scene) -> str:
    """Give the stream a new name and an output of its own."""
    file = scene.folder / "clicks.py"
    file.write_text(file.read_text().replace('"out"', '"out2"').replace("per_page", "per_page2"))
    return RUN
