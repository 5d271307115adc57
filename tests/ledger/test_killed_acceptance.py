"""``slackwater home accept`` is killed before each of its changes, and typed again: nothing is missing or mixed."""

import json
import shutil
from pathlib import Path

import pytest

from slackwater.cli.main import main
from slackwater.ledger.home import HERE, Home, ensure_identity, place_of, read_identity
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.stream_files import write_stream_file_of
from tests.support.homes import STREAM, make_home
from tests.support.kill_points import count_commits, kill_points

STEPS_MIN = 4


def _facts(home: Path) -> tuple[str, list[str], int]:
    """The stream's id, the places of its checkpoints below the home, and the number of its batches."""
    with Ledger.open(home / "ledger.db", create=False) as ledger:
        assert [one.full_name for one in ledger.streams()] == [STREAM]
        places = [Path(one.location).relative_to(home).as_posix() for one in ledger.generations(STREAM)]
        recorded = json.loads((home / "streams" / STREAM / "stream.json").read_text())
        return recorded["id"], places, len(ledger.batches(STREAM))


def _files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("how", ["moved", "copied"])
def test_a_killed_acceptance_is_typed_again(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count_commits()
    project, staging, saved = (tmp_path / name for name in ("project", "staging", "saved"))
    home = make_home(project)
    with Ledger.open(home / "ledger.db", create=True) as ledger:
        write_stream_file_of(Home(home), ledger, STREAM)
    identity = ensure_identity(Home(home))
    own, places, batches = _facts(home)
    shutil.copytree(project, saved)
    accept = ["home", "accept", f"--{how}"]

    def prepare() -> None:
        shutil.rmtree(staging, ignore_errors=True)
        (project / "out" / "_slackwater.json").unlink(missing_ok=True)
        shutil.copytree(saved, staging)
        if how == "moved":
            shutil.rmtree(project, ignore_errors=True)
        monkeypatch.chdir(staging)

    prepare()
    assert main(["plan", "resume", STREAM]) == 5, "nothing is accepted yet"
    assert main(accept) == 0
    shown = main(["status"])
    for number in kill_points(lambda: main(accept), staging, prepare):
        assert main(accept) == 0, number
        found = Home(staging / ".slackwater")
        assert place_of(found) == HERE, number
        known = read_identity(found.location)
        assert known is not None
        stream, *others = _facts(staging / ".slackwater")
        assert others == [places, batches], number
        # A copy has ids of its own; the original keeps its home as it was, and its output.
        assert (known[0] == identity, stream == own) == ((how == "moved",) * 2), number
        if how == "copied":
            assert _files(home) == _files(saved / ".slackwater"), number
            assert json.loads((project / "out" / "_slackwater.json").read_text())["stream_id"] == own, number
        assert main(["status"]) == shown, number
    assert number >= STEPS_MIN
