"""A batch is replayed under the SQL settings of the run that executed it, whatever the present session's are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

PROGRAM = Path(__file__).with_name("programs") / "replaying.py"


def test_rows_are_computed_under_the_recorded_settings(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path)], capture_output=True, text=True, timeout=300, check=False
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
