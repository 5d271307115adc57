"""Applications that start their own queries: killed, rebuilt from their own file, finished without Slackwater."""

import os
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.support.standalone_cluster import JOB, SPARK_HOME
from tests.unchanged.scene import APPLICATIONS, FILES, KILLED_AFTER, Scene

pytestmark = pytest.mark.spark


def _check_rows(scene: Scene, output: str) -> None:
    """The output has the rows that plain Python has written, and these are not few."""
    expected = scene.rows(f"plain/{output}")
    assert sum(expected.values()) > 30
    assert scene.rows(f"data/{output}") == expected


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
    _check_rows(scene, "out")


def test_a_released_checkpoint_is_continued_without_slackwater(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "one_query.py")
    for data in ("data", "plain"):
        scene.add_files(data, FILES)
    scene.plain("plain", "--end")

    scene.run_and_kill("data", checkpoint="data/checkpoint", plain=True)
    scene.type("adopt", "data/checkpoint", "--sink", "data/out", "--name", "clicks")
    scene.type("release", "clicks", "--yes", "--i-stopped-it")
    scene.plain("data", "--end")
    _check_rows(scene, "out")


def test_a_checkpoint_that_was_adopted_by_another_name_stays_one_stream(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "one_query.py")
    for files in (KILLED_AFTER, FILES):
        scene.add_files("plain", files)
        scene.plain("plain", "--end")
    scene.add_files("data", KILLED_AFTER)
    scene.plain("data", "--end")

    scene.type("adopt", "data/checkpoint", "--sink", "data/out", "--name", "clicks")
    words = ("one_query.py", "--", "data", "--end")
    assert "watched/clicks  same as far as" in scene.type("check", *words, exit_code=5)
    scene.add_files("data", FILES)
    # By the name of its output it would be a second stream with this checkpoint.
    assert "watched/clicks: finished" in scene.type("run", *words)
    assert "watched/out" not in scene.type("status")
    assert (tmp_path / "data/out/_slackwater.json").exists()
    scene.type("release", "clicks", "--yes", "--i-stopped-it")
    assert not (tmp_path / "data/out/_slackwater.json").exists()
    _check_rows(scene, "out")


@pytest.mark.thorough
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
    _check_rows(scene, "out")


@pytest.mark.thorough
def test_several_queries_write_what_they_write_without_slackwater(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "several_queries.py")
    for data in ("data", "plain"):
        scene.add_files(data, FILES)
    scene.plain("plain", "--end")
    ended = scene.type("run", "several_queries.py", "--", "data", "--end")
    for name in ("counts", "seen"):
        assert f"watched/{name}: finished" in ended
        _check_rows(scene, name)


@pytest.mark.thorough
def test_a_program_of_spark_submit_with_py_files_runs_as_it_is(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "packed.py")
    shutil.make_archive(str(tmp_path / "libs"), "zip", APPLICATIONS, "shop")
    (tmp_path / "slackwater-job.py").write_text(JOB)
    submit = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", "local[2]", "--py-files", "libs.zip"]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    shown = ""
    for words, data in (
        (["packed.py", "plain"], "plain"),
        (["slackwater-job.py", "run", "packed.py", "--", "data"], "data"),
    ):
        scene.add_files(data, FILES)
        ended = subprocess.run(
            [*submit, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
        # What Python writes to stderr, spark-submit writes to stdout.
        shown = ended.stdout
    assert "watched/pages: finished" in shown
    assert '{"page":"P1"}' in scene.rows("plain/pages")
    assert scene.rows("data/pages") == scene.rows("plain/pages")


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
