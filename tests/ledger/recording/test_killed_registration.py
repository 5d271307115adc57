"""A run that is killed while it registers a stream or restores a lost ledger: the home can be used, and is complete."""

import shutil
from pathlib import Path

import pytest

from slackwater.cli.main import main
from slackwater.ledger.home import Home, streams_of
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.log_copier import copy_new
from slackwater.ledger.recording.stream_files import restore_lost
from slackwater.runtime.loader import load
from slackwater.runtime.run.before_start import register
from slackwater.storage.local import LocalStore
from tests.support.homes import STREAM, edit_ledger, make_home
from tests.support.kill_points import run_killed_at
from tests.support.rebuilds import make_project

PIPELINE = """
import slackwater as sw

pipeline = sw.Pipeline("clicks")

@pipeline.stream(sink=sw.sinks.files("parquet", "new/out"))
def added(spark): ...
"""


def _register(folder: Path) -> None:
    loaded = load(str(folder / "added.py"))
    home = Home(folder / ".slackwater")
    with Ledger.open(home.ledger_url, create=True) as ledger:
        register(loaded.pipeline.streams["added"], loaded.reference, home, ledger)


def test_a_home_whose_new_stream_was_killed_while_it_was_registered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_home(tmp_path)
    (tmp_path / "added.py").write_text(PIPELINE)
    saved = tmp_path.parent / f"{tmp_path.name}-saved"
    shutil.copytree(tmp_path, saved)
    number, killed = 0, True
    while killed:
        number += 1
        shutil.rmtree(tmp_path / ".slackwater")
        shutil.copytree(saved / ".slackwater", tmp_path / ".slackwater")
        killed = run_killed_at(number, lambda: _register(tmp_path), tmp_path, sql=True)
        assert main(["status"]) == 0, number
        assert main(["plan", "resume", "per_page"]) == 0, number
        _register(tmp_path)
        with Ledger.open(tmp_path / ".slackwater" / "ledger.db", create=False) as ledger:
            assert [one.number for one in ledger.generations("clicks/added")] == [1], number
            assert len(ledger.streams()) == 2
    assert number > 3


def test_a_home_that_an_earlier_version_left_without_a_generation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    home = make_home(tmp_path)
    (tmp_path / "added.py").write_text(PIPELINE)
    _register(tmp_path)
    shutil.rmtree(home / "streams" / "clicks" / "added")
    edit_ledger(home, "DELETE FROM generations WHERE stream = 'clicks/added'")

    assert main(["status"]) == 0
    assert main(["plan", "resume", "per_page"]) == 0
    assert main(["plan", "resume", "added"]) == 4
    assert "stream-unknown" in capsys.readouterr().err

    _register(tmp_path)
    assert main(["status", "added"]) == 0


@pytest.mark.parametrize("every", [13, pytest.param(1, marks=pytest.mark.thorough)])
def test_a_restoration_that_is_killed_is_repeated_until_nothing_is_missing(tmp_path: Path, every: int) -> None:
    project = make_project(tmp_path)
    home = Home(project.home)
    project.apply(project.plan())

    def restore() -> None:
        with Ledger.open(home.ledger_url, create=True) as ledger:
            restore_lost(home, ledger, streams_of(home))

    def recorded() -> object:
        with Ledger.open(home.ledger_url, create=False) as ledger:
            # As each command does before it uses what is recorded of the generation in use.
            copy_new(ledger, STREAM, 2, LocalStore(home.checkpoint("clicks", "per_page", 2)))
            logs = [
                (log, number, sorted(ledger.recorded_entries(STREAM, number, log)))
                for log in ("offsets", "commits", "sources/0")
                for number in (1, 2)
            ]
            return ledger.find_stream(STREAM), ledger.generations(STREAM), ledger.operations(STREAM), logs

    def lose() -> None:
        for file in Path(home.location).glob("ledger.db*"):
            file.unlink()

    lose()
    restore()
    whole = recorded()
    number, killed = 0, True
    while killed:
        number += every
        lose()
        killed = run_killed_at(number, restore, tmp_path, sql=True)
        restore()
        assert recorded() == whole, number
    assert number > 10
