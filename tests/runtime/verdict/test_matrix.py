"""The verdict on each edit of the table, by the plans that a real Spark makes of the code before and after it."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.verdict.edits import BASES, HERE, Edit, edits
from tests.support.warm_jvm import attached

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
EDITS = edits()
GOALS = tomllib.loads((HERE / "goals.toml").read_text())
IN_THE_GATE = list({edit.base: edit.name for edit in EDITS}.values())
"""The last edit of each base: what the gate makes of an application."""
HARMLESS, COMPATIBLE = "harmless", "compatible"
ALLOWED_WITH_OTHER_ROWS = {"a longer watermark delay", "delay of one side of a join"}
"""Rows that the old delay had closed already are written; the new code alone would have written them later."""
Verdicts = Mapping[str, Mapping[str, Any]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all pipelines and applications, one after another: verdicts name its paths."""
    return tmp_path_factory.mktemp("verdicts")


@pytest.fixture(scope="module")
def verdicts(folder: Path) -> Verdicts:
    return _verdicts(folder)


def _verdicts(folder: Path, *words: str) -> Verdicts:
    done = subprocess.run(
        [sys.executable, "-m", "tests.runtime.verdict.verdicts", str(folder), *words],
        env={**os.environ, **attached(folder)},
        cwd=HERE.parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: Verdicts = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("edit", [edit for edit in EDITS if edit.verdict == HARMLESS], ids=lambda edit: edit.name)
def test_a_harmless_edit_is_not_refused(verdicts: Verdicts, edit: Edit) -> None:
    assert verdicts[edit.name]["starts"], verdicts[edit.name]


@pytest.mark.parametrize("edit", [edit for edit in EDITS if edit.verdict != HARMLESS], ids=lambda edit: edit.name)
def test_a_change_has_its_verdict(verdicts: Verdicts, edit: Edit) -> None:
    found = verdicts[edit.name]
    assert found["effect"] == edit.verdict or (found["starts"] and edit.verdict == COMPATIBLE), found
    assert not edit.codes or set(edit.codes) & set(found["codes"]), found
    assert (found["goal"] or "-") == GOALS[edit.name]


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(IN_THE_GATE, id="one of each base"),
        pytest.param([edit.name for edit in EDITS], id="all", marks=pytest.mark.thorough),
    ],
)
def test_an_edit_of_an_application_has_the_verdict_of_a_pipeline(
    verdicts: Verdicts, folder: Path, names: list[str]
) -> None:
    found = _verdicts(folder, "--applications", *names)
    assert found.keys() == set(names)
    assert found == {name: verdicts[name] for name in names}


def test_the_table_is_large_enough() -> None:
    harmless = [edit for edit in EDITS if edit.verdict == HARMLESS]
    assert len(harmless) >= 30
    assert len(EDITS) - len(harmless) >= 90
    assert len({edit.name for edit in EDITS}) == len(EDITS)


def test_what_spark_does_is_recorded_and_no_silent_change_starts() -> None:
    measured = tomllib.loads((HERE / "measured.toml").read_text())
    changes = {edit.name: edit for edit in EDITS if edit.verdict != HARMLESS}
    assert measured.keys() == changes.keys()
    wrong = {name for name, what in measured.items() if not what.startswith("the rows of")}
    assert {name for name in wrong if changes[name].verdict == COMPATIBLE} == ALLOWED_WITH_OTHER_ROWS


def test_the_bases_are_used() -> None:
    assert {edit.base for edit in EDITS} == BASES.keys()
