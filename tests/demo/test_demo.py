"""The whole demo, as a user starts it; and what it leaves behind when it is interrupted."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from slackwater.demo.compare import compare, rows_of
from slackwater.demo.processes import tree, wait_until_gone

DEMO = [sys.executable, "-m", "slackwater", "demo"]


def run_demo(source: str, folder: Path) -> tuple[int, dict[str, Any]]:
    arguments = ["--source", source, "--folder", str(folder), "--format", "json"]
    done = subprocess.run([*DEMO, *arguments], stdout=subprocess.PIPE, check=False)
    return done.returncode, json.loads(done.stdout or "{}")


def check_story(code: int, story: dict[str, Any]) -> None:
    assert code == 0
    assert story["equal"] is True
    assert [line["missing"] + line["extra"] for line in story["comparisons"]] == [0, 0, 0, 0]
    assert [line["expected_rows"] for line in story["comparisons"]] == [26115, 26075, 40, 1083]
    before = story["before"]["sensor-merge-gold"]
    assert before["planned"] == story["killed"]["batch"]
    assert before["written"] == story["killed"]["batch"] - 1
    assert story["restarted"]["sensor-merge-gold"]["next_batch"] == story["killed"]["batch"]
    assert 0 < story["rows_read_again"] < story["rows_read"] / 4
    assert story["manual_restart"]["refused"] == "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE"
    assert story["manual_restart"]["lost"] > 0
    assert story["manual_restart"]["skipped"] > 0


def check_that_the_comparison_can_fail(folder: Path) -> None:
    """Of the very outputs that were equal, one changed value makes them unequal."""
    gold = rows_of(folder / "interrupted/out/gold")
    changed = gold.copy()
    row = next(iter(changed))
    changed[row] -= 1
    changed[tuple((name, "changed" if name == "readings" else value) for name, value in row)] += 1
    comparison = compare("gold", gold, changed)
    assert (comparison.missing, comparison.extra, comparison.equal) == (1, 1, False)


@pytest.mark.spark
def test_over_files_the_output_equals_that_of_an_uninterrupted_run(tmp_path: Path) -> None:
    code, story = run_demo("files", tmp_path / "demo")
    check_story(code, story)
    check_that_the_comparison_can_fail(tmp_path / "demo")


@pytest.mark.kafka
@pytest.mark.spark
def test_over_kafka_the_output_equals_that_of_an_uninterrupted_run(tmp_path: Path) -> None:
    code, story = run_demo("kafka", tmp_path / "demo")
    check_story(code, story)
    assert story["source"] == "kafka"


@pytest.mark.spark
@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_nothing_running_and_says_what_it_left(
    tmp_path: Path, signal_number: signal.Signals
) -> None:
    folder = tmp_path / "demo"
    demo = subprocess.Popen(
        [*DEMO, "--folder", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        wait_for(folder / "interrupted/out/raw/_spark_metadata/0", demo)
        processes = tree(demo.pid)
        os.kill(demo.pid, signal_number)
        _, messages = demo.communicate(timeout=60)
    finally:
        demo.kill()
    assert demo.returncode == 130
    assert str(folder) in messages.decode()
    assert len(processes) >= 3, "the demo, a pipeline's Python and its JVM"
    assert wait_until_gone(processes, 5.0)


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
