"""Applications that merge, write a table, or restart their own query: as plain Python, run, killed, rebuilt, edited."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

from slackwater import connectors
from slackwater.core.reference import reference_of
from slackwater.runtime.session_options import spark_version
from tests.support.outputs import row_text
from tests.unchanged.scene import FILES, Scene

pytestmark = [pytest.mark.spark, pytest.mark.thorough]
Rows = Counter[str]


def merged(data: Path) -> Rows:
    rows: list[dict[str, Any]] = DeltaTable(data / "table").to_pyarrow_table().to_pylist()
    return Counter(map(row_text, rows))


def appended(data: Path) -> Rows:
    table = data / "lake" / "shop" / "counts" / "metadata"
    version = (table / "version-hint.text").read_text().strip()
    found = StaticTable.from_metadata(f"{table}/v{version}.metadata.json").scan().to_arrow().to_pylist()
    return Counter(map(row_text, found))


def by_batch(data: Path) -> Rows:
    """With the number of the batch, which names the folder."""
    files = (data / "batches").glob("*/part-*.json")
    return Counter(f"{file.parent.name}: {line}" for file in files for line in file.read_text().splitlines())


@dataclass(frozen=True)
class Shape:
    """One application: its name, its stream, what it is given, and how its rows are read."""

    name: str
    stream: str
    rows: Callable[[Path], Rows]
    words: Callable[[str, bool], tuple[str, ...]]
    environment: Callable[[Path, bool], Mapping[str, str]] = field(default=lambda _data, _end: {})
    connector: str | None = None


def _arguments(data: str, end: bool) -> tuple[str, ...]:
    return (data, *(["--end"] if end else []))


def _variables(data: Path, end: bool) -> Mapping[str, str]:
    return {"CLICKS_DATA": str(data), "CLICKS_END": "yes" if end else ""}


SHAPES = (
    Shape("restarted.py", "counted", by_batch, _arguments),
    Shape("to_table.py", "lake.shop.counts", appended, _arguments, connector="iceberg"),
    Shape("merging.py", "merged", merged, lambda _data, _end: (), _variables, "delta"),
)


class Shaped(Scene):
    """A scene of one of the shapes."""

    def __init__(self, folder: Path, shape: Shape) -> None:
        jars = connectors.resolve([shape.connector], spark_version()) if shape.connector else []
        super().__init__(folder, shape.name, {"CLICKS_JARS": ",".join(map(str, jars))})
        self.shape = shape

    def given(self, data: str, *, end: bool) -> tuple[str, ...]:
        """The arguments for this data; the environment is set for it."""
        self.environment = {**self.environment, **self.shape.environment(self.folder / data, end)}
        return self.shape.words(data, end)

    def finish(self, data: str) -> None:
        """As plain Python, to the end of the input."""
        self.plain(*self.given(data, end=True))

    def reference(self, data: str) -> str:
        """The application with its arguments, as one word."""
        return reference_of(self.program.name, self.given(data, end=True))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_it_writes_the_same_rows_however_it_is_run(tmp_path: Path, shape: Shape) -> None:
    scene = Shaped(tmp_path, shape)
    for data in ("plain", "run", "killed"):
        scene.add_files(data, FILES)
    scene.finish("plain")
    expected = shape.rows(tmp_path / "plain")
    assert expected.total() > 30

    given = scene.given("run", end=True)
    scene.environment = {**scene.environment, "SLACKWATER_HOME": "of_run"}
    shown = scene.type("run", shape.name, *(["--", *given] if given else []))
    assert f"watched/{shape.stream}: " in shown
    assert shape.rows(tmp_path / "run") == expected
    _edited(scene, "run")

    scene.environment = {**scene.environment, "SLACKWATER_HOME": "of_killed"}
    scene.run_and_kill(*scene.given("killed", end=False), checkpoint="killed/checkpoint", plain=True)
    scene.type("adopt", "killed/checkpoint", "--name", "adopted")
    shutil.rmtree(tmp_path / "killed/checkpoint")
    scene.type("plan", "rebuild", "adopted", "--pipeline", scene.reference("killed"), "--out", "rebuild.json")
    scene.type("apply", "rebuild.json", "--yes", "--i-stopped-it")
    scene.finish("killed")
    assert shape.rows(tmp_path / "killed") == expected


def _edited(scene: Shaped, data: str) -> None:
    """The verdict on a changed window is that of a pipeline."""
    program, given = scene.program.read_text(), scene.given(data, end=True)
    words = ("check", scene.program.name, *(["--", *given] if given else []))
    assert "  same" in scene.type(*words)
    scene.program.write_text(program.replace('"5 minutes"', '"7 minutes"'))
    assert "window-changed" in scene.type(*words, exit_code=1)
    scene.program.write_text(program)
