"""A settings file of another user is not used silently: it names a home, jars and options of the JVM."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.second_user import NOBODY

SAFE = "SLACKWATER_SAFE_DIRECTORY"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder below one whose settings file is another user's."""
    tmp_path.chmod(0o755)
    file = tmp_path / "slackwater.toml"
    file.write_text('home = "elsewhere"\n')
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    os.chown(file, NOBODY, NOBODY)
    (tmp_path / "below").mkdir()
    return tmp_path / "below"


def _status(folder: Path, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "slackwater", "status"]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False
    )


def test_it_is_refused_and_the_setting_that_allows_it_is_named(folder: Path) -> None:
    done = _status(folder)
    assert done.returncode == 2
    assert "settings-owner" in done.stderr
    assert f"export {SAFE}={folder.parent}" in done.stderr
    assert not (folder.parent / "elsewhere").exists()


@pytest.mark.parametrize("trusted", ["{folder}", "/nowhere:{folder}", "*"])
def test_a_trusted_folder_is_used(folder: Path, trusted: str) -> None:
    done = _status(folder, {SAFE: trusted.format(folder=folder.parent)})
    assert (done.returncode, "elsewhere" in done.stdout) == (0, True), done.stderr


@pytest.mark.parametrize("trusted", ["", ":", "/nowhere", "{folder}/below"])
def test_another_folder_is_not(folder: Path, trusted: str) -> None:
    assert _status(folder, {SAFE: trusted.format(folder=folder.parent)}).returncode == 2


def test_root_uses_the_file_of_the_user_who_called_sudo(folder: Path) -> None:
    assert _status(folder, {"SUDO_UID": str(NOBODY)}).returncode == 0
