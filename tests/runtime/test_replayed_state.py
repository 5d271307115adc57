"""State of a replayed batch is unloaded before the next one: a long replay of a large state fits into memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.standalone_cluster import SPARK_HOME

pytestmark = pytest.mark.spark

PROGRAM = Path(__file__).with_name("programs") / "replayed_state.py"


@pytest.mark.parametrize("master", ["local[1]", pytest.param("local-cluster[1,1,512]", marks=pytest.mark.thorough)])
def test_nothing_of_a_replayed_batch_stays_loaded(tmp_path: Path, master: str) -> None:
    ended = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path), master],
        env={**os.environ, "SPARK_HOME": str(SPARK_HOME)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    # Executors are started again with a small bound; the driver of a cluster has no state.
    same = master == "local[1]"
    assert json.loads(ended.stdout) == [
        {"batch": batch, "rows": 1, "same application": same, "loaded in the driver": False} for batch in range(2)
    ]
    rows = (tmp_path / "checkpoint" / "state" / "0" / "0").glob("*.delta")
    assert len(list(rows)) == 2
