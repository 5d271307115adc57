"""An unsupported query of an application is refused like a stream of a pipeline, and the application can handle it."""

import re
import shutil
from pathlib import Path

import pytest

from tests.support import warm_python
from tests.support.warm_jvm import attached
from tests.unchanged.scene import FILES, KILLED_AFTER, Scene
from tests.unchanged.shapes import ADDING_ONCE, PACKED_COUNTS, Shaped

WRONG_PIPELINE = 2
"""The exit code where the application does not handle it."""


@pytest.mark.spark
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


# A program whose checkpoints have another path at each start is not started again: it would write all rows again.

REFUSED = 5


@pytest.mark.spark
def test_a_query_with_a_new_checkpoint_at_each_start_is_refused_at_the_second(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "new_checkpoints.py")
    scene.add_files("data", 2)
    run = ("run", "new_checkpoints.py", "--", "data")
    kept = tmp_path / "data" / "kept"
    kept.write_text("a")
    scene.type(*run)
    scene.type(*run)
    written = _files(tmp_path)

    kept.unlink()
    shown = scene.type(*run, exit_code=REFUSED)
    program = tmp_path / "new_checkpoints.py"
    program.write_text(program.read_text().replace("rows.write", 'rows.select("page").write'))
    assert "query-checkpoint" in scene.type(*run, exit_code=REFUSED), "also after an edit"

    assert "error query-checkpoint: The query of stream watched/first-a is started with a new checkpoint" in shown
    assert "hint: give it the same checkpointLocation at each start" in shown
    assert written
    assert _files(tmp_path) == written
    assert [folder.name for folder in (tmp_path / "data/checkpoints").iterdir()] == ["a"]


@pytest.mark.spark
def test_who_only_watches_says_it_and_refuses_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "new_checkpoints.py")
    scene.add_files("data", 1)
    program = tmp_path / "new_checkpoints.py"
    session, begun = '"false").getOrCreate()', "watching = __import__('slackwater').watch(spark, ledger='home.db')"
    text = program.read_text().replace(session, f"{session}\n{begun}")
    program.write_text(f"{text}watching.close()\n")

    first, second = (_printed(tmp_path, program.name) for _ in range(2))

    assert "query-checkpoint" not in first
    said = [
        line for line in second.splitlines() if "query-checkpoint: a query is started with a new checkpoint" in line
    ]
    assert len(said) == 2, second
    assert "watched/first-" in said[0]


def _printed(folder: Path, *words: str) -> str:
    ended = warm_python.run_program([*words, "data"], folder, attached(folder))
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def _files(folder: Path) -> set[Path]:
    return set((folder / "data/out").rglob("part-*.json"))


# An application of spark-submit whose code is in an archive (--py-files), and changes there.

RUN = ("run", "packed_counts.py", "--", "data")


@pytest.mark.spark
@pytest.mark.thorough
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


# An application that gives Delta the number of each batch, and adds to what is there: no batch is added twice.


@pytest.mark.spark
@pytest.mark.thorough
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
