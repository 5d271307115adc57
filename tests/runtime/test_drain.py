"""After a drain at any time the running batch is committed; Spark interrupts a batch that is stopped while planned."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

COUNT = 16


@pytest.mark.spark
def test_a_drain_at_any_time_interrupts_no_batch(tmp_path: Path) -> None:
    seed = os.environ.get("SLACKWATER_TEST_SEED", str(time.time_ns() % 1_000_000))
    program = Path(__file__).with_name("programs") / "drained.py"
    ended = subprocess.run(
        [sys.executable, str(program), str(tmp_path), seed, str(COUNT)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    drained = [json.loads(line) for line in ended.stdout.splitlines()]
    assert len(drained) == COUNT, ended.stderr
    for one in drained:
        shown = f"seed {seed}: {one}\n{ended.stderr}"
        assert one["planned"] == one["committed"], shown
        # Spark 3.5 is told to end at any moment: the next batch may just be starting, and is then the last.
        assert one["asked"] is not None, shown
        assert one["planned"] <= one["asked"] + 1, shown
        # A query that was not drained would read all its files.
        assert one["kind"] == "idle" or one["planned"] < one["last"], shown
        assert (one["active"], one["error"]) == (False, None), shown
