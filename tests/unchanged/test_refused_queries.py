"""An unsupported query of an application is refused like a stream of a pipeline, and the application can handle it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unchanged.scene import Scene

pytestmark = pytest.mark.spark
WRONG_PIPELINE = 2
"""The exit code where the application does not handle it."""


def test_unsupported_queries_are_refused_before_anything_is_created(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "refused_queries.py")
    scene.add_files("data", 2)

    shown = scene.type("run", "refused_queries.py", "--", "data", exit_code=WRONG_PIPELINE)

    assert dict(re.findall(r"^(\w+) was refused: (\S+)$", shown, re.MULTILINE)) == {
        "sorted": "query-refused",
        "never_final": "watermark-missing",
        "late": "global-watermark",
        "repeated": "query-refused",  # Spark itself runs it
        "continuous": "query-refused",
    }
    assert re.findall(r"^(\w+) was run$", shown, re.MULTILINE) == ["unchecked"]
    lines = scene.program.read_text().splitlines()
    place = next(number for number, line in enumerate(lines, 1) if line.endswith(".start().awaitTermination()"))
    assert "error query-refused: Stream watched/first_ten uses limit" in shown
    assert f"refused_queries.py:{place}" in shown
    assert "hint: limit the rows when the output is read" in shown
    assert [folder.name for folder in (tmp_path / "data/checkpoints").iterdir()] == ["unchecked"]
    assert "first_ten" not in scene.type("status")
