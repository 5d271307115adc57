"""Applications that start their own queries: killed, rebuilt from their own file, finished without Slackwater."""

from __future__ import annotations

import json
import os
import shlex
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

APPLICATIONS = Path(__file__).with_name("applications")
FILES = 14
KILLED_AFTER = 7

pytestmark = pytest.mark.spark


class Scene:
    """One application with its input, and what it leaves behind."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.program = folder / name
        if name.endswith(".py"):
            shutil.copy(APPLICATIONS / name, self.program)
        else:
            shutil.copytree(APPLICATIONS / name, self.program)

    def add_files(self, data: str, count: int) -> None:
        """Input below ``data``: a file a batch, each with half an hour of clicks."""
        (self.folder / data / "in").mkdir(parents=True, exist_ok=True)
        for number in range(count):
            minutes = [number * 7 + row for row in range(0, 30, 2)]
            rows = [{"at": f"2026-01-01T{m // 60:02}:{m % 60:02}:00Z", "page": f"p{m % 3}"} for m in minutes]
            file = self.folder / data / "in" / f"{number:03}.json"
            file.write_text("".join(json.dumps(row) + "\n" for row in rows))
            os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))

    def run_and_kill(self, *arguments: str, checkpoint: str, plain: bool = False) -> None:
        """kill -9 of ``slackwater run``, or ``plain`` Python, and its JVM, once some batches are committed."""
        run = () if plain else ("-m", "slackwater", "run")
        words = [sys.executable, *run, self.program.name, *(() if plain else ("--",)), *arguments]
        log = self.folder / "run.log"
        with log.open("w") as out:
            process = subprocess.Popen(words, cwd=self.folder, start_new_session=True, stdout=out, stderr=out)
        deadline = time.monotonic() + 240
        while read_logs(LocalStore(self.folder / checkpoint)).committed < KILLED_AFTER:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def plain(self, *arguments: str) -> None:
        """``python PROGRAM ARGUMENTS``, without Slackwater."""
        ended = warm_python.run_program([str(self.program), *arguments], self.folder, attached(self.folder))
        assert ended.returncode == 0, ended.stderr

    def type(self, *words: str, exit_code: int = 0) -> str:
        """A command of ``slackwater``."""
        ended = warm_python.run(words, self.folder, attached(self.folder), in_one=True)
        assert ended.returncode == exit_code, ended.stdout
        return str(ended.stdout)

    def rows(self, output: str) -> Counter[str]:
        """The rows of an output, as its manifest lists the files."""
        folder, files = self.folder / output, set[str]()
        for entry in (folder / "_spark_metadata").iterdir():
            if not entry.name.startswith("."):
                files |= {json.loads(line)["path"].rpartition("/")[2] for line in entry.read_text().splitlines()[1:]}
        return Counter(line for file in files for line in (folder / file).read_text().splitlines())


def test_a_deleted_checkpoint_is_rebuilt_from_the_application(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "one_query.py")
    for data in ("data", "plain"):
        scene.add_files(data, FILES)
    scene.plain("plain", "--end")

    scene.run_and_kill("data", checkpoint="data/checkpoint")
    shutil.rmtree(tmp_path / "data/checkpoint")
    shown = scene.type("status", exit_code=5)
    planned = next(line.split("next", 1)[1] for line in shown.splitlines() if line.lstrip().startswith("next "))
    scene.type(*shlex.split(planned)[1:], "--out", "rebuild.json")
    scene.type("apply", "rebuild.json", "--yes", "--i-stopped-it")

    assert "same" in scene.type("check", "one_query.py", "--", "data")
    ended = scene.type("run", "one_query.py", "--", "data", "--end")
    assert "watched/out: finished" in ended
    scene.plain("data", "--end")
    expected = scene.rows("plain/out")
    assert sum(expected.values()) > 30
    assert scene.rows("data/out") == expected


def test_a_released_checkpoint_is_continued_without_slackwater(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "one_query.py")
    for data in ("data", "plain"):
        scene.add_files(data, FILES)
    scene.plain("plain", "--end")

    scene.run_and_kill("data", checkpoint="data/checkpoint", plain=True)
    scene.type("adopt", "data/checkpoint", "--sink", "data/out", "--name", "clicks")
    scene.type("release", "clicks", "--yes", "--i-stopped-it")
    scene.plain("data", "--end")
    expected = scene.rows("plain/out")
    assert sum(expected.values()) > 30
    assert scene.rows("data/out") == expected


def test_a_checkpoint_that_was_adopted_by_another_name_stays_one_stream(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "one_query.py")
    for files in (KILLED_AFTER, FILES):
        scene.add_files("plain", files)
        scene.plain("plain", "--end")
    scene.add_files("data", KILLED_AFTER)
    scene.plain("data", "--end")

    scene.type("adopt", "data/checkpoint", "--sink", "data/out", "--name", "clicks")
    words = ("one_query.py", "--", "data", "--end")
    assert "watched/clicks  same" in scene.type("check", *words)
    scene.add_files("data", FILES)
    # By the name of its output it would be a second stream with this checkpoint.
    assert "watched/clicks: finished" in scene.type("run", *words)
    assert "watched/out" not in scene.type("status")
    assert (tmp_path / "data/out/_slackwater.json").exists()
    scene.type("release", "clicks", "--yes", "--i-stopped-it")
    assert not (tmp_path / "data/out/_slackwater.json").exists()
    expected = scene.rows("plain/out")
    assert sum(expected.values()) > 30
    assert scene.rows("data/out") == expected


def test_a_watched_query_has_a_verdict_and_is_rebuilt_from_its_program(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "watched_query.py")
    for files in (KILLED_AFTER, FILES):
        scene.add_files("plain", files)
        scene.plain("plain", "--end", "--not-watched")
    scene.add_files("data", KILLED_AFTER)
    scene.plain("data", "--end")

    program = scene.program.read_text()
    words = ("watched_query.py", "--", "data", "--end")
    checked = scene.type("check", *words)
    assert "watched/out  same" in checked
    assert "with the program that made the state up to" in checked
    scene.program.write_text(program.replace('"5 minutes"', '"7 minutes"'))
    assert "window-changed" in scene.type("check", *words, exit_code=1)
    found = scene.type("doctor", "watched/out", "--pipeline", "watched_query.py -- data --end", exit_code=1)
    assert "window-changed" in found
    scene.program.write_text(program)

    shutil.rmtree(tmp_path / "data/checkpoint")
    scene.add_files("data", FILES)
    scene.type("plan", "rebuild", "watched/out", "--out", "rebuild.json")
    scene.type("apply", "rebuild.json", "--yes", "--i-stopped-it")
    assert "watched/out: finished" in scene.type("run", *words)
    expected = scene.rows("plain/out")
    assert sum(expected.values()) > 30
    assert scene.rows("data/out") == expected


@pytest.mark.thorough
def test_several_queries_write_what_they_write_without_slackwater(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "several_queries.py")
    for data in ("data", "plain"):
        scene.add_files(data, FILES)
    scene.plain("plain", "--end")
    ended = scene.type("run", "several_queries.py", "--", "data", "--end")
    for name in ("counts", "seen"):
        assert f"watched/{name}: finished" in ended
        assert sum(scene.rows(f"plain/{name}").values()) > 30
        assert scene.rows(f"data/{name}") == scene.rows(f"plain/{name}")


@pytest.mark.thorough
def test_a_module_of_a_package_writes_what_it_writes_without_slackwater(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "shop")
    for data in ("data", "plain"):
        scene.add_files(data, FILES)
    # Workers import the package from the working directory of the JVM: each has a JVM of its own.
    shown = ""
    for words, data in ((["-m", "shop.job"], "plain"), (["-m", "slackwater", "run", "shop.job"], "data")):
        environment = {**os.environ, "SHOP_DATA": str(tmp_path / data)}
        ended = subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
        shown = ended.stderr
    assert "watched/batches: finished" in shown
    assert scene.rows("data/pages") == scene.rows("plain/pages")
    assert sum(scene.rows("data/pages").values()) > 30
    for number in (tmp_path / "plain/batches").iterdir():
        rows = [Counter(part.read_text() for part in (tmp_path / data / "batches" / number.name).glob("part-*"))
                for data in ("plain", "data")]  # fmt: skip
        assert rows[0] == rows[1]
