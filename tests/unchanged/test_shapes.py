"""Applications that merge, write a table, or restart their own query: run by Slackwater and edited."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unchanged.scene import FILES
from tests.unchanged.shapes import MERGING, RESTARTED, TO_TABLE, Shape, Shaped

pytestmark = [pytest.mark.spark, pytest.mark.thorough]


@pytest.mark.parametrize("shape", [RESTARTED, TO_TABLE, MERGING], ids=lambda shape: shape.name)
def test_it_writes_the_same_rows_however_it_is_run(tmp_path: Path, shape: Shape) -> None:
    scene = Shaped(tmp_path, shape)
    for data in ("plain", "run"):
        scene.add_files(data, FILES)
    scene.finish("plain")
    expected = scene.rows_of("plain")
    (query,) = shape.queries
    assert expected[query.name].total() > 30

    given = scene.given("run", end=True)
    shown = scene.type("run", shape.name, *(["--", *given] if given else []))
    assert f"watched/{query.name}: " in shown
    assert scene.rows_of("run") == expected
    marks = json.loads(scene.type("status", "--format", "json"))["streams"][0]["marks"]
    assert marks["written"] == (marks["committed"] if shape is TO_TABLE else None)
    _edited(scene, "run")


def _edited(scene: Shaped, data: str) -> None:
    """The verdict on a changed window is that of a pipeline."""
    program, given = scene.program.read_text(), scene.given(data, end=True)
    words = ("check", scene.program.name, *(["--", *given] if given else []))
    assert "  same" in scene.type(*words)
    scene.program.write_text(program.replace('"5 minutes"', '"7 minutes"'))
    assert "window-changed" in scene.type(*words, exit_code=1)
    scene.program.write_text(program)
