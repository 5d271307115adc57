"""All applications: killed, adopted, damaged, repaired by the printed commands, finished without Slackwater."""

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.unchanged import shapes
from tests.unchanged.damage import DAMAGES
from tests.unchanged.scene import FILES
from tests.unchanged.shapes import Query, Shape, Shaped, runs_here

pytestmark = [pytest.mark.spark, pytest.mark.thorough]
STEPS_MAX = 3
CASES: tuple[tuple[Shape, tuple[str, ...]], ...] = (
    (shapes.ONE, ("torn offset",)),
    (shapes.ONE, ("all state deleted",)),
    (shapes.WATCHED, ("lost state",)),
    (shapes.SEVERAL, ("lost offsets", "deleted")),
    (shapes.RESTARTED, ("lost source log",)),
    (shapes.TO_TABLE, ("deleted",)),
    (shapes.MERGING, ("lost commit",)),
    (shapes.TO_DELTA, ("torn commit",)),
    (shapes.TO_ICEBERG, ("deleted",)),
    (shapes.PACKAGE, ("lost query id", "torn query id")),
    (shapes.PACKED, ("deleted",)),
)


def _id(part: Shape | tuple[str, ...]) -> str:
    return part.name if isinstance(part, Shape) else "+".join(part)


def test_every_damage_is_made() -> None:
    assert {damage for _, damages in CASES for damage in damages} == DAMAGES.keys()


@pytest.mark.parametrize(("shape", "damages"), [case for case in CASES if runs_here(case[0])], ids=_id)
def test_it_is_repaired_and_finished_by_plain_python(tmp_path: Path, shape: Shape, damages: tuple[str, ...]) -> None:
    scene = Shaped(tmp_path, shape)
    for data in ("plain", "data"):
        scene.add_files(data, FILES)
    scene.finish("plain")
    expected = scene.rows_of("plain")
    assert all(rows.total() > 30 for rows in expected.values())

    scene.kill("data")
    for query, damage in zip(shape.queries, damages, strict=True):
        sink = ("--sink", f"data/{query.sink}") if query.sink else ()
        scene.type("adopt", f"data/{query.checkpoint}", *sink, "--name", query.name)
        DAMAGES[damage](tmp_path / "data" / query.checkpoint)
        _repair(scene, query)
    scene.finish("data")
    assert scene.rows_of("data") == expected


def _repair(scene: Shaped, query: Query) -> None:
    """Type what doctor prints, until it finds nothing that stops the query."""
    for step in range(STEPS_MAX):
        stops = _stops(scene, query)
        if not stops:
            assert step > 0, "doctor knows the damage"
            return
        command = str(stops[0].get("next") or stops[0]["advice"])
        if not command.startswith("slackwater plan "):
            subprocess.run(["bash", "-c", command], cwd=scene.folder, check=True)
            continue
        words = shlex.split(command.replace("APPLICATION", shlex.quote(scene.reference("data"))))
        shown = scene.type(*words[1:], "--out", f"{query.name}.{step}.json")
        following = shown.rpartition("next: ")[2].splitlines()[0]
        scene.type(*shlex.split(following)[1:], "--yes", "--i-stopped-it")
    assert not _stops(scene, query)


def _stops(scene: Shaped, query: Query) -> list[dict[str, Any]]:
    shown = scene.type("doctor", f"watched/{query.name}", "--format", "json", exit_code=None)
    # spark-submit has its own lines before the document and after it.
    document, _ = json.JSONDecoder().raw_decode(shown, shown.index("{"))
    (found,) = document["streams"]
    return [one for one in found["findings"] if one["severity"] == "stop"]
