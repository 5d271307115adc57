"""What Spark's own writers of Delta and Iceberg tables leave in their commits: the query's id and the batch."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

from slackwater import connectors
from slackwater.runtime.session import spark_version
from tests.support.outputs import row_text
from tests.unchanged.scene import FILES, KILLED_AFTER, Scene

pytestmark = pytest.mark.spark
TABLE = "shop/counts"


def rows_of(table: Path) -> Counter[str]:
    found: list[dict[str, Any]]
    if (table / "_delta_log").exists():
        found = DeltaTable(table).to_pyarrow_table().to_pylist()
    else:
        version = (table / "metadata/version-hint.text").read_text().strip()
        found = StaticTable.from_metadata(f"{table}/metadata/v{version}.metadata.json").scan().to_arrow().to_pylist()
    return Counter(map(row_text, found))


@pytest.mark.parametrize(
    ("kind", "rebuilt"),
    [
        ("delta", False),
        *(
            pytest.param(*case, marks=pytest.mark.thorough)
            for case in [("delta", True), ("iceberg", False), ("iceberg", True)]
        ),
    ],
)
def test_a_batch_that_was_written_and_not_committed_is_written_once(tmp_path: Path, kind: str, rebuilt: bool) -> None:
    jars = connectors.resolve([kind], spark_version())
    scene = Scene(tmp_path, "to_path.py", {"CLICKS_JARS": ",".join(map(str, jars))})
    for files in (KILLED_AFTER, FILES):
        scene.add_files("plain", files)
        scene.plain("plain", kind)
    scene.add_files("data", KILLED_AFTER)
    scene.plain("data", kind)

    # The first batches write no rows; the last one, without data, does, and Spark was killed before it was committed.
    commits = tmp_path / "data/checkpoint/commits"
    last = max(int(file.name) for file in commits.iterdir() if file.name.isdigit())
    adopting = ("adopt", "data/checkpoint", "--sink", f"data/{TABLE}", "--format", "json")
    assert _marks(scene.type(*adopting))["written"] == last
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)
    shown = _marks(scene.type(*adopting))
    assert (shown["committed"], shown["written"]) == (last - 1, last)

    if rebuilt:
        shutil.rmtree(tmp_path / "data/checkpoint")
        scene.type("plan", "rebuild", "counts", "--pipeline", f"to_path.py -- data {kind}", "--out", "rebuild.json")
        scene.type("apply", "rebuild.json", "--yes", "--i-stopped-it")
    scene.add_files("data", FILES)
    assert "watched/counts: finished" in scene.type("run", "to_path.py", "--", "data", kind)
    expected = rows_of(tmp_path / "plain" / TABLE)
    assert expected.total() > 30
    assert rows_of(tmp_path / "data" / TABLE) == expected
    marks = json.loads(scene.type("status", "--format", "json"))["streams"][0]["marks"]
    assert marks["written"] == marks["committed"] > last


@pytest.mark.thorough
def test_a_table_of_files_shows_its_batches_by_its_name(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "to_file_table.py")
    for files in (KILLED_AFTER, FILES):
        scene.add_files("plain", files)
        scene.plain("plain")
    scene.add_files("data", KILLED_AFTER)
    assert "watched/counts: finished" in scene.type("run", "to_file_table.py", "--", "data")

    # As the directory that the table is, it is the same output.
    adopting = ("adopt", "data/checkpoint", "--sink", f"data/{TABLE}", "--format", "json")
    commits = tmp_path / "data/checkpoint/commits"
    last = max(int(file.name) for file in commits.iterdir() if file.name.isdigit())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)
    shown = _marks(scene.type(*adopting))
    assert (shown["committed"], shown["written"]) == (last - 1, last)

    shutil.rmtree(tmp_path / "data/checkpoint")
    scene.type("plan", "rebuild", "watched/counts", "--out", "rebuild.json")
    scene.type("apply", "rebuild.json", "--yes", "--i-stopped-it")
    scene.add_files("data", FILES)
    scene.plain("data")
    expected = scene.rows(f"plain/{TABLE}")
    assert expected.total() > 30
    assert scene.rows(f"data/{TABLE}") == expected


def _marks(shown: str) -> dict[str, int]:
    """Of the document, which is the last line that begins one."""
    marks: dict[str, int] = json.loads(shown[shown.index("{") :])["marks"]
    return marks
