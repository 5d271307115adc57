"""What is recorded of a process: variables that functions name, and settings of executors; digests, and no secrets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slackwater.runtime.process_environment import environment_of
from tests.runtime.test_code_reach import reach

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
    assert reach(tmp_path, FILES).uses([name]).variables == variables


def test_of_an_unknown_function_what_all_but_the_streams_own_code_names(tmp_path: Path) -> None:
    assert reach(tmp_path, FILES).uses(["partial"]).variables == {"FACTOR", "SUFFIX", "INPUT"}


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
