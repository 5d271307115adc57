"""A sink kind that exists only here: one JSON file per batch. It needs no change under ``src/`` to be used."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from slackwater.core.checkpoint import Damage, Depth
from slackwater.core.errors import Refused, SinkUnreadable
from slackwater.core.sink import CatalogueEntry, Cut, Delivery, Owner, Traits, WriteContext
from slackwater.sinks.common.contract import Output, Sink
from slackwater.sinks.common.registry import SinkKind
from slackwater.storage.local import LocalStore
from slackwater.storage.protocols import LEFTOVER, WriteStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

LAST = 12
TRAITS = Traits(
    Delivery("exactly-once", "a batch replaces its own file"),
    reports_last_batch=True,
    skips_known_batches=False,
    cuts=True,
    swaps=False,
)
_OWNER = "owner.json"


class DirectoryOutput(Output):
    """``<batch>.json`` for each batch."""

    traits = TRAITS

    def __init__(self, identity: Mapping[str, str]) -> None:
        self._store = LocalStore(Path(identity["folder"]).resolve())

    @property
    def location(self) -> str:
        return self._store.location

    def last_written(self) -> int:
        newest = max(self._batches(), default=-1)
        if self.damage():
            raise SinkUnreadable("made-up-damaged", "The newest batch cannot be parsed", where=self.location)
        return newest

    def owner(self) -> Owner | None:
        return Owner(**json.loads(self._store.read(_OWNER))) if self._store.exists(_OWNER) else None

    def claim(self, owner: Owner) -> None:
        known = self.owner()
        if known is not None and known.stream_id != owner.stream_id:
            raise Refused("sink-owned", "Another stream writes to the output", found=known.stream)
        fields = {"stream_id": owner.stream_id, "stream": owner.stream, "home": owner.home}
        self._store.write(_OWNER, json.dumps(fields).encode())

    def release(self, stream_id: str) -> None:
        known = self.owner()
        if known is not None and known.stream_id == stream_id:
            self._store.delete(_OWNER)

    def damage(self, depth: Depth = "quick") -> tuple[Damage, ...]:
        batches = self._batches() if depth == "all" else self._batches()[-1:]
        torn = [f"{batch}.json" for batch in batches if not self._store.read(f"{batch}.json").endswith(b"]")]
        return tuple(Damage(name, "torn", "a JSON list", "its beginning") for name in torn)

    def relative_path(self, uri: str) -> str | None:
        root = Path(self.location).as_uri() + "/"
        return uri.removeprefix(root) if uri.startswith(root) else None

    def cut_after(self, batch: int, recorded: Mapping[int, str]) -> Cut:  # noqa: ARG002 - its files have everything
        doomed = tuple(each for each in self._batches() if each > batch)
        files = tuple(f"{each}.json" for each in doomed)
        return Cut(batch, doomed, files, sum(self._store.size(file) for file in files))

    def cut(self, cut: Cut, recorded: Mapping[int, str], backup: WriteStore) -> None:
        if not backup.exists("hashes.json"):
            if set(cut.files) != set(self.cut_after(cut.after, recorded).files):
                raise Refused("cut-mismatch", "The output does not have these files")
            hashes = {file: sha256(self._store.read(file)).hexdigest() for file in cut.files}
            backup.write("hashes.json", json.dumps(hashes).encode())
        for file in reversed(cut.files):
            if self._store.exists(file):
                backup.write(file, self._store.read(file))
                self._store.delete(file)
        self._remove_leftovers()

    def check_restore(self, cut: Cut, backup: WriteStore) -> None:
        self._missing(cut, backup)

    def _missing(self, cut: Cut, backup: WriteStore) -> list[str]:
        if not backup.exists("hashes.json"):
            return []
        hashes = json.loads(backup.read("hashes.json"))
        missing = [file for file in cut.files if not self._store.exists(file)]
        for file in missing:
            if not backup.exists(file) or sha256(backup.read(file)).hexdigest() != hashes[file]:
                raise Refused("backup-damaged", "The backup was changed", where=file)
        return missing

    def restore(self, cut: Cut, backup: WriteStore) -> None:
        for file in self._missing(cut, backup):
            self._store.write(file, backup.read(file))
        self._remove_leftovers()

    def reader_path(self) -> str:
        return self.location

    def _remove_leftovers(self) -> None:
        for entry in self._store.list():
            if entry.name.endswith(LEFTOVER):
                self._store.delete(entry.name)

    def _batches(self) -> list[int]:
        names = (Path(entry.name) for entry in self._store.list())
        return sorted(int(name.stem) for name in names if name.suffix == ".json" and name.stem.isdecimal())


@dataclass(frozen=True, slots=True)
class DirectorySink(Sink):
    """What a pipeline is given: a JSON list of rows for each batch."""

    folder: str

    kind = "made-up"
    traits = TRAITS
    output_modes = ("append",)

    def identity(self) -> Mapping[str, str]:
        return {"kind": self.kind, "folder": str(Path(self.folder).absolute())}

    def check(self, _frame: DataFrame, _context: WriteContext, /) -> None:
        Path(self.folder).mkdir(exist_ok=True)

    def attach(self, writer: DataStreamWriter, _context: WriteContext, /) -> DataStreamWriter:
        return writer.foreachBatch(self._write)

    def _write(self, frame: DataFrame, batch: int) -> None:
        rows = json.dumps([json.loads(row) for row in frame.toJSON().collect()])
        LocalStore(Path(self.folder).absolute()).write(f"{batch}.json", rows.encode())


SINK = SinkKind(DirectoryOutput, entries=(CatalogueEntry("made-up", "DirectorySink(folder)", TRAITS, ("append",)),))


class DirectoryKind:
    name = "made-up"
    traits = TRAITS
    removes_files = True
    forks = True

    def identity(self, folder: Path) -> Mapping[str, str]:
        return {"kind": self.name, "folder": str(folder)}

    def write(self, folder: Path) -> Mapping[int, str]:
        folder.mkdir(parents=True)
        for batch in range(LAST + 1):
            (folder / f"{batch}.json").write_text(f"[{batch}]")
        return {}

    def visible(self, folder: Path) -> Mapping[str, bytes]:
        return {path.name: path.read_bytes() for path in folder.glob("[0-9]*.json")}

    def state(self, folder: Path) -> Mapping[str, object]:
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    def reader_uri(self, folder: Path, name: str) -> str:
        return (folder / name).as_uri()
