"""Spark runs a batch without data for exactly the queries whose profile says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.warm_jvm import attached

PROGRAM = Path(__file__).with_name("programs") / "batches_without_data.py"
SILENT = {
    "a limit (append)",
    "applyInPandasWithState, no timeout (append)",
    "join of one watermark (append)",
    "join without bound (append)",
    "no state (append)",
}


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_the_batches_of_each_query_are_those_that_spark_runs(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path)],
        env={**os.environ, **attached(tmp_path)},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    printed = json.loads(ended.stdout)

    assert printed["expected"] == {case: number == 1 for case, number in printed["ran"].items()}
    assert {case for case, number in printed["ran"].items() if case.endswith("(append)") and not number} >= SILENT
