"""Queries that Slackwater does not run: their own program restarts on its own path, and writes every row once."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from slackwater.checkpoint.logs import read_logs
from slackwater.storage.local import LocalStore
from tests.support import warm_python
from tests.support.warm_jvm import attached

PROGRAM = Path(__file__).with_name("adopted_queries.py")
FILES = 14
KILLED_AFTER = 7

pytestmark = pytest.mark.spark


class Scene:
    """The user's program, its input, and what it leaves behind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / PROGRAM.name
        shutil.copy(PROGRAM, self.program)
        for name in ("in", ".slackwater"):
            (folder / name).mkdir()

    def add_files(self, first: int, last: int) -> None:
        for number in range(first, last + 1):
            rows = [
                {
                    "at": f"2026-01-01T{(number * 7 + row) // 60:02}:{(number * 7 + row) % 60:02}:00Z",
                    "page": f"p{row % 3}",
                }
                for row in range(0, 30, 2)
            ]
            file = self.folder / f"{number:03}.json"
            file.write_text("".join(json.dumps(row) + "\n" for row in rows))
            os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
            file.rename(self.folder / "in" / file.name)

    def checkpoint(self, name: str) -> Path:
        return self.folder / "checkpoints" / name

    def run_and_kill(self) -> None:
        """kill -9 of the program and its JVM, once each query has committed some batches."""
        command = [sys.executable, str(self.program), "run", str(self.folder)]
        with (self.folder / "run.log").open("w") as log:
            process = subprocess.Popen(command, start_new_session=True, stdout=log, stderr=log)
        deadline = time.monotonic() + 180
        while min(self._committed(name) for name in ("lost_state", "torn_commit")) < KILLED_AFTER:
            assert process.poll() is None, (self.folder / "run.log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def finish(self) -> None:
        command = [sys.executable, str(self.program), "finish", str(self.folder)]
        environment = {**os.environ, **attached(self.folder)}
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
        assert ended.returncode == 0, ended.stderr

    def type(self, *commands: str) -> str:
        shown = ""
        for command in commands:
            words = [*command.split(), "--home", str(self.folder / ".slackwater")]
            ended = warm_python.run(words, self.folder, attached(self.folder), in_one=True)
            assert ended.returncode == 0, ended.stdout
            shown += ended.stdout
        return shown

    def operation(self, plan: str) -> str:
        return str(json.loads((self.folder / plan).read_text())["id"])

    def rows(self, name: str) -> Counter[str]:
        folder, files = self.folder / "out" / name, set[str]()
        for entry in (folder / "_spark_metadata").iterdir():
            if not entry.name.startswith("."):
                files |= {json.loads(line)["path"].rpartition("/")[2] for line in entry.read_text().splitlines()[1:]}
        return Counter(line for file in files for line in (folder / file).read_text().splitlines())

    def digest(self) -> dict[str, str]:
        folders = (self.folder / "checkpoints", self.folder / "out")
        files = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
        return {str(path.relative_to(self.folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    def _committed(self, name: str) -> int:
        return read_logs(LocalStore(self.checkpoint(name))).committed


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_their_own_program_continues_exactly(scene: Scene) -> None:
    scene.add_files(0, FILES - 5)
    scene.run_and_kill()
    # The state after the newest batches is gone.
    store = scene.checkpoint("lost_state") / "state" / "0" / "0"
    files = [file for file in store.glob("*.delta") if int(file.stem) > KILLED_AFTER - 2]
    assert files
    for file in files:
        file.unlink()
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    _tear_commit(scene)
    damaged = scene.digest()

    rebuild = "plan rebuild watched/lost_state --pipeline adopted_queries.py --out rebuild.json --force"
    scene.type(
        f"plan resume {scene.checkpoint('torn_commit')} --out resume.json", "apply resume.json --yes --i-stopped-it"
    )
    scene.type(f"undo {scene.operation('resume.json')} --yes")
    scene.type(rebuild, "apply rebuild.json --yes --i-stopped-it")
    scene.type(f"undo {scene.operation('rebuild.json')} --yes")
    assert scene.digest() == damaged

    applied = scene.type("apply resume.json --yes --i-stopped-it", "apply rebuild.json --yes --i-stopped-it")
    assert f"start the query again; its checkpoint is {scene.checkpoint('lost_state')}" in applied
    scene.add_files(FILES - 4, FILES)
    scene.finish()

    expected = scene.rows("never_interrupted")
    assert sum(expected.values()) > 30
    assert scene.rows("lost_state") == expected
    assert scene.rows("torn_commit") == expected


def _tear_commit(scene: Scene) -> None:
    """As a full disk or a power failure leaves it."""
    folder = scene.checkpoint("torn_commit") / "commits"
    newest = max((file for file in folder.iterdir() if file.name.isdigit()), key=lambda file: int(file.name))
    newest.write_bytes(newest.read_bytes()[:9])
    (folder / f".{newest.name}.crc").unlink(missing_ok=True)
