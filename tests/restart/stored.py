"""A workspace whose home, checkpoint and output are on a store, with its ledger and its input on this machine."""

import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

from slackwater.storage.open import open_write_store
from slackwater.storage.protocols import ReadStore
from tests.restart.scenario import CONF, STREAM, FileClicks, Workspace
from tests.support.killing import kill_when
from tests.support.outputs import Rows, rows_of

STREAM_FOLDER = f"home/streams/web/{STREAM}"


class StoreWorkspace(Workspace):
    """``location`` is a place on the store where nothing is yet."""

    def __init__(self, folder: Path, location: str, settings: str = "") -> None:
        self.location = location
        self.store = open_write_store(location)
        super().__init__(folder, FileClicks())
        (folder / "slackwater.toml").write_text(
            f'home = "{location}/home"\nledger = "{folder}/ledger.db"\n{settings}', encoding="utf-8"
        )

    def write_pipeline(self, aggregates: str) -> None:
        """The input is named by a URI: the default file system may be the store."""
        super().write_pipeline(aggregates)
        file = self.folder / "clicks.py"
        text = file.read_text().replace('"out"', f'"{self.location}/out"')
        file.write_text(text.replace('"landing"', f'"{(self.folder / "landing").as_uri()}"'))

    @property
    def generation(self) -> int:
        return int(json.loads(self.store.read(f"{STREAM_FOLDER}/stream.json"))["generation"])

    def kill_once(self, reached: Callable[[Workspace], bool], batch: int | None = None) -> None:
        """Run, and kill when ``reached``, which is looked at once ``batch`` is planned."""
        process = self.start("run", "clicks.py", "--until-caught-up", *CONF)
        offsets = f"{STREAM_FOLDER}/checkpoints/0001/offsets"
        kill_when(process, lambda: reached(self), lambda: self.store.exists(f"{offsets}/{batch or 0}"))

    def written(self) -> int:
        names = [entry.name.removesuffix(".compact") for entry in self.store.list("out/_spark_metadata")]
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def rows(self, first: int = 0, last: int | None = None) -> Rows:
        """The rows that count, read from a copy on this machine."""
        return stored_rows(self.store, self.location, "out", first, last)


def stored_rows(store: ReadStore, location: str, output: str, first: int = 0, last: int | None = None) -> Rows:
    """The rows that count in an output below ``location``, read from a copy on this machine."""
    with tempfile.TemporaryDirectory() as copy:
        for folder in store.folders(output):
            in_log = folder.path.endswith("_spark_metadata")
            for name in folder.files:
                target = Path(copy, folder.path, name)
                target.parent.mkdir(parents=True, exist_ok=True)
                data = store.read(f"{folder.path}/{name}")
                place = re.sub(rb"\w+://" + location.partition("://")[2].encode(), copy.encode(), data)
                target.write_bytes(place if in_log else data)
        return rows_of(Path(copy, output), first, last)
