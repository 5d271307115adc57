"""Commands that are forked from a Python that stays behave like those with a Python of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import warm_python

PIPELINE = """
import json, os, sys, time
from pathlib import Path

Path(os.environ["SHOWN"]).write_text(json.dumps({
    "arguments": sys.argv[1:],
    "folder": os.getcwd(),
    "zone": time.tzname[0],
    "path": sys.path[:2],
    "variables": sorted(set(os.environ) - {"PYTHONPATH"}),
}))
import nosuch_module
"""


@pytest.mark.parametrize("words", [["status"], ["sinks", "--format", "json"], ["status", "nosuch"], ["nosuch"]])
def test_exit_code_and_output(words: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "slackwater", *words]
    own = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)

    forked = warm_python.run(words, tmp_path, {})

    assert (forked.returncode, forked.stdout, forked.stderr) == (own.returncode, own.stdout, own.stderr)
    assert warm_python.run(words, tmp_path, {}, in_one=True).stdout in (
        own.stdout + own.stderr,
        own.stderr + own.stdout,
    )


def test_arguments_folder_environment_and_path_are_its_own(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(PIPELINE)
    words = ["run", "p.py"]
    shown = {}
    for name, zone in (("own", "Asia/Tokyo"), ("forked", "Asia/Tokyo"), ("later", "UTC")):
        variables = {"SHOWN": str(tmp_path / name), "TZ": zone}
        if name == "own":
            command = [sys.executable, "-m", "slackwater", *words]
            own = subprocess.run(
                command, cwd=tmp_path, env={**os.environ, **variables}, capture_output=True, check=False
            )
            assert own.returncode == 2
        else:
            assert warm_python.run(words, tmp_path, variables).returncode == 2
        shown[name] = json.loads((tmp_path / name).read_text())

    assert shown["forked"] == shown["own"]
    assert (shown["own"]["zone"], shown["later"]["zone"]) == ("JST", "UTC")


def test_a_command_that_takes_too_long_is_killed_and_the_next_one_runs(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("import time\ntime.sleep(60)\n")

    with pytest.raises(AssertionError, match="not within"):
        warm_python.run(["run", "p.py"], tmp_path, {}, wait_s=1)

    assert warm_python.run(["status"], tmp_path, {}).returncode == 0
