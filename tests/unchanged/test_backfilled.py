"""Backfills of applications: killed, continued as printed, undone; plain Python goes on with the program."""

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unchanged.scene import FILES
from tests.unchanged.shapes import Query, Rows, Shape, Shaped, of_delta, of_iceberg, runs_here
from tests.unchanged.test_undone import UNFINISHED, contents, kill_apply, printed

pytestmark = [pytest.mark.spark, pytest.mark.thorough]
READ, SKIPPED = 4, 9
"""So many files are read before the query starts anew behind the newest one, and there are so many by then."""
JOURNAL_LINES_MAX = 13


def of_partitions(data: Path) -> Rows:
    lines = [
        line
        for entry in (data / "pages" / "_spark_metadata").glob("[0-9]*")
        for line in entry.read_text().splitlines()[1:]
    ]
    files = {Path(json.loads(line)["path"].removeprefix("file://")) for line in lines}
    return Counter(f"{file.parent.name} {row}" for file in files for row in file.read_text().splitlines())


def of_batches(data: Path) -> Rows:
    files = (data / "batches").glob("*/part-*.json")
    return Counter(line for file in files for line in file.read_text().splitlines())


def _words(kind: str) -> Callable[[str, bool], tuple[str, ...]]:
    return lambda data, _end: (data, kind)


TO_FILES = Shape("filtered.py", (Query("pages", of_partitions, sink="pages"),), _words("json"))
TO_DELTA = Shape("filtered.py", (Query("pages", of_delta("pages"), sink="pages"),), _words("delta"), connector="delta")
TO_ICEBERG = Shape(
    "filtered.py",
    (Query("pages", of_iceberg("shop/pages"), sink="shop/pages"),),
    _words("iceberg"),
    connector="iceberg",
)
BY_BATCH = Shape("filtered.py", (Query("pages", of_batches),), _words("batches"))
SHAPES = {"files": TO_FILES, "delta": TO_DELTA, "iceberg": TO_ICEBERG, "batches": BY_BATCH}


@pytest.mark.parametrize("shape", [pytest.param(one, id=name) for name, one in SHAPES.items() if runs_here(one)])
def test_rows_are_those_of_a_run_that_read_all_in_time(tmp_path: Path, shape: Shape) -> None:
    scene, seed = Shaped(tmp_path, shape), time.time_ns()
    sys.stdout.write(f"seed {seed}\n")
    chosen, stream, before = random.Random(seed), "watched/pages", scene.folder / "data"
    expected = _expected(scene)
    _skip_files(scene, stream)
    plan = _plan(scene, stream)
    unchanged, rows = contents(before), scene.rows_of("data")
    kill_apply(scene, stream, plan, chosen.randint(1, JOURNAL_LINES_MAX))
    shown = scene.type("status", stream, exit_code=UNFINISHED)
    scene.type(*printed(shown, "apply"), "--i-stopped-it")
    assert scene.rows_of("data")["pages"].total() > 0
    scene.type("undo", _id(scene, plan), "--yes", "--i-stopped-it")
    assert (contents(before) == unchanged) is (shape is not BY_BATCH)
    assert (scene.rows_of("data") == rows) is (shape is not BY_BATCH)
    scene.type("apply", plan, "--yes", "--i-stopped-it")
    scene.add_files("data", FILES)
    scene.finish("data")
    assert scene.rows_of("data") == expected


def test_the_rows_are_aside_and_the_program_goes_on(tmp_path: Path) -> None:
    scene, stream = Shaped(tmp_path, TO_FILES), "watched/pages"
    expected = _expected(scene)
    _skip_files(scene, stream)
    unchanged = contents(scene.folder / "data")
    plan = _plan(scene, stream, "--output", "aside", "--into", "side")
    scene.type("apply", plan, "--yes", "--i-stopped-it")
    assert contents(scene.folder / "data") == unchanged
    assert any((scene.folder / "side" / "_spark_metadata").iterdir())
    scene.type("undo", _id(scene, plan), "--yes", "--i-stopped-it")
    assert not any((scene.folder / "side").iterdir())
    scene.type("apply", plan, "--yes", "--i-stopped-it")
    scene.add_files("data", FILES)
    scene.finish("data")
    assert 0 < scene.rows_of("data")["pages"].total() < expected["pages"].total()


def _expected(scene: Shaped) -> dict[str, Rows]:
    scene.add_files("plain", FILES)
    scene.finish("plain")
    expected = scene.rows_of("plain")
    assert expected["pages"].total() > 100
    return expected


def _skip_files(scene: Shaped, stream: str) -> None:
    """Have the query read some files, start it anew behind others, and read nothing more."""
    (query,) = scene.shape.queries
    scene.add_files("data", READ)
    scene.finish("data")
    sink = ("--sink", f"data/{query.sink}") if query.sink else ()
    scene.type("adopt", "data/checkpoint", *sink, "--name", query.name)
    scene.add_files("data", SKIPPED)
    code = ("--pipeline", scene.reference("data"))
    scene.type("plan", "reset", stream, "--from", "latest", "--output", "keep", *code, "--out", "reset.json")
    scene.type("apply", "reset.json", "--confirm", stream, "--i-stopped-it")
    scene.add_files("data", SKIPPED + 2)
    scene.finish("data")


def _plan(scene: Shaped, stream: str, *words: str) -> str:
    file = "backfill.json"
    scene.type("plan", "backfill", stream, *words, "--pipeline", scene.reference("data"), "--out", file)
    return file


def _id(scene: Shaped, plan: str) -> str:
    return str(json.loads((scene.folder / plan).read_text())["id"])
