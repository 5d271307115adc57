"""The commands of docs/reference/conformance.md, as they are typed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.conformance import page
from tests.conformance.outputs import rows_of_sink
from tests.support import warm_python
from tests.support.warm_jvm import attached

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[2]
COMMANDS = re.compile(r"```sh\npython (\S+ \S+) && cd (\S+)\nslackwater (.*)\n```")


def test_the_commands_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    typed = COMMANDS.search(page())
    assert typed is not None
    folder = tmp_path / typed[2]

    subprocess.run([sys.executable, *shlex.split(typed[1])], cwd=tmp_path, check=True)
    done = warm_python.run(shlex.split(typed[3]), folder, attached(folder))

    assert done.returncode == 0, done.stderr
    assert rows_of_sink(folder / "out" / "tumbling_window")
