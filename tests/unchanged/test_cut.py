"""Tables of applications are cut: killed, the checkpoint lost, continued as printed, finished by plain Python."""

import json
import random
import re
import shlex
import sys
import time
from pathlib import Path

import pytest

from tests.unchanged.damage import DAMAGES
from tests.unchanged.scene import FILES
from tests.unchanged.shapes import (
    TO_DELTA,
    TO_DELTA_TABLE,
    TO_ICEBERG,
    TO_ICEBERG_TABLE,
    TO_TABLE,
    Shape,
    Shaped,
    runs_here,
)
from tests.unchanged.test_undone import SWAP, UNFINISHED, kill_apply, printed

pytestmark = [pytest.mark.spark, pytest.mark.thorough]
CUT_AFTER, REFUSED = 3, 5
REBUILD = ("rebuild", "--at", f"batch:{CUT_AFTER}")
REPLAY = ("replay", "--from", f"batch:{CUT_AFTER + 1}", "--output", "cut")
CLEAR = ("reset", "--from", "earliest", "--output", "clear")
CASES = (
    (TO_DELTA, "deleted", REBUILD),
    (TO_DELTA_TABLE, "all state deleted", CLEAR),
    (TO_ICEBERG, "all state deleted", REPLAY),
    (TO_ICEBERG_TABLE, "deleted", CLEAR),
)


@pytest.mark.parametrize(
    ("shape", "damage", "goal"),
    [pytest.param(*case, id=f"{case[0].name}-{case[1]}-{case[2][0]}") for case in CASES if runs_here(case[0])],
)
def test_what_was_cut_is_written_once_more(tmp_path: Path, shape: Shape, damage: str, goal: tuple[str, ...]) -> None:
    scene, seed = Shaped(tmp_path, shape), time.time_ns()
    sys.stdout.write(f"seed {seed}\n")
    (query,) = shape.queries
    stream = f"watched/{query.name}"
    for data in ("plain", "data"):
        scene.add_files(data, FILES)
    scene.finish("plain")
    expected = scene.rows_of("plain")

    scene.kill("data")
    scene.type("adopt", "data/checkpoint", "--sink", f"data/{query.sink}", "--name", query.name)
    DAMAGES[damage](tmp_path / "data" / query.checkpoint)
    scene.type("plan", goal[0], stream, *goal[1:], "--pipeline", scene.reference("data"), "--out", "plan.json")
    actions = [one["kind"] for one in json.loads((tmp_path / "plan.json").read_text())["actions"]]
    # Each action has two lines: up to the start of the cut.
    lines = random.Random(seed).randint(1, 2 * actions.index("cut-sink") + 1)
    kill_apply(scene, stream, "plan.json", lines)
    shown = scene.type("status", stream, exit_code=UNFINISHED)
    scene.type(*printed(shown, "apply"), "--i-stopped-it")

    found = json.loads(scene.type("status", stream, "--format", "json"))["streams"][0]
    assert found["marks"]["written"] == (-1 if goal is CLEAR else CUT_AFTER)
    assert [one["code"] for one in found["findings"] if one["severity"] == "stop"] == []
    doctor = scene.type("doctor", stream, "--format", "json", exit_code=None)
    (diagnosis,) = json.loads(doctor[doctor.index("{") :])["streams"]
    assert [one["code"] for one in diagnosis["findings"] if one["severity"] == "stop"] == []
    assert scene.rows_of("data") != expected
    scene.finish("data")
    assert scene.rows_of("data") == expected


@pytest.mark.parametrize(
    ("shape", "goal"),
    [case for case in ((TO_TABLE, CLEAR), (TO_DELTA_TABLE, SWAP)) if runs_here(case[0])],
    ids=lambda part: part.name if isinstance(part, Shape) else part[0],
)
def test_what_is_printed_finds_the_table(tmp_path: Path, shape: Shape, goal: tuple[str, ...]) -> None:
    scene, (query,) = Shaped(tmp_path, shape), shape.queries
    for data in ("plain", "data"):
        scene.add_files(data, FILES)
    scene.finish("plain")
    scene.kill("data")
    reference = scene.reference("data")
    # By the page of the adoption, and by what refuses a plan.
    shown = [scene.type("adopt", "data/checkpoint", "--name", query.name)]
    plan = ("plan", goal[0], f"watched/{query.name}", *goal[1:], "--pipeline", reference, "--out", "plan.json")
    shown.append(scene.type(*plan, exit_code=REFUSED))
    for page in shown:
        command = re.search(r"slackwater (adopt .* --pipeline ('[^']*'|APPLICATION))[ ;]", page)
        assert command is not None, page
        words = shlex.split(command[1])
        scene.type(*(reference if word == "APPLICATION" else word for word in words))
    scene.type(*plan)
    scene.type("apply", "plan.json", "--confirm", f"watched/{query.name}", "--i-stopped-it")
    scene.finish("data")
    assert scene.rows_of("data") == scene.rows_of("plain")
