"""A program whose checkpoints have another path at each start is not started again: it would write all rows again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import warm_python
from tests.support.warm_jvm import attached
from tests.unchanged.scene import Scene

pytestmark = pytest.mark.spark
REFUSED = 5


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
