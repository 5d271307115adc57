"""Sources without an end: they number their rows, so that none may be missing and none there twice."""

import shutil
from pathlib import Path

import pyarrow.dataset
import pytest

from scripts.conformance import EXACT, expected, streams
from tests.conformance.matrix import Area, Workspace, rebuilt_from
from tests.support.outputs import files_by_batch

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_generated_rows(tmp_path: Path) -> None:
    names = streams("generated")
    killed = Area("generated", names, {}).lay_down(tmp_path / "killed")
    killed.kill_in_batch()
    before = {name: len(_values(killed, name)) for name in names}
    shutil.copytree(killed.folder, tmp_path / "saved", symlinks=True)
    killed.run()
    after_kill = {name: _compared(killed, name, before[name]) for name in names}
    refused = rebuilt_from(tmp_path / "saved", killed)

    after_rebuild = {name: refused[name] or _compared(killed, name, before[name]) for name in names}
    assert {name: (after_kill[name], after_rebuild[name]) for name in names} == expected("generated")


def _compared(killed: Workspace, name: str, before: int) -> str:
    values = _values(killed, name)
    return EXACT if len(values) > before and values == list(range(len(values))) else f"{values}, {before} before"


def _values(workspace: Workspace, name: str) -> list[int]:
    output = workspace.folder / "out" / name
    files = [str(output / file) for files in files_by_batch(output).values() for file in files]
    values: list[int] = pyarrow.dataset.dataset(files).to_table()["value"].to_pylist()
    return sorted(values)
