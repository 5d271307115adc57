"""An application that gives Delta the number of each batch, and adds to what is there: no batch is added twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unchanged.scene import FILES
from tests.unchanged.shapes import ADDING_ONCE, Shaped

pytestmark = [pytest.mark.spark, pytest.mark.thorough]


@pytest.mark.parametrize("killed", ["plain", "run"])
def test_a_killed_batch_is_added_once(tmp_path: Path, killed: str) -> None:
    scene = Shaped(tmp_path, ADDING_ONCE)
    for data in ("plain", "data"):
        scene.add_files(data, FILES)
    scene.finish("plain")
    if killed == "plain":
        scene.kill("data")
        scene.given("data", end=True)
        scene.type("run", scene.program.name)
    else:
        scene.given("data", end=False)
        scene.run_and_kill(checkpoint="data/checkpoint")
    scene.finish("data")
    expected = scene.rows_of("plain")
    assert expected["added"].total() == len({"p0", "p1", "p2"})
    assert scene.rows_of("data") == expected
