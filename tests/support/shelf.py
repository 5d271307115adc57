"""Projects whose home is on the store of ``shelf_kind.py``."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from slackwater.core.settings import Settings
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.workspace import Workspace, open_workspace
from slackwater.storage.registry import STORES
from tests.support.homes import HomeSpec
from tests.support.rebuilds import CLEAN, Project, make_project
from tests.support.shelf_kind import SCHEME, STORE


@contextmanager
def registered() -> Iterator[None]:
    """Adds the kind for a block."""
    STORES.register("shelf", STORE)
    yield
    STORES.unregister("shelf")


@dataclass(frozen=True)
class ShelfProject(Project):
    """A project whose home is on the shelf; its ledger is a file next to it."""

    @property
    def location(self) -> str:
        return f"{SCHEME}{self.home}"

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.db"

    @contextmanager
    def open(self) -> Iterator[Workspace]:
        with open_workspace(Settings(self.location, str(self.ledger)), restore=True) as workspace:
            yield workspace


def on_shelf(folder: Path, spec: HomeSpec = CLEAN) -> ShelfProject:
    """The project of ``make_project``, as if its home had always been on the shelf."""
    plain = make_project(folder, spec)
    project = ShelfProject(plain.folder, plain.home)
    for file in plain.home.glob("ledger.db*"):
        shutil.move(file, folder)
    (plain.home / "home.json").unlink(missing_ok=True)
    with Ledger.open(project.ledger, create=False) as ledger:
        ledger.relocate(str(plain.home), project.location)
    for file in plain.home.rglob("stream.json"):
        file.write_text(file.read_text().replace(str(plain.home), project.location))
    (folder / "slackwater.toml").write_text(f'home = "{project.location}"\nledger = "{project.ledger}"\n')
    return project
