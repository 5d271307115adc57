"""Commands as a user types them, in this process."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from slackwater.cli.main import main


@dataclass(frozen=True)
class Done:
    """What a command did. Paths of the test's own folder are shown as ``<folder>``."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        return json.loads(self.err)["error"]


Slackwater = Callable[..., Done]


@pytest.fixture
def slackwater(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Slackwater:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Done:
        code = main(arguments)
        captured = capsys.readouterr()
        return Done(code, _shown(captured.out, tmp_path), _shown(captured.err, tmp_path))

    return run


def _shown(text: str, folder: Path) -> str:
    # Tables are as wide as their longest path, which differs from machine to machine.
    lines = [" ".join(line.replace(str(folder), "<folder>").split(" ")).rstrip() for line in text.splitlines()]
    return "\n".join(lines)
