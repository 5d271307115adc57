"""The environment variables that a pipeline file reads are found without running it."""

from __future__ import annotations

from pathlib import Path

from slackwater.core.errors import PipelineError
from slackwater.runtime.loader import environment_read
from tests.support.errors import raises_code

FILE = """
import os
import os as system
from os import environ, getenv as read

raise SystemExit("the file is not run")

A = os.environ["SUBSCRIPT"]
B = os.environ.get("GET", "default")
C = os.getenv("GETENV")
D = system.environ["ALIAS"]
E = environ.get("NAME")
F = read(key="KEYWORD")
G = "CONTAINED" in os.environ
os.environ["SET_ONLY"] = "x"
del os.environ["DELETED"]
H = {}.get("ANOTHER_MAPPING")
I = os.environ[A]


def inside(os):
    return f"{environ['IN_A_FUNCTION']}"
"""


def test_every_way_to_read_a_variable_is_found(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.py"
    file.write_text(FILE)
    assert environment_read(str(file)) == (
        "ALIAS",
        "CONTAINED",
        "GET",
        "GETENV",
        "IN_A_FUNCTION",
        "KEYWORD",
        "NAME",
        "SUBSCRIPT",
    )


def test_a_file_that_reads_none(tmp_path: Path) -> None:
    (tmp_path / "pipeline.py").write_text("import os\nprint(os.getcwd())\n")
    assert environment_read(str(tmp_path / "pipeline.py")) == ()


def test_a_file_that_does_not_exist(tmp_path: Path) -> None:
    with raises_code(PipelineError, "pipeline-absent"):
        environment_read(str(tmp_path / "absent.py"))
