"""A batch is replayed under the SQL settings of the run that executed it, whatever the present session's are."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.standalone_cluster import SPARK_HOME

pytestmark = pytest.mark.spark

REPLAYING = Path(__file__).with_name("programs") / "replaying.py"


def test_rows_are_computed_under_the_recorded_settings(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, str(REPLAYING), str(tmp_path)], capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert {name: part["rows"] for name, part in found.items() if "rows" in part} == {
        "present": ["22 -1"],
        "recorded": ["12 -1"],
        "recorded again": ["12 -1"],
        "defaults": ["03 -1"],
        "present again": ["22 -1"],
    }
    assert {part["batch"] for part in found.values() if "batch" in part} == {0}
    # With a password, so that no run records it.
    assert {login for part in found.values() for login in part.get("logins", ())} == {"postgresql://work:pw@host/work"}
    present, recorded = found["present"]["settings"], found["recorded"]["settings"]
    assert present["spark.sql.own"] == "1"
    assert present["spark.sql.shuffle.partitions"] == "4"
    assert recorded == {
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.ansi.enabled": "false",
        "spark.work.own": "x",
    }
    assert found["present again"]["settings"] == present == found["profile"]["settings"]


# State of a replayed batch is unloaded before the next one: a long replay of a large state fits into memory.


REPLAYED_STATE = Path(__file__).with_name("programs") / "replayed_state.py"


@pytest.mark.parametrize("master", ["local[1]", pytest.param("local-cluster[1,1,512]", marks=pytest.mark.thorough)])
def test_nothing_of_a_replayed_batch_stays_loaded(tmp_path: Path, master: str) -> None:
    ended = subprocess.run(
        [sys.executable, str(REPLAYED_STATE), str(tmp_path), master],
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


# Batches with the same settings are replayed by one query, whose state is that of the recorded run.


REPLAYED_TOGETHER = Path(__file__).with_name("programs") / "replayed_together.py"


@pytest.mark.parametrize(
    "state", ["hdfs", *(pytest.param(name, marks=pytest.mark.thorough) for name in ("rocksdb", "format-2"))]
)
def test_one_query_replays_the_batches(tmp_path: Path, state: str) -> None:
    ended = subprocess.run(
        [sys.executable, str(REPLAYED_TOGETHER), str(tmp_path), state],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
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
