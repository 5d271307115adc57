"""A full disk is called full, whichever way SQLite reports it, also by a command that only reads."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest

from slackwater.cli.main import main
from tests.support.homes import make_home
from tests.support.small_disk import small_disk


@pytest.mark.parametrize("command", [["status"], ["plan", "resume", "per_page"], ["ledger"]])
def test_a_full_disk_is_not_a_question_of_permissions(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with small_disk(4) as disk:
        make_home(disk.folder)
        for beside in (disk.folder / ".slackwater").glob("ledger.db-*"):
            beside.unlink()
        with suppress(OSError), (disk.folder / "filler").open("wb") as filler:
            filler.write(bytes(8 << 20))

        code = main([*command, "--home", str(disk.folder / ".slackwater"), "--format", "json"])

    error = json.loads(capsys.readouterr().err.splitlines()[-1])["error"]
    assert (code, error["code"]) == (9, "disk-full"), error
    assert "permission" not in error["hint"]
    assert "free some space" in error["hint"]
