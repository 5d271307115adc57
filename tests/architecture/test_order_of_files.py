"""Side by side, the tests that take longest start first."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.conftest import LONGEST_FIRST

SPARK = "import pytest\npytestmark = pytest.mark.spark\n"
TEST = "def test_it(): pass\n"


def test_the_files_exist(root: Path) -> None:
    assert [name for name in LONGEST_FIRST if not (root / "tests" / name).is_file()] == []


def test_long_ones_then_those_with_spark_then_the_others(tmp_path: Path, root: Path) -> None:
    shutil.copy(root / "tests/conftest.py", tmp_path)
    last, first = LONGEST_FIRST[-1], LONGEST_FIRST[0]
    files = {"a/test_plain.py": TEST, last: SPARK + TEST, "b/test_spark.py": SPARK + TEST, first: SPARK + TEST}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--collect-only"]

    done = subprocess.run(
        [*command, f"--rootdir={tmp_path}", "--import-mode=importlib", str(tmp_path)],
        cwd=tmp_path,
        env=os.environ | {"PYTEST_XDIST_WORKER": "gw0", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )

    found = [line.split("::")[0] for line in done.stdout.splitlines() if "::" in line]
    assert found == [first, last, "b/test_spark.py", "a/test_plain.py"], done.stdout + done.stderr
