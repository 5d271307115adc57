"""Settings: where they come from, which wins, and what is refused."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from slackwater.core.settings import FILE_NAME, load
from tests.support.second_user import NOBODY


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory is the test's, and no variable is set."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("SLACKWATER_")]:
        monkeypatch.delenv(name)


def _settings_file(folder: Path, text: str) -> Path:
    file = folder / FILE_NAME
    file.write_text(text)
    return file


def test_without_anything_the_home_is_beside_where_one_stands(tmp_path: Path) -> None:
    settings = load()

    assert settings.home == tmp_path / ".slackwater"
    assert (settings.ledger, settings.master, settings.restarts) == (None, None, 5)


def test_the_file_is_found_upward_and_its_paths_are_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _settings_file(tmp_path, 'home = "kept"\n')
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)

    assert load().home == tmp_path / "kept"


def test_the_nearest_file_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _settings_file(tmp_path, "restarts = 1\n")
    inner = tmp_path / "a"
    inner.mkdir()
    monkeypatch.chdir(inner)
    _settings_file(inner, "restarts = 2\n")

    assert load().restarts == 2


def test_flag_beats_variable_beats_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _settings_file(tmp_path, 'home = "of-file"\nmaster = "local[1]"\nlog_level = "error"\n')
    environment = {"SLACKWATER_HOME": "of-variable", "SLACKWATER_MASTER": "local[2]", "SLACKWATER_LOG_LEVEL": "info"}

    assert load().home == tmp_path / "of-file"
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert load().home == tmp_path / "of-variable"
    assert load(home="of-flag").home == tmp_path / "of-flag"
    assert load().master == "local[2]"
    assert load().log_level == "info"


def test_settings_of_spark_are_texts_as_spark_writes_them(tmp_path: Path) -> None:
    _settings_file(tmp_path, '[spark]\n"spark.a" = true\n"spark.b" = 4\n"spark.c" = "x"\n')

    assert load().spark == {"spark.a": "true", "spark.b": "4", "spark.c": "x"}


# A settings file of another user is not used silently: it names a home, jars and options of the JVM.


SAFE = "SLACKWATER_SAFE_DIRECTORY"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
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
