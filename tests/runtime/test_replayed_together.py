"""Batches with the same settings are replayed by one query, whose state is that of the recorded run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

PROGRAM = Path(__file__).with_name("programs") / "replayed_together.py"


@pytest.mark.parametrize(
    "state", ["hdfs", *(pytest.param(name, marks=pytest.mark.thorough) for name in ("rocksdb", "format-2"))]
)
def test_one_query_replays_the_batches(tmp_path: Path, state: str) -> None:
    ended = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path), state], capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    batches, rows, runs = zip(*found["batches"], strict=True)
    assert (batches, rows) == ((0, 1, 2, 3), (2, 2, 2, 2))
    # The others have a query for each batch.
    assert (runs[0] is not None) == found["version"].startswith(("4.1.", "4.3."))
    # The last batch ends the query.
    assert (len(set(runs[:-1])), runs[-1]) == (1, None)
    assert found["commits equal"]
    recorded, rebuilt = found["states"]
    assert recorded
    assert rebuilt == recorded
