"""Bundles as a user makes them, in this process."""

import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from slackwater.cli.main import main

FOLDER = "evidence/"


@dataclass(frozen=True)
class Made:
    """What the command has printed, and the files of the bundle, by their names without the folder."""

    code: int
    out: str
    err: str
    files: dict[str, str]

    @property
    def document(self) -> Any:
        return json.loads(self.files["evidence.json"])

    @property
    def page(self) -> str:
        return self.files["evidence.html"]


Evidence = Callable[..., Made]


@pytest.fixture
def evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Evidence:
    """Make a bundle in the test's own folder, in place of the one before; without files where it was refused."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Made:
        code = main(["evidence", *arguments, "--out", "bundle.zip", "--force"])
        captured = capsys.readouterr()
        return Made(code, captured.out, captured.err, contents(tmp_path / "bundle.zip") if code == 0 else {})

    return run


def contents(bundle: Path) -> dict[str, str]:
    with zipfile.ZipFile(bundle) as archive:
        assert all(name.startswith(FOLDER) for name in archive.namelist())
        return {name.removeprefix(FOLDER): archive.read(name).decode() for name in archive.namelist()}
