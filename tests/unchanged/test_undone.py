"""Operations on applications: killed, continued by the printed command, undone; plain Python finishes the program."""

import hashlib
import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.support.killing import kill_with_children
from tests.support.processes import descendants
from tests.unchanged.scene import FILES
from tests.unchanged.shapes import (
    ONE,
    TO_DELTA,
    TO_DELTA_TABLE,
    TO_FILE_TABLE,
    TO_ICEBERG,
    TO_ICEBERG_TABLE,
    TO_TABLE,
    Shape,
    Shaped,
    runs_here,
)

pytestmark = [pytest.mark.spark, pytest.mark.thorough]
REBUILD = ("rebuild",)
CLEAR = ("reset", "--output", "clear")
KEEP = ("reset", "--from", "last-written", "--output", "keep")
REPLAY = ("replay", "--from", "batch:3")
SWAP = ("reset", "--from", "earliest", "--output", "swap")
REPLAY_ALL_ASIDE = ("replay", "--from", "earliest", "--output", "swap")
REPLAY_ASIDE = ("replay", "--from", "batch:3", "--output", "swap")
CASES: tuple[tuple[Shape, Sequence[tuple[str, ...]]], ...] = (
    (ONE, (REPLAY,)),
    (ONE, (KEEP, CLEAR)),
    (ONE, (REBUILD,)),
    (ONE, (REPLAY_ASIDE, SWAP)),
    (TO_DELTA, (CLEAR, REPLAY, REBUILD)),
    (TO_DELTA, (REPLAY_ASIDE, SWAP)),
    (TO_DELTA_TABLE, (SWAP,)),
    (TO_TABLE, (KEEP, REBUILD)),
    (TO_ICEBERG, (REPLAY, CLEAR)),
    (TO_ICEBERG, (SWAP, REPLAY_ALL_ASIDE)),
    (TO_ICEBERG_TABLE, (SWAP,)),
    (TO_FILE_TABLE, (CLEAR, REBUILD)),
    (TO_FILE_TABLE, (SWAP,)),
)
"""The operations on the application are applied and undone in this order; the last one may be applied again.

A plan that cuts a Delta table cannot: the undo is a version of the table that the plan does not know.
"""
JOURNAL_LINES_MAX = 3
STAGED_LINES = 7
"""With so many lines the journal has the start of the run into the staged output."""
STAGED_S_MAX = 4.0
UNFINISHED = 5
WAIT_S = 240


def _id(part: Shape | Sequence[tuple[str, ...]]) -> str:
    return part.name if isinstance(part, Shape) else "+".join("-".join((words[0], *words[-1:])) for words in part)


@pytest.mark.parametrize(("shape", "goals"), [case for case in CASES if runs_here(case[0])], ids=_id)
def test_it_is_continued_and_undone(tmp_path: Path, shape: Shape, goals: Sequence[tuple[str, ...]]) -> None:
    scene, seed = Shaped(tmp_path, shape), time.time_ns()
    sys.stdout.write(f"seed {seed}\n")
    chosen = random.Random(seed)
    (query,) = shape.queries
    for data in ("plain", "data"):
        scene.add_files(data, FILES)
    scene.finish("plain")
    expected = scene.rows_of("plain")
    scene.kill("data")
    sink = ("--sink", f"data/{query.sink}") if query.sink else ()
    scene.type("adopt", "data/checkpoint", *sink, "--name", query.name)
    plan = [_continue_and_undo(scene, goal, f"watched/{query.name}", chosen) for goal in goals][-1]

    is_applied = chosen.choice([True, False])
    sys.stdout.write(f"finished after {'the operation' if is_applied else 'its undo'}\n")
    if is_applied:
        scene.type("apply", plan, "--confirm", f"watched/{query.name}", "--i-stopped-it")
    scene.finish("data")
    assert scene.rows_of("data") == expected


def _continue_and_undo(scene: Shaped, goal: tuple[str, ...], stream: str, chosen: random.Random) -> str:
    """Plan it, kill its apply, continue that as ``status`` prints it, and undo it: nothing is left. The plan's file."""
    data, plan = scene.folder / "data", f"{'-'.join((goal[0], *goal[-1:]))}.json"
    before, rows = contents(data), scene.rows_of("data")
    scene.type("plan", goal[0], stream, *goal[1:], "--pipeline", scene.reference("data"), "--out", plan)
    is_staged = "swap" in goal and chosen.random() < 2 / 3
    lines = STAGED_LINES if is_staged else chosen.randint(1, JOURNAL_LINES_MAX)
    kill_apply(scene, stream, plan, lines, chosen.uniform(0, STAGED_S_MAX) if is_staged else 0)
    shown = scene.type("status", stream, exit_code=UNFINISHED)
    assert "was interrupted" in shown
    scene.type(*printed(shown, "apply"), "--i-stopped-it")
    assert contents(data) != before

    identifier = json.loads((scene.folder / plan).read_text())["id"]
    scene.type("undo", identifier, "--yes", "--i-stopped-it")
    assert contents(data) == before
    assert scene.rows_of("data") == rows
    return plan


def contents(data: Path) -> Mapping[str, str]:
    """All files of the checkpoint and of the outputs, with their hashes; not of tables, which keep what was."""
    files = [path for path in sorted(data.rglob("*")) if path.is_file() and path.parent.name != "in"]
    mine = [path for path in files if not any("slackwater" in part for part in path.relative_to(data).parts)]
    tables = [
        file.parents[1] for log in ("_delta_log/*.json", "metadata/version-hint.text") for file in data.rglob(log)
    ]
    mine = [path for path in mine if not any(folder in tables for folder in path.parents)]
    return {str(path.relative_to(data)): hashlib.sha256(path.read_bytes()).hexdigest() for path in mine}


def printed(shown: str, verb: str) -> list[str]:
    """The words of the command for this verb, as a page shows it."""
    found = re.search(rf"slackwater ({verb} .*)", shown)
    assert found is not None, shown
    return shlex.split(found[1])


def kill_apply(scene: Shaped, stream: str, plan: str, lines: int, later_s: float = 0) -> None:
    """kill -9 of ``slackwater apply`` and its JVM, so long after its journal has so many lines."""
    words = [sys.executable, "-m", "slackwater", "apply", plan, "--confirm", stream, "--i-stopped-it"]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, **scene.environment}
    log = scene.folder / "apply.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            words, cwd=scene.folder, env=environment, start_new_session=True, stdout=out, stderr=out
        )
    operation = json.loads((scene.folder / plan).read_text())["id"]
    journal = scene.folder / ".slackwater/streams" / stream / "operations" / operation / "journal.jsonl"
    deadline = time.monotonic() + WAIT_S
    while not journal.exists() or len(journal.read_bytes().splitlines()) < lines:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.01)
    time.sleep(later_s)
    kill_with_children(process, descendants(process.pid))
    assert process.returncode == -signal.SIGKILL, log.read_text()
