"""A kind of sink in one file of the user's, found by one line of an entry point: all commands work with it."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.restart.scenario import FileClicks, Workspace
from tests.sinks import made_up

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
FILES = 9
AFTER = 5


class MadeUpWorkspace(Workspace):
    """A workspace whose stream writes to the sink of ``made_up.py``, installed as a distribution is."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, FileClicks())
        for file in sorted((folder / "landing").iterdir())[FILES:]:
            file.unlink()
        shutil.copy(made_up.__file__, folder)
        installed = folder / "made_up-1.dist-info"
        installed.mkdir()
        (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up\nVersion: 1\n")
        (installed / "entry_points.txt").write_text("[slackwater.sinks]\nmade-up = made_up:SINK\n")

    def write_pipeline(self, aggregates: str) -> None:
        super().write_pipeline(aggregates)
        file = self.folder / "clicks.py"
        text = file.read_text().replace('sw.sinks.files("parquet", "out")', 'made_up.DirectorySink("out")')
        file.write_text("import made_up\n" + text)

    def values(self) -> Counter[str]:
        """The rows of all batches."""
        files = self.output.glob("[0-9]*.json")
        return Counter(json.dumps(row, sort_keys=True) for file in files for row in json.loads(file.read_bytes()))

    def newest(self) -> int:
        """The newest batch of the output, as ``status`` shows it."""
        document = json.loads(self.slackwater("status", "--format", "json", java=False).stdout)
        newest: int = document["streams"][0]["marks"]["written"]
        return newest


def test_a_made_up_sink_is_run_shown_cut_and_restored(tmp_path: Path) -> None:
    workspace = MadeUpWorkspace(tmp_path)
    listed = json.loads(workspace.slackwater("sinks", "--format", "json").stdout)["sinks"]
    assert [sink["call"] for sink in listed if sink["name"] == "made-up"] == ["DirectorySink(folder)"]
    assert listed[-1]["name"] == "made-up"

    workspace.run()
    whole, last = workspace.values(), workspace.newest()
    assert whole
    assert last >= FILES - 1

    plan = workspace.rebuild("--at", f"batch:{AFTER}")
    assert "cut-sink" in {action["kind"] for action in plan["actions"]}
    assert workspace.newest() == AFTER

    workspace.slackwater("undo", plan["id"], "--yes")
    assert (workspace.values(), workspace.newest()) == (whole, last)

    workspace.rebuild("--at", f"batch:{AFTER}")
    workspace.run()
    assert (workspace.values(), workspace.newest()) == (whole, last)
