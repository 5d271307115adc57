"""A project without Spark whose home is on a store, with its ledger, its input and its output on this machine."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from slackwater.core.settings import Settings
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.workspace import Workspace, open_workspace
from slackwater.storage.open import open_write_store
from tests.support.rebuilds import Project, make_project
from tests.support.shelf_kind import SCHEME

STREAM_FOLDER = "streams/clicks/per_page"


@dataclass(frozen=True)
class StoredProject(Project):
    location: str = ""

    @contextmanager
    def open(self) -> Iterator[Workspace]:
        with open_workspace(Settings(self.location, str(self.folder / "ledger.db")), restore=True) as workspace:
            yield workspace

    def objects(self) -> dict[str, bytes]:
        """All objects of the home but those that record what was done."""
        store = open_write_store(self.location)
        paths = [f"{folder.path}/{name}".lstrip("/") for folder in store.folders() for name in folder.files]
        recorded = (f"{STREAM_FOLDER}/operations/", f"{STREAM_FOLDER}/lease.json", "home.json")
        return {path: store.read(path) for path in paths if not path.startswith(recorded)}


def make_stored_project(folder: Path, location: str) -> StoredProject:
    """The project of ``make_project``, with its home at ``location``, where nothing is yet."""
    plain = make_project(folder)
    store = open_write_store(location)
    for file in sorted(plain.home.rglob("*")):
        name = str(file.relative_to(plain.home))
        if file.is_file() and not name.startswith(("ledger.db", "home.json")):
            store.write(name, file.read_bytes().replace(str(plain.home).encode(), location.encode()))
    for file in plain.home.glob("ledger.db*"):
        shutil.move(file, plain.folder)
    with Ledger.open(plain.folder / "ledger.db", create=False) as ledger:
        ledger.relocate(str(plain.home), location)
    shutil.rmtree(plain.home)
    return StoredProject(plain.folder, plain.home, location)


def on_shelf(folder: Path) -> StoredProject:
    """The project of ``make_project`` with its home on the store of ``shelf_kind.py``, a folder of this machine."""
    home = folder / "shelf"
    project = replace(make_stored_project(folder, f"{SCHEME}{home}"), home=home)
    (folder / "slackwater.toml").write_text(f'home = "{project.location}"\nledger = "{folder}/ledger.db"\n')
    return project
