"""The guard: a number line that does not agree is refused, with a name and a remedy, and nothing is changed."""

import hashlib
import shutil
from pathlib import Path

import pytest

from slackwater.core.records import OperationRecord
from tests.runtime.project import PIPELINE as WORK
from tests.runtime.project import Project

PIPELINE = """
import slackwater as sw

pipeline = sw.Pipeline("work")

def source(spark):
    return spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1).json("in")

for name in ("lost", "ahead", "behind", "unfinished", "sound"):
    pipeline.stream(name=name, sink=sw.sinks.files("json", f"{ROOT}/{name}"))(source)
"""
REFUSED = {
    "lost": "checkpoint-lost",
    "ahead": "sink-ahead",
    "behind": "sink-behind",
    "unfinished": "operation-unfinished",
}


def _write(project: Project, root: str) -> None:
    project.write(f"ROOT = {root!r}\n{PIPELINE}")


def _damage(project: Project) -> None:
    shutil.rmtree(project.checkpoint("lost"))
    for batch in (2, 3):
        for log in ("offsets", "commits"):
            _remove(project.checkpoint("ahead") / log / str(batch))
    for batch in (2, 3):
        _remove(project.folder / "out" / "behind" / "_spark_metadata" / str(batch))
    with project.ledger() as ledger:
        ledger.begin_operation(
            OperationRecord("op-1", f"{WORK}/unfinished", "rebuild", "applying", ledger.now_ms(), None, "plan.json")
        )


def _remove(file: Path) -> None:
    file.unlink()
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def _digest(project: Project, names: tuple[str, ...]) -> dict[str, str]:
    """Every file of these streams with what it holds, but the lease's, which a refused run held for a moment."""
    folders = [Path(project.home.stream_folder(WORK, name)) for name in names]
    folders += [project.folder / "out" / name for name in names]
    return {
        str(file): hashlib.sha256(file.read_bytes()).hexdigest()
        for folder in folders
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != "lease.json"
    }


@pytest.mark.spark
def test_what_does_not_agree_is_refused_and_left_as_it_is(project: Project) -> None:
    _write(project, "out")
    project.add_files(4)
    project.run("--until-caught-up")
    _damage(project)
    project.add_files(1)
    before = _digest(project, tuple(REFUSED))

    # Several streams: those that are refused stop no other.
    command = project.run("--until-caught-up", expected=7)
    for name, code in REFUSED.items():
        assert f"{WORK}/{name}: failed: {code}: " in command.log, command.log
        assert len(project.runs(name)) == 1, command.log
    assert project.ids("out/sound") == list(range(5))
    assert _digest(project, tuple(REFUSED)) == before

    # One stream alone: refused before Spark starts, with the error's own exit code and its hint.
    for name, code in REFUSED.items():
        command = project.run("--stream", name, expected=5)
        assert f"error {code}: " in command.log, command.log
        assert "hint: slackwater " in command.log, command.log
        assert "Using Spark" not in command.log
    assert _digest(project, tuple(REFUSED)) == before

    _write(project, "elsewhere")
    command = project.run("--stream", "sound", expected=5)
    assert "error sink-changed: " in command.log
    assert f"found format=json kind=files path={project.folder}/elsewhere/sound" in command.log
    assert not (project.folder / "elsewhere").exists()
    with project.ledger() as ledger:
        assert ledger.find_stream(f"{WORK}/sound").sink["path"] == f"{project.folder}/out/sound"
