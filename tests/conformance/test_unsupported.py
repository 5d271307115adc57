"""Every operation that the guide calls unsupported is refused before its stream starts, with what to do instead."""

import re
from pathlib import Path

import pytest

from scripts.conformance import shown
from tests.conformance.matrix import FILE, Area

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
AREA = "unsupported"
REFUSED = re.compile(rf"^\S+ {AREA}/(\w+) does not start: ([\w-]+): .*\(hint: (.*)\)$", re.MULTILINE)
WRONG_PIPELINE = 2
"""The exit code where no stream of the pipeline can start."""
GENERAL_HINT = "repeat the command"


def test_unsupported_operations(tmp_path: Path) -> None:
    rows = shown(AREA)
    workspace = Area(AREA, [row.name for row in rows], {}).lay_down(tmp_path / AREA)

    messages = workspace.refused("run", FILE, "--until-caught-up", code=WRONG_PIPELINE)

    found = {name: (code, hint) for name, code, hint in REFUSED.findall(messages)}
    assert {name: code for name, (code, _) in found.items()} == {row.name: row.refused for row in rows}, messages
    assert [name for name, (_, hint) in found.items() if hint.startswith(GENERAL_HINT)] == []
    assert re.findall(r"AnalysisException|IllegalArgumentException|AssertionError", messages) == []
    # Refused before anything was created for the stream: no output, and no checkpoint.
    assert not (workspace.folder / "out").exists()
    assert list(workspace.folder.glob(".slackwater/streams/*/*/checkpoints/*/*")) == []
