"""The commands that read start on a machine without Spark and without Java."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.homes import make_home

START_S_MAX = 20


@pytest.fixture
def without_spark(tmp_path: Path) -> dict[str, str]:
    """An environment where importing pyspark or pandas fails and no java is found."""
    absent = tmp_path / "absent"
    for name in ("pyspark", "py4j", "pandas"):
        (absent / name).mkdir(parents=True)
        (absent / name / "__init__.py").write_text(f"raise ImportError('{name} is not for this start')\n")
    kept = {name: value for name, value in os.environ.items() if name not in {"JAVA_HOME", "SPARK_HOME"}}
    return kept | {
        "PYTHONPATH": os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(absent)])),
        "PATH": str(tmp_path),
        "HOME": str(tmp_path),
        "SLACKWATER_HOME": str(tmp_path / "home"),
    }


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["status"], ["status", "--format", "json"], ["sinks"]], ids=" ".join
)
def test_it_starts_in_an_empty_folder(arguments: list[str], without_spark: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "slackwater", *arguments],
        cwd=tmp_path,
        env=without_spark,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=START_S_MAX,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout


def test_the_status_of_a_stream_into_files_imports_no_other_sink(tmp_path: Path) -> None:
    make_home(tmp_path)
    code = (
        "import sys; from slackwater.cli.main import main; code = main(['status']); print(*sys.modules); sys.exit(code)"
    )

    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    imported = {name.split(".")[2] for name in done.stdout.split() if name.count(".") > 1 and ".sinks." in name}
    assert {"files", "common"} <= imported
    assert imported.isdisjoint({"delta", "iceberg", "jdbc", "kafka", "postgres", "foreach_batch", "console"})
