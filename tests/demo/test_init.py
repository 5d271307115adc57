"""``slackwater init``: an example project that runs as it is, from a checkout and from a wheel."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.metadata import Metadata

from slackwater.cli.verbs.init import read_example, with_change

ROOT = Path(__file__).parents[2]
PROJECT = {
    "clicks",
    "clicks.py",
    "landing",
    "make_clicks.py",
    "make_weather.py",
    "my_job.py",
    "slackwater.toml",
    "upgrades",
}


def init(*arguments: str, folder: Path, package: Path = ROOT / "src") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "slackwater", "init", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(package)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60)


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_it_lays_out_pipelines_with_something_to_read(tmp_path: Path) -> None:
    done = init("try", folder=tmp_path)

    assert (done.returncode, done.stderr.splitlines()) == (
        0,
        ["next: cd try", "next: slackwater run clicks.py --until-caught-up"],
    )
    laid = tmp_path / "try"
    assert {path.name for path in laid.iterdir()} == PROJECT | {"weather.py"}
    assert (laid / "clicks.py").read_text() == read_example("clicks.py")
    upgrade = with_change(read_example("weather.py"), read_example("changes/upgraded_gold.py"))
    assert (laid / "upgrades" / "weather.py").read_text() == upgrade
    clicks = [json.loads(line) for file in (laid / "clicks").iterdir() for line in file.read_text().splitlines()]
    assert len(clicks) == 3000
    lines = (laid / "landing" / "readings-0000.json").read_text().splitlines()
    stations = {json.loads(line)["station"] for line in lines if line.endswith("}")}
    assert stations == {"EWR", "JFK", "LGA"}


def test_it_names_what_it_laid_out_as_json(tmp_path: Path) -> None:
    done = init("a try", "--format", "json", folder=tmp_path)

    document = json.loads(done.stdout)
    assert document["schema"] == "slackwater.init/1"
    assert all((tmp_path / "a try" / laid["path"]).exists() for laid in document["contents"])
    assert document["next"][0] == "cd 'a try'"


def test_the_working_directory_may_be_the_project(tmp_path: Path) -> None:
    done = init(".", folder=tmp_path)

    assert (done.returncode, done.stderr) == (0, "next: slackwater run clicks.py --until-caught-up\n")
    assert (tmp_path / "clicks.py").is_file()


@pytest.mark.parametrize("name", ["notes.txt", ".hidden"])
def test_a_folder_that_holds_something_is_refused_and_left_as_it_is(tmp_path: Path, name: str) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / name).write_text("mine")

    done = init("mine", folder=tmp_path)

    assert (done.returncode, done.stderr.split(":")[0]) == (5, "error init-not-empty")
    assert files_of(tmp_path) == {f"mine/{name}": b"mine"}


@pytest.mark.parametrize(
    ("place", "expected"), [("mine", (5, "error init-not-empty")), ("mine/try", (2, "error init-unwritable"))]
)
def test_a_file_and_a_folder_below_it_are_refused(tmp_path: Path, place: str, expected: tuple[int, str]) -> None:
    (tmp_path / "mine").write_text("mine")

    done = init(place, folder=tmp_path)

    assert (done.returncode, done.stderr.split(":")[0]) == expected
    assert files_of(tmp_path) == {"mine": b"mine"}


@pytest.mark.parametrize("name", ["make_clicks.py", "make_weather.py"])
def test_more_input_continues_after_the_files_that_are_there(tmp_path: Path, name: str) -> None:
    folder = tmp_path / {"make_clicks.py": "clicks", "make_weather.py": "landing"}[name]
    script = [sys.executable, str(ROOT / "examples" / name)]
    subprocess.run([*script, "2"], cwd=tmp_path, check=True)
    two = files_of(folder)
    subprocess.run([*script, "1"], cwd=tmp_path, check=True)
    three = files_of(folder)
    assert (len(two), len(three)) == (2, 3)
    assert two.items() < three.items()
    modified = [path.stat().st_mtime for path in sorted(folder.iterdir())]
    assert modified == sorted(set(modified))


def test_a_wheel_brings_the_examples_and_a_description_for_an_index(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path / "installed")
    listed = ["tar", "-tzf", str(next(tmp_path.glob("*.tar.gz")))]
    assert "/tests/" not in subprocess.run(listed, check=True, capture_output=True, text=True).stdout
    text = next((tmp_path / "installed").glob("*.dist-info/METADATA")).read_bytes()
    described = Metadata.from_email(text, validate=True)
    assert described.metadata_version == "2.3"
    # An index shows the description outside of the repository.
    assert not re.findall(r"\]\((?!https://|#)", described.description or "")
    assert (tmp_path / "installed/slackwater/py.typed").exists()

    done = init("try", folder=tmp_path, package=tmp_path / "installed")

    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "try").iterdir()} >= PROJECT
    demo = [sys.executable, "-m", "slackwater", "demo", "--folder", "try"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}
    story = subprocess.run(demo, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (story.returncode, story.stderr.split(":")[0]) == (2, "error demo-folder")
