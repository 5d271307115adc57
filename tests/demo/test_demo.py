"""The whole demo, as a user starts it; and what it leaves behind when it is interrupted."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.demo.compare import Row, compare, rows_of, rows_of_table
from examples.demo.places import GOLD, STREAMS
from slackwater.audit.processes import tree, wait_until_gone
from tests.support.processes import hear_interrupts

DEMO = [sys.executable, "-m", "slackwater", "demo"]


pytestmark = pytest.mark.timeout(1500)
ROWS = [26115, 26075, 40, 1083]


def run_demo(folder: Path, *arguments: str, temporary: str | None = None) -> tuple[int, dict[str, Any]]:
    command = [*DEMO, "--folder", str(folder), "--format", "json", *arguments]
    environment = os.environ | ({"TMPDIR": temporary} if temporary else {})
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False, env=environment)
    return done.returncode, json.loads(done.stdout or "{}")


def check_story(code: int, story: dict[str, Any]) -> None:
    assert code == 0
    assert story["equal"] is True
    assert [line["missing"] + line["extra"] for line in story["comparisons"]] == [0, 0, 0, 0]
    assert [line["expected_rows"] for line in story["comparisons"]] == ROWS
    before = story["before"]["sensor-merge-gold"]
    assert before["planned"] == story["killed"]["batch"]
    assert before["written"] == story["killed"]["batch"] - 1
    assert story["restarted"]["sensor-merge-gold"]["next_batch"] == story["killed"]["batch"]
    assert 0 < story["rows_read_again"] < story["rows_read"] / 4
    assert story["manual_restart"]["refused"] == "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE"
    assert story["manual_restart"]["lost"] > 0
    assert story["manual_restart"]["skipped"] > 0


def check_that_the_comparison_can_fail(rows: Counter[Row]) -> None:
    """Of the very outputs that were equal, one changed value makes them unequal."""
    changed = rows.copy()
    row = next(iter(changed))
    changed[row] -= 1
    changed[tuple((name, "changed" if name == "station" else value) for name, value in row)] += 1
    comparison = compare("changed", rows, changed)
    assert (comparison.missing, comparison.extra, comparison.equal) == (1, 1, False)


@pytest.mark.spark
def test_over_files_the_output_equals_that_of_an_uninterrupted_run(tmp_path: Path) -> None:
    code, story = run_demo(tmp_path / "demo")
    check_story(code, story)
    check_that_the_comparison_can_fail(rows_of(tmp_path / "demo/interrupted/out/gold"))


@pytest.mark.thorough
@pytest.mark.kafka
@pytest.mark.spark
def test_over_kafka_the_output_equals_that_of_an_uninterrupted_run(tmp_path: Path) -> None:
    code, story = run_demo(tmp_path / "demo", "--source", "kafka")
    check_story(code, story)
    assert story["source"] == "kafka"


@pytest.fixture
def temporary() -> Iterator[str]:
    """A temporary folder that a server's own account may enter, which it may not below that of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="slackwater-test-"))
    folder.chmod(0o755)
    yield str(folder)
    shutil.rmtree(folder)


@pytest.mark.thorough
@pytest.mark.kafka
@pytest.mark.spark
def test_from_kafka_to_postgres_killed_at_each_stage_every_row_is_there_once(tmp_path: Path, temporary: str) -> None:
    folder = tmp_path / "demo"
    code, story = run_demo(folder, "--source", "kafka", "--sink", "postgres", temporary=temporary)
    assert code == 0
    assert (story["equal"], story["source"]) == (True, "kafka")
    assert [(line["expected_rows"], line["rows"], line["missing"]) for line in story["comparisons"]] == [
        (rows, rows, 0) for rows in ROWS
    ]
    assert [kill["stream"] for kill in story["killed"]] == [*list(STREAMS)[:2], GOLD]
    for kill in story["killed"]:
        batch, marks = kill["batch"], kill["marks"]
        assert (marks["planned"], marks["committed"], marks["written"]) == (batch, batch - 1, batch)
        assert kill["next"] == "slackwater run weather_tables.py"
    assert story["lost"]["next"] == f"slackwater plan rebuild weather_tables/{GOLD}"
    assert story["plan"]["facts"]["target"] == story["killed"][-1]["batch"] == story["rebuilt"]["written"]
    check_that_the_comparison_can_fail(rows_of_table(folder / "project/out/readings"))
    assert list(Path(temporary).glob("slackwater-postgres-*")) == []


@pytest.mark.spark
@pytest.mark.parametrize(
    ("signal_number", "arguments", "started"),
    [
        pytest.param(signal.SIGINT, (), "interrupted/out/raw/_spark_metadata/0", marks=pytest.mark.thorough),
        (signal.SIGTERM, ("--sink", "postgres"), "project/out/raw/_delta_log"),
        pytest.param(signal.SIGHUP, (), "interrupted/out/raw/_spark_metadata/0", marks=pytest.mark.thorough),
    ],
    ids=["files", "postgres", "closed-terminal"],
)
def test_an_interrupted_demo_leaves_nothing_running_and_says_what_it_left(
    tmp_path: Path, temporary: str, signal_number: signal.Signals, arguments: tuple[str, ...], started: str
) -> None:
    folder = tmp_path / "demo"
    hear_interrupts()
    demo = subprocess.Popen(
        [*DEMO, "--folder", str(folder), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env=os.environ | {"TMPDIR": temporary},
    )
    try:
        wait_for(folder / started, demo)
        processes = tree(demo.pid)
        os.kill(demo.pid, signal_number)
        _, messages = demo.communicate(timeout=60)
    finally:
        demo.kill()
    assert demo.returncode == 130
    assert str(folder) in messages.decode()
    assert len(processes) >= 3, "the demo, a pipeline's Python and its JVM"
    assert wait_until_gone(processes, 5.0)
    assert list(Path(temporary).glob("slackwater-postgres-*")) == []


def wait_for(path: Path, demo: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while not path.exists():
        assert demo.poll() is None, "the demo ended early"
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.05)


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    done = subprocess.run([*DEMO, "--folder", str(tmp_path)], capture_output=True, check=False)
    assert done.returncode == 2
    assert "demo-folder" in done.stderr.decode()
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
