"""``[storage.s3]``: credentials are read from where they are referred to, reach every client, and are shown nowhere."""

import os
from pathlib import Path

import pytest

from slackwater.core.errors import EnvironmentMissing, SettingsError
from slackwater.storage.open import open_read_store
from slackwater.storage.registry import configure
from tests.restart.conftest import file_baseline
from tests.restart.scenario import FileClicks, Workspace
from tests.restart.stored import stored_rows
from tests.support.errors import raises_code
from tests.support.processes import Command

__all__ = ["file_baseline"]

KEY, SECRET = "key-not-to-be-shown", "hunter2-not-to-be-shown"
SETTINGS = """
home = "{location}/home"
ledger = "{folder}/ledger.db"

[storage.s3]
access_key_id = "env:LAKE_KEY"
secret_access_key = "file:{folder}/secret"
endpoint = "{endpoint}"
region = "us-east-1"
"""


@pytest.fixture
def project(tmp_path: Path, s3_location: str) -> Workspace:
    """A project with its home and its output on S3; the environment of its commands has no ``AWS_*`` variable."""
    workspace = Workspace(tmp_path, FileClicks())
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    pipeline = tmp_path / "clicks.py"
    pipeline.write_text(pipeline.read_text().replace('"out"', f'"{s3_location}/out"'))
    text = SETTINGS.format(location=s3_location, folder=tmp_path, endpoint=os.environ["AWS_ENDPOINT_URL"])
    (tmp_path / "slackwater.toml").write_text(text)
    return workspace


def _start(project: Workspace, *arguments: str, **more: str) -> Command:
    own = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    with pytest.MonkeyPatch.context() as environment:
        for name in os.environ.keys() - own.keys():
            environment.delenv(name)
        return Command(arguments, project.folder, environment={"LAKE_KEY": KEY, "SPARK_LOCAL_IP": "127.0.0.1", **more})


def test_a_command_without_spark_reaches_the_store(project: Workspace, s3_location: str) -> None:
    status = _start(project, "status")
    assert status.end() == 0, status.log
    inspect = _start(project, "inspect", f"{s3_location}/none")
    assert inspect.end() == 4, inspect.log
    assert "not-a-checkpoint" in inspect.log


def test_a_secret_that_is_not_there_is_named(project: Workspace) -> None:
    (project.folder / "secret").unlink()
    status = _start(project, "status")
    assert status.end() == 9, status.log
    assert "storage-secret-missing" in status.log
    assert "storage.s3.secret_access_key" in status.log
    assert f"a readable file {project.folder}/secret" in status.log


@pytest.mark.parametrize(
    ("table", "where", "found"),
    [
        ({"ftp": {"token": "file:x"}}, "storage.ftp", "an unknown store"),
        ({"s3": {"secret": "env:A"}}, "storage.s3.secret", "an unknown key"),
        ({"s3": {"secret_access_key": SECRET}}, "storage.s3.secret_access_key", "something else, not shown here"),
    ],
)
def test_what_cannot_be_used_is_refused_and_not_shown(table: dict[str, dict[str, str]], where: str, found: str) -> None:
    before = dict(os.environ)
    with raises_code(SettingsError, "storage-settings", where=where, found=found) as refused:
        configure(table)
    assert SECRET not in str(refused.value)
    assert dict(os.environ) == before


def test_nothing_is_set_where_one_of_several_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_KEY", KEY)
    before = dict(os.environ)
    with pytest.raises(EnvironmentMissing) as missing:
        configure({"s3": {"access_key_id": "env:LAKE_KEY", "secret_access_key": "env:LAKE_SECRET"}})
    assert (missing.value.hint or "").startswith("export LAKE_SECRET=")
    assert dict(os.environ) == before


@pytest.mark.thorough
@pytest.mark.spark
def test_a_stream_runs_with_them_and_shows_them_nowhere(
    project: Workspace, s3_location: str, file_baseline: Workspace
) -> None:
    command = _start(project, "run", "clicks.py", "--until-caught-up", "--conf", "spark.sql.shuffle.partitions=2")
    shown: set[str] = set()
    store = open_read_store(s3_location)

    def has_written() -> bool:
        shown.update(_command_line(pid) for pid in command.refresh())
        return bool(store.list("out/_spark_metadata"))

    command.wait_for(has_written, "the first batch")
    assert command.end(300) == 0, command.log
    assert stored_rows(store, s3_location, "out") == file_baseline.rows()
    assert any("org.apache.spark.deploy.SparkSubmit" in line for line in shown)

    texts = [*shown, command.log, *(file.read_text("latin-1") for file in project.folder.glob("ledger.db*"))]
    paths = [f"{folder.path}/{name}" for folder in store.folders() for name in folder.files]
    home = [store.read(path).decode("latin-1") for path in paths]
    assert [text for text in [*texts, *home] if SECRET in text or KEY in text] == []


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
