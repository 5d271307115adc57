"""``slackwater adopt`` of a checkpoint that was moved, of a copy, and of one checkpoint by several commands at once."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from slackwater.core.errors import Refused
from slackwater.core.records import GenerationRecord, StreamRecord
from slackwater.ledger.ledger import Ledger
from slackwater.sinks.common.registry import UNKNOWN
from tests.cli.conftest import Slackwater
from tests.cli.test_adopt import HOME, REFUSED, adopting, all_of, unrecorded
from tests.support.adopted import AdoptedProject
from tests.support.homes import QUERY_ID


@pytest.fixture
def project(tmp_path: Path) -> AdoptedProject:
    """The checkpoint of a program, which no home has recorded."""
    return unrecorded(tmp_path)


def test_a_checkpoint_that_was_moved_is_the_same_stream_and_a_copy_is_not(
    slackwater: Slackwater, project: AdoptedProject
) -> None:
    assert slackwater(*adopting(project)).code == 0
    before = all_of("watched/clicks", project.folder)["logs"]
    copied, moved = project.folder / "copied", project.folder / "moved"
    shutil.copytree(project.path, copied)

    copy = slackwater("adopt", str(copied), "--name", "clicks", *HOME)
    project.path.rename(moved)
    done = slackwater("adopt", str(moved), *HOME)

    assert (copy.code, "adopt-taken" in copy.err) == (REFUSED, True)
    assert (done.code, done.err) == (0, "")
    after = all_of("watched/clicks", project.folder)
    assert after == {"generations": [(1, str(moved), QUERY_ID)], "logs": before}


def test_status_shows_where_a_checkpoint_may_have_been_moved(slackwater: Slackwater, project: AdoptedProject) -> None:
    assert slackwater(*adopting(project)).code == 0
    moved = project.path.with_name("moved")
    project.path.rename(moved)

    lost = slackwater("status", *HOME, "--format", "json").document["streams"][0]
    shown = " ".join(slackwater("status", *HOME).out.split())

    assert (lost["verdict"]["code"], lost["moved_to"]) == ("checkpoint-lost", "<folder>/state/moved")
    assert "if it was moved: slackwater adopt <folder>/state/moved" in shown
    assert slackwater("adopt", str(moved), *HOME).code == 0
    found = slackwater("status", *HOME, "--format", "json").document["streams"][0]
    assert (found["checkpoint"], found["moved_to"]) == ("<folder>/state/moved", None)
    assert found["verdict"]["code"] != "checkpoint-lost"


def test_one_checkpoint_that_is_adopted_at_once_under_many_names_is_one_stream(project: AdoptedProject) -> None:
    with Ledger.open(project.folder / "home.db", create=True) as ledger:

        def register(number: int) -> None:
            with suppress(Refused):
                _register(ledger, f"name{number}", project.path)

        with ThreadPoolExecutor(6) as threads:
            list(threads.map(register, range(6)))
        assert len(ledger.stream_names()) == 1
        with pytest.raises(Refused, match="which another process has recorded meanwhile"):
            _register(ledger, "other", project.path)


def _register(ledger: Ledger, name: str, location: Path) -> None:
    stream = StreamRecord("watched", name, UNKNOWN, "append", "")
    ledger.register_stream(stream, GenerationRecord(stream.full_name, 1, str(location)))
