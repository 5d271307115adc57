"""Operations on applications: killed, continued by the printed command, undone; plain Python finishes the program."""

from __future__ import annotations

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
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.unchanged.scene import FILES
from tests.unchanged.shapes import ONE, TO_DELTA, Shape, Shaped

pytestmark = [pytest.mark.spark, pytest.mark.thorough]
CASES: tuple[tuple[Shape, str, tuple[str, ...]], ...] = (
    (ONE, "replay", ("--from", "batch:3")),
    (TO_DELTA, "rebuild", ()),
)
JOURNAL_LINES_MAX = 3
UNFINISHED = 5
WAIT_S = 240


@pytest.mark.parametrize(
    ("shape", "goal", "options"), CASES, ids=lambda part: part.name if isinstance(part, Shape) else "".join(part)
)
def test_it_is_continued_and_undone(tmp_path: Path, shape: Shape, goal: str, options: tuple[str, ...]) -> None:
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
    stream = f"watched/{query.name}"
    before, rows = contents(tmp_path / "data"), scene.rows_of("data")

    scene.type("plan", goal, stream, *options, "--pipeline", scene.reference("data"), "--out", "plan.json")
    kill_apply(scene, query.name, chosen.randint(1, JOURNAL_LINES_MAX))
    shown = scene.type("status", stream, exit_code=UNFINISHED)
    assert "was interrupted" in shown
    scene.type(*printed(shown, "apply"), "--i-stopped-it")
    assert contents(tmp_path / "data") != before

    undone = shlex.split(f"slackwater undo {json.loads((tmp_path / 'plan.json').read_text())['id']} --yes")
    scene.type(*undone[1:], "--i-stopped-it")
    assert contents(tmp_path / "data") == before
    assert scene.rows_of("data") == rows

    is_applied = chosen.choice([True, False])
    sys.stdout.write(f"finished after {'the operation' if is_applied else 'its undo'}\n")
    if is_applied:
        scene.type("apply", "plan.json", "--yes", "--i-stopped-it")
    scene.finish("data")
    assert scene.rows_of("data") == expected


def contents(data: Path) -> Mapping[str, str]:
    """All files of the checkpoint and of the outputs, with their hashes."""
    files = [path for path in sorted(data.rglob("*")) if path.is_file() and path.parent.name != "in"]
    mine = [path for path in files if not any("slackwater" in part for part in path.relative_to(data).parts)]
    return {str(path.relative_to(data)): hashlib.sha256(path.read_bytes()).hexdigest() for path in mine}


def printed(shown: str, verb: str) -> list[str]:
    """The words of the command for this verb, as a page shows it."""
    found = re.search(rf"slackwater ({verb} .*)", shown)
    assert found is not None, shown
    return shlex.split(found[1])


def kill_apply(scene: Shaped, name: str, lines: int) -> None:
    """kill -9 of ``slackwater apply`` and its JVM, once its journal has so many lines."""
    words = [sys.executable, "-m", "slackwater", "apply", "plan.json", "--yes", "--i-stopped-it"]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, **scene.environment}
    log = scene.folder / "apply.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            words, cwd=scene.folder, env=environment, start_new_session=True, stdout=out, stderr=out
        )
    operations = scene.folder / ".slackwater/streams/watched" / name / "operations"
    deadline = time.monotonic() + WAIT_S
    while sum(len(file.read_bytes().splitlines()) for file in operations.glob("*/journal.jsonl")) < lines:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.returncode == -signal.SIGKILL, log.read_text()
