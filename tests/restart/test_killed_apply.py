"""``apply`` killed at lines of its journal: continued by typing what is printed, or taken back byte for byte.

Points are drawn by a seed, which is printed: SLACKWATER_KILL_SEED takes another, SLACKWATER_KILL_POINTS=all all points.
"""

import json
import os
import random
import re
import signal
import sys
import time
from collections.abc import Iterator

import pytest

from tests.restart.scenario import CONF, STREAM
from tests.restart.small import PIPELINE, Saved, SmallWorkspace, error_code, follow, tree
from tests.support.killing import POLL_S, children_of, kill_with_children
from tests.support.outputs import Rows

pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600)]
FILES = {f"f{number}": range(number * 25, number * 25 + 25) for number in range(6)}
TARGET = 2
LINES = range(1, 13)
"""``started``, ``done`` of six actions: base, replay, planned batch, verification, cut, switch. The end is line 13."""
FIRST_CUT = 9
START_POLL_S = 0.002
SEED = int(os.environ.get("SLACKWATER_KILL_SEED", "4213"))
EVERY = os.environ.get("SLACKWATER_KILL_POINTS") == "all"


def _drawn(salt: str, points: range, most: int) -> list[int]:
    dice = random.Random(f"{SEED}/{salt}")
    return list(points) if EVERY else sorted(dice.sample(points, most))


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> tuple[SmallWorkspace, Saved, Rows]:
    """A workspace with a plan that cuts half of its output, a copy of it, and the rows that it must come back to."""
    workspace = SmallWorkspace(tmp_path_factory.mktemp("killed") / "project")
    for name, minutes in FILES.items():
        workspace.add(name, minutes)
    workspace.caught_up()
    workspace.slackwater("plan", "rebuild", STREAM, "--at", f"batch:{TARGET}", "--out", "plan.json")
    plan = json.loads((workspace.folder / "plan.json").read_text())
    assert len(plan["actions"]) * 2 == len(LINES)
    return workspace, Saved(workspace, tmp_path_factory.mktemp("saved") / "copy"), workspace.rows()


def _journal(workspace: SmallWorkspace) -> list[str]:
    found = [path.read_text() for path in (workspace.stream_folder / "operations").glob("*/journal.jsonl")]
    return found[0].split("\n")[:-1] if found else []


def _kill_at(workspace: SmallWorkspace, line: int, command: tuple[str, ...]) -> None:
    """Kill a command, python and JVM, as soon as its journal has this many lines."""
    before = len(_journal(workspace))
    process = workspace.start(*command)
    while (lines := len(_journal(workspace))) < line:
        assert process.poll() is None, (workspace.folder / "output.log").read_text()
        # Looking all the time would take a core from Spark's start.
        time.sleep(START_POLL_S if lines == before else POLL_S)
    # Python writes the journal: it stands still while its children are looked up.
    process.send_signal(signal.SIGSTOP)
    kill_with_children(process, children_of(process.pid))


def _apply(workspace: SmallWorkspace, line: int) -> None:
    _kill_at(workspace, line, ("apply", "plan.json", "--yes", *CONF))
    _report(workspace)


def _report(workspace: SmallWorkspace) -> None:
    """Shown by pytest where the test fails."""
    lines = _journal(workspace)
    sys.stderr.write(f"seed {SEED}: killed at line {len(lines)}: {lines[-1]}\n")


def _in_use(workspace: SmallWorkspace) -> dict[str, bytes]:
    return tree(workspace.output) | tree(workspace.stream_folder / "checkpoints" / "0001")


@pytest.mark.parametrize(
    "line",
    [
        *(pytest.param(one, marks=pytest.mark.thorough) for one in _drawn("apply", range(1, FIRST_CUT), 1)),
        *_drawn("cut", range(FIRST_CUT, 14), 1),
    ],
)
def test_continued_by_what_is_printed(planned: tuple[SmallWorkspace, Saved, Rows], line: int) -> None:
    workspace, saved, rows = planned
    saved.restore()
    _apply(workspace, line)
    if workspace.status_code() == 0:
        # The last actions take milliseconds: the kill came when the operation had ended.
        workspace.caught_up()
        assert workspace.rows() == rows
        assert workspace.status()["generation"] == 2
        return
    assert workspace.status(code=5)["verdict"]["code"] == "operation-unfinished"

    refused = workspace.slackwater("run", "clicks.py", "--until-caught-up", *CONF, code=5)
    assert error_code(refused) == "operation-unfinished"
    assert re.search(r"slackwater undo \S+ --yes", refused.stderr)
    typed = follow(workspace, refused.stderr, lambda: workspace.rows() == rows)

    assert [command.split()[0] for command in typed] == ["apply", "run"]
    assert workspace.status()["generation"] == 2


def test_taken_back_from_lines_of_the_journal(planned: tuple[SmallWorkspace, Saved, Rows]) -> None:
    workspace, saved, rows = planned
    saved.restore()
    before = _in_use(workspace)
    for line in _undo_points():
        saved.restore()
        _apply(workspace, line)
        operation = json.loads((workspace.folder / "plan.json").read_text())["id"]

        workspace.slackwater("undo", operation, "--yes")

        assert _in_use(workspace) == before, f"seed {SEED}, line {line}"
        assert not (workspace.stream_folder / "checkpoints" / "0002").exists()
        assert workspace.status()["generation"] == 1
        assert "nothing to undo" in workspace.slackwater("undo", operation, "--yes").stdout
    # What was taken back can be applied after all.
    workspace.slackwater("apply", "plan.json", "--yes", *CONF)
    workspace.caught_up()
    assert workspace.rows() == rows


def test_a_killed_undo_is_continued(planned: tuple[SmallWorkspace, Saved, Rows]) -> None:
    workspace, saved, _ = planned
    saved.restore()
    before = _in_use(workspace)
    workspace.slackwater("apply", "plan.json", "--yes", *CONF)
    operation = json.loads((workspace.folder / "plan.json").read_text())["id"]
    applied = len(_journal(workspace))
    for further in _drawn("undo", range(1, 7), 2):
        if len(_journal(workspace)) < applied + further:
            _kill_at(workspace, applied + further, ("undo", operation, "--yes"))
            _report(workspace)
    if workspace.status_code() == 5:
        verdict = workspace.status(code=5)
        assert verdict["verdict"]["code"] == "operation-unfinished"
        assert verdict["next"] == f"slackwater undo {operation} --yes"

    workspace.slackwater("undo", operation, "--yes")

    assert _in_use(workspace) == before
    assert not (workspace.stream_folder / "checkpoints" / "0002").exists()


@pytest.mark.thorough
def test_a_pipeline_edited_in_between_does_not_lead_back_to_the_start(
    planned: tuple[SmallWorkspace, Saved, Rows],
) -> None:
    workspace, saved, rows = planned
    saved.restore()
    _apply(workspace, 3)
    workspace.write(PIPELINE + "\n# edited\n")

    refused = workspace.slackwater("apply", "plan.json", "--yes", *CONF, code=5)
    assert error_code(refused) == "pipeline-edited"
    follow(workspace, refused.stderr, lambda: workspace.rows() == rows)

    saved.restore()
    _apply(workspace, FIRST_CUT)
    workspace.write(PIPELINE + "\n# edited\n")
    refused = workspace.slackwater("run", "clicks.py", "--until-caught-up", *CONF, code=5)
    follow(workspace, refused.stderr, lambda: workspace.rows() == rows)


def _undo_points() -> Iterator[int]:
    if EVERY:
        yield from range(1, FIRST_CUT)
    yield from _drawn("undo-late", range(FIRST_CUT, 14), 1)
