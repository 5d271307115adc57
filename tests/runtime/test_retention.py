"""How far back rows matter, from Spark's plan: only windows that the watermark closes are bounded by it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.warm_jvm import attached

PROGRAM = Path(__file__).with_name("programs") / "bounds.py"
HOUR = 3_600_000
BOUNDED = dict.fromkeys(
    (
        "tumbling",
        "sliding",
        "renamed",
        "joined with a table",
        "watermark above a union",
        "chained",
        "chained by window_time",
    ),
    HOUR,
)
EVERYTHING = (
    "window of another column",
    "window of a sum",
    "a source without a watermark",
    "chained by another column",
    "by a key",
    "session",
)


@pytest.mark.spark
def test_only_windows_that_the_watermark_closes_are_bounded_by_it(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path)],
        env={**os.environ, **attached(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == {**BOUNDED, **dict.fromkeys(EVERYTHING)}
