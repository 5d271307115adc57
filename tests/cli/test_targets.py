"""What a LOCATION or the name of a STREAM means, for every verb that takes either."""

import json
import shutil
from pathlib import Path

import pytest

from slackwater.cli.main import main
from tests.cli.conftest import Slackwater
from tests.cli.test_adopt import HOME, unrecorded
from tests.support.adopted import AdoptedProject

NOT_FOUND = 4


@pytest.fixture
def project(slackwater: Slackwater, tmp_path: Path) -> AdoptedProject:
    """A home with stream ``hourly``, in a working directory with a folder ``hourly`` that is another checkpoint."""
    made = unrecorded(tmp_path)
    assert slackwater("adopt", str(made.path), "--name", "hourly", *HOME).code == 0
    shutil.copytree(made.path, tmp_path / "hourly")
    shutil.rmtree(tmp_path / "hourly/commits")
    return made


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("verb", ["doctor", "inspect"])
def test_a_stream_is_meant_before_the_folder_of_its_name(slackwater: Slackwater, verb: str) -> None:
    stream = slackwater(verb, "hourly", *HOME)
    assert "hourly is a stream of this home; the path of this name is ./hourly" in stream.err
    other = slackwater(verb, "./hourly", *HOME)
    assert "is a stream of this home" not in other.err
    assert stream.out != other.out
    assert ("watched/hourly" in stream.out) is (verb == "doctor")
    assert "<folder>/hourly" not in stream.out


def test_a_folder_is_meant_where_no_stream_has_its_name(slackwater: Slackwater, project: AdoptedProject) -> None:
    (project.folder / "hourly").rename(project.folder / "views")
    assert "is a stream of this home" not in slackwater("inspect", "views", *HOME).err
    # A home that is not there, and one whose ledger cannot be read.
    assert slackwater("inspect", "views", "--home", "absent").code == slackwater("inspect", "./views").code
    (project.folder / "home/ledger.db").write_text("no ledger")
    assert slackwater("inspect", "views", *HOME).code == slackwater("inspect", "./views").code


def test_the_location_of_a_deleted_checkpoint_is_its_stream(
    project: AdoptedProject, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(project.path)
    capsys.readouterr()
    relative = str(project.path.relative_to(project.folder))
    for target in (str(project.path), f"./{relative}", relative, "watched/hourly"):
        main(["doctor", target, "--format", "json", *HOME])
        (found,) = json.loads(capsys.readouterr().out)["streams"]
        commands = [one["next"] for one in found["findings"] if one["severity"] == "stop"]
        assert found["stream"] == "watched/hourly"
        assert commands, target
        assert commands[0].startswith("slackwater plan rebuild watched/hourly")
        assert main(["plan", "rebuild", target, *HOME]) != NOT_FOUND
        assert "code-needed" in capsys.readouterr().err


@pytest.mark.parametrize("words", [(), ("--raw", "offsets/0"), ("--state", "0")])
def test_inspect_of_a_deleted_checkpoint_names_its_stream(
    slackwater: Slackwater, project: AdoptedProject, words: tuple[str, ...]
) -> None:
    shutil.rmtree(project.path)
    relative = str(project.path.relative_to(project.folder))
    for target in (str(project.path), f"./{relative}", relative, project.path.as_uri(), "watched/hourly"):
        found = slackwater("inspect", target, *words, *HOME)
        assert (found.code, "not-a-checkpoint" in found.err) == (NOT_FOUND, True), target
        assert "the checkpoint of stream watched/hourly was here" in found.err
        assert "slackwater doctor watched/hourly" in found.err
    # A folder is left, and nothing in it.
    project.path.mkdir()
    assert "slackwater doctor watched/hourly" in slackwater("inspect", str(project.path), *HOME).err
    # A ledger that cannot be read keeps nothing from being said of the place itself.
    (project.folder / "home/ledger.db").write_text("no ledger")
    assert "not-a-checkpoint" in slackwater("inspect", str(project.path), *HOME).err
