"""What is recorded of a process: variables that functions name, and settings of executors; digests, and no secrets."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from slackwater.core.errors import PipelineError, Refused
from slackwater.core.program import InputShape, Program
from slackwater.runtime.loader import environment_read
from slackwater.runtime.program.code_reach import (
    changed_environment,
    environment_before,
    environment_of,
    environment_settings,
    of_workers,
    replace_environment,
    restore_environment,
    with_environment,
)
from tests.runtime.test_code_reach import reach
from tests.support.errors import raises_code

HELPERS = """
import os


def scaled(n):
    return n * int(os.environ.get("FACTOR", "1"))


def source():
    return os.environ["INPUT"]
"""
PIPELINE = """
from os import getenv as read
from helpers import scaled, source


def outer(n):
    return scaled(n) + len(read("SUFFIX"))


def stream(spark):
    return spark.read(source(), read("ADDRESS")).map(outer)
"""
FILES = {"helpers.py": HELPERS, "pipeline.py": PIPELINE}


@pytest.mark.parametrize(
    ("name", "variables"), [("outer", {"FACTOR", "SUFFIX"}), ("scaled", {"FACTOR"}), ("source", {"INPUT"})]
)
def test_the_variables_that_a_function_names(name: str, variables: set[str], tmp_path: Path) -> None:
    assert reach(tmp_path, FILES).uses([name])[0] == variables


def test_of_an_unknown_function_what_all_but_the_streams_own_code_names(tmp_path: Path) -> None:
    assert reach(tmp_path, FILES).uses(["partial"])[0] == {"FACTOR", "SUFFIX", "INPUT"}


def test_the_same_environment_is_recorded_as_the_same() -> None:
    first = environment_of(["B", "A"], {}, {"A": "1", "TZ": "UTC", "UNRELATED": "1"})
    assert environment_of(["A", "B"], {}, {"UNRELATED": "2", "TZ": "UTC", "A": "1"}) == first
    assert environment_of(["A", "B"], {"A": "1"}, {"TZ": "UTC", "A": "2"}) == first
    assert first["B"] == ""
    assert environment_of(["A", "B"], {}, {"A": "1", "B": "", "TZ": "UTC"}) != first


def test_neither_values_nor_secrets_are_recorded() -> None:
    given = {"API_TOKEN": "s3cret", "RATE": "7.25", "PYTHONPATH": "/project", "PYTHONHASHSEED": "0", "TZ": "Asia/Tokyo"}
    found = environment_of(["DB_PASSWORD", "FACTOR", "TZ"], given, {"DB_PASSWORD": "s3cret", "FACTOR": "12.5"})
    assert list(found) == ["TZ", "FACTOR", "spark.executorEnv.RATE"]
    assert found["TZ"] == "Asia/Tokyo"
    assert not any(value in json.dumps(found) for value in ("12.5", "7.25", "s3cret"))


class _Session:
    """What is read of a session."""

    def __init__(self, given: dict[str, str]) -> None:
        self.sparkContext = SimpleNamespace(environment=given)


def test_a_replay_sets_what_a_run_recorded_and_nothing_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"TZ": "Asia/Tokyo", "FACTOR": "2", "LANG": "C.UTF-8", "DB": "jdbc:x://me:s3cret@db/x"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("UNSET", raising=False)
    first: Any = _Session({"RATE": "7", "PYTHONPATH": "/a"})
    read = ["FACTOR", "UNSET", "DB"]
    program = Program(environment=environment_of(read, first.sparkContext.environment, os.environ))
    recorded = environment_settings(program, first)
    assert recorded.items() >= {
        ("environment.FACTOR", "2"), ("environment.LANG", "C.UTF-8"), ("environment.TZ", "Asia/Tokyo"),
        ("environment.UNSET", ""), ("spark.executorEnv.RATE", "7"),
    }  # fmt: skip
    assert "s3cret" not in str(recorded)
    assert not any("PYTHONPATH" in name for name in recorded)

    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("FACTOR")
    later: Any = _Session({"TZ": "Europe/Berlin", "ADDED": "1", "PYTHONPATH": "/b"})
    assert changed_environment(later, recorded) == {
        "spark.executorEnv.ADDED": (None, "1"),
        "spark.executorEnv.FACTOR": ("2", None),
        "spark.executorEnv.RATE": ("7", None),
        "spark.executorEnv.TZ": ("Asia/Tokyo", "Europe/Berlin"),
    }
    before, given = environment_before(later), dict(later.sparkContext.environment)
    replace_environment(later, recorded)
    assert environment_of(read, later.sparkContext.environment, os.environ) == program.environment
    assert of_workers(later, recorded).items() >= {("FACTOR", "2"), ("TZ", "Asia/Tokyo"), ("PYTHONPATH", "/b")}
    assert changed_environment(later, recorded) == {}
    restore_environment(later, before)
    assert (os.environ["TZ"], "FACTOR" in os.environ) == ("UTC", False)
    assert later.sparkContext.environment == given

    monkeypatch.setenv("UNSET", "1")
    with raises_code(Refused, "variable-set", match="UNSET"):
        replace_environment(later, recorded)
    restore_environment(later, before)


def test_functions_of_a_query_without_state_are_recorded_apart(tmp_path: Path) -> None:
    program = Program(rows=(InputShape("source 0", functions=("outer",)),))
    found = with_environment(program, reach(tmp_path, FILES), cast("Any", _Session({"FACTOR": "2"})))
    assert (set(found.output_environment), found.environment) == ({"TZ", "FACTOR", "SUFFIX"}, {})
    assert environment_settings(found, cast("Any", _Session({}))) == {}


# The environment variables that a pipeline file reads are found without running it.


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
