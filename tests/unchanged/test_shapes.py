"""Applications that merge, write a table, or restart their own query: run by Slackwater and edited."""

import json
from pathlib import Path

import pytest

from tests.unchanged.scene import FILES
from tests.unchanged.shapes import MERGING, RESTARTED, TO_ICEBERG, TO_TABLE, Shape, Shaped

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


@pytest.mark.parametrize("shape", [TO_TABLE, TO_ICEBERG], ids=lambda shape: shape.name)
def test_a_run_into_an_iceberg_table_that_is_killed_is_continued(tmp_path: Path, shape: Shape) -> None:
    scene = Shaped(tmp_path, shape)
    for data in ("plain", "run"):
        scene.add_files(data, FILES)
    scene.finish("plain")
    expected = scene.rows_of("plain")

    # The first run creates the table in the catalog, or finds the one that the program has created.
    scene.run_and_kill(*scene.given("run", end=False), checkpoint="run/checkpoint")
    marks = _marks(scene)
    assert marks["written"] in (marks["committed"], marks["planned"])
    (query,) = shape.queries
    shown = scene.type("run", shape.name, "--", *scene.given("run", end=True))
    assert f"watched/{query.name}: " in shown
    assert "TABLE_OR_VIEW_NOT_FOUND" not in shown
    assert scene.rows_of("run") == expected
    marks = _marks(scene)
    assert marks["written"] == marks["committed"]


def _marks(scene: Shaped) -> dict[str, int]:
    shown = scene.type("status", "--format", "json", exit_code=None)
    (stream,) = json.loads(shown[shown.index("{") :])["streams"]
    marks: dict[str, int] = stream["marks"]
    return marks


def _edited(scene: Shaped, data: str) -> None:
    """The verdict on a changed window is that of a pipeline."""
    program, given = scene.program.read_text(), scene.given(data, end=True)
    words = ("check", scene.program.name, *(["--", *given] if given else []))
    assert "  same" in scene.type(*words)
    scene.program.write_text(program.replace('"5 minutes"', '"7 minutes"'))
    assert "window-changed" in scene.type(*words, exit_code=1)
    scene.program.write_text(program)
