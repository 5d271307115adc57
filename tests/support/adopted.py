"""A home whose stream Slackwater does not run: the user's own program names its checkpoint, ``watch`` recorded it."""

import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from slackwater.core.records import WATCHED
from slackwater.storage.open import open_write_store
from slackwater.storage.remote import RemoteStore
from tests.support.homes import RAN_MS, STREAM, HomeSpec, edit_ledger
from tests.support.rebuilds import CLEAN, Project, make_project

ADOPTED = f"{WATCHED}/per_page"
_CONTENTS: dict[tuple[str, str], bytes] = {}
"""Of objects, by their paths and their tags, which no other content of an object has had."""


class AdoptedProject(Project):
    """A project whose checkpoint is in ``state/per_page checkpoint``; ``clicks.py`` has the query's code."""

    stream: ClassVar[str] = ADOPTED

    @property
    def path(self) -> Path:
        return self.folder / "state" / "per_page checkpoint"

    def in_use(self) -> dict[str, str]:
        found = self.files(self.path.parent, self.folder / "out", self.folder / "clicks")
        return found | {"clicks.py": (self.folder / "clicks.py").read_text()}

    def beside(self) -> list[str]:
        """What operations have left next to the checkpoint."""
        return sorted(path.name for path in self.path.parent.iterdir() if path != self.path)


@dataclass(frozen=True)
class ObjectsProject(AdoptedProject):
    """The same with its checkpoint at ``location``, on a store that has no directories."""

    location: str

    def in_use(self) -> dict[str, str]:
        found = self.files(self.folder / "out", self.folder / "clicks")
        return found | {"clicks.py": (self.folder / "clicks.py").read_text()} | self.in_use_at_location()

    def in_use_at_location(self) -> dict[str, str]:
        return {f"s3:{name}": hashlib.sha256(data).hexdigest() for name, data in self.objects().items()}

    def objects(self) -> dict[str, bytes]:
        store = open_write_store(self.location)
        assert isinstance(store, RemoteStore)
        found = store._filesystem.find(store._root, detail=True)
        start = len(store._root.strip("/")) + 1
        contents: dict[str, bytes] = {}
        for name, item in found.items():
            path, tag = name.strip("/")[start:], item.get("ETag") or item.get("etag")
            # A made-up store has no tags.
            data = _CONTENTS.get((name, tag)) if tag else None
            contents[path] = _CONTENTS[name, tag] = store.read(path) if data is None else data
        return contents

    def set_objects(self, objects: Mapping[str, bytes]) -> None:
        store, present = open_write_store(self.location), self.objects()
        for path in present.keys() - objects.keys():
            store.delete(path)
        for path, data in objects.items():
            if present.get(path) != data:
                store.write(path, data)


def moved_to(project: AdoptedProject, location: str) -> ObjectsProject:
    """The project with its checkpoint moved to ``location``, as a query with that ``checkpointLocation`` has it."""
    files = [path for path in sorted(project.path.rglob("*")) if path.is_file() and not path.name.endswith(".crc")]
    moved = ObjectsProject(project.folder, project.home, location)
    old = str(project.path).encode()
    moved.set_objects(
        {str(path.relative_to(project.path)): path.read_bytes().replace(old, location.encode()) for path in files}
    )
    shutil.rmtree(project.path.parent)
    edit_ledger(project.home, "UPDATE generations SET location = ?", values=(location,))
    return moved


def make_adopted(folder: Path, spec: HomeSpec = CLEAN) -> AdoptedProject:
    """The project of ``make_project`` as a program of the user's would have left it, with a query that was watched."""
    plain = make_project(folder, spec)
    project = AdoptedProject(plain.folder, plain.home)
    project.path.parent.mkdir()
    shutil.move(plain.checkpoint(1), project.path)
    shutil.rmtree(plain.home / "streams")
    long_ago = (RAN_MS / 1000, RAN_MS / 1000)
    for file in project.path.rglob("*"):
        os.utime(file, long_ago)
    with closing(sqlite3.connect(plain.home / "ledger.db")) as ledger, ledger:
        for table in ("generations", "batches", "log_lines"):
            ledger.execute(f"UPDATE {table} SET stream = ? WHERE stream = ?", (ADOPTED, STREAM))
        ledger.execute("UPDATE generations SET location = ?, layout = NULL", (project.path.as_uri(),))
        ledger.execute("UPDATE batches SET run = NULL")
        ledger.execute("DELETE FROM runs")
        sink = {"kind": "files", "format": "", "path": str(folder / "out")}
        ledger.execute(
            "UPDATE streams SET full_name = ?, pipeline = ?, pipeline_file = '', sink = ?",
            (ADOPTED, WATCHED, json.dumps(sink)),
        )
    return project
