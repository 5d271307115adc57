"""An application of spark-submit whose code is in an archive (--py-files), and changes there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.unchanged.scene import FILES, KILLED_AFTER
from tests.unchanged.shapes import PACKED_COUNTS, Shaped

pytestmark = [pytest.mark.spark, pytest.mark.thorough]
REFUSED = 5
RUN = ("run", "packed_counts.py", "--", "data")


def test_changed_code_in_an_archive_is_refused_before_the_start(tmp_path: Path) -> None:
    scene = Shaped(tmp_path, PACKED_COUNTS)
    for files in (KILLED_AFTER, FILES):
        scene.add_files("plain", files)
        scene.finish("plain")
    expected = scene.rows_of("plain")
    assert expected["counts"].total() > 30
    assert any('"page":"P1"' in row for row in expected["counts"])

    scene.add_files("data", KILLED_AFTER)
    assert "watched/counts: finished" in scene.type(*RUN)
    before, rows = _logs(tmp_path), scene.rows_of("data")
    scene.add_files("data", FILES)
    # The state has counts by pages in capitals.
    _pack(tmp_path, "page.upper()", "page.lower()")
    assert "function-changed" in scene.type("check", *RUN[1:], exit_code=1)
    assert "function-changed" in scene.type(*RUN, exit_code=REFUSED)
    assert (_logs(tmp_path), scene.rows_of("data")) == (before, rows)

    _pack(tmp_path, "return page.upper()", "# Another comment.\n    return page.upper()")
    assert "watched/counts: finished" in scene.type(*RUN)
    assert scene.rows_of("data") == expected


def _logs(folder: Path) -> list[str]:
    """The batches that the checkpoint has."""
    return sorted(str(file.relative_to(folder)) for file in folder.glob("data/checkpoint/[oc]*/*"))


def _pack(folder: Path, old: str, new: str) -> None:
    """Build the archive from the package with one text replaced."""
    scene = folder / "edited"
    shutil.rmtree(scene, ignore_errors=True)
    shutil.copytree(Path(__file__).with_name("applications") / "shop", scene / "shop")
    file = scene / "shop/cleaning.py"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    shutil.make_archive(str(folder / "libs"), "zip", scene, "shop")
