"""A restart and a rebuild of queries with several watermarks are exact, which a restart of plain Spark is not."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.restart.scenario import CONF
from tests.restart.watermark_queries import KINDS, POLICIES, POLICY, add
from tests.support import warm_python
from tests.support.killing import kill_when
from tests.support.outputs import Rows, rows_of
from tests.support.warm_jvm import attached

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
PIPELINE = """import slackwater as sw
from watermark_queries import query

pipeline = sw.Pipeline("web")

"""
STREAM = """
@pipeline.stream(sink=sw.sinks.files("parquet", "out_{name}"), settings={settings})
def {name}(spark):
    return query(spark, "{kind}")
"""
STREAMS = {f"{policy}_{kind}": (policy, kind) for policy in POLICIES for kind in KINDS}
FORGOTTEN = "several watermarks, of which Spark keeps only the combined one over a restart"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    folder = tmp_path_factory.mktemp("plain")
    program = Path(__file__).with_name("watermark_queries.py")
    ended = subprocess.run(
        [sys.executable, str(program), str(folder)],
        capture_output=True, text=True, timeout=600, check=False, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-4000:]
    return {name: Counter(rows) for name, rows in json.loads(ended.stdout).items()}


class Watermarks:
    """A folder with the four streams and their input."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        shutil.copy(Path(__file__).with_name("watermark_queries.py"), folder)
        for name in ("a", "b"):
            (folder / name).mkdir()
        streams = [STREAM.format(name=n, kind=kind, settings={POLICY: policy}) for n, (policy, kind) in STREAMS.items()]
        (folder / "two.py").write_text(PIPELINE + "\n".join(streams))

    def checkpoint(self, stream: str) -> Path:
        return self.folder / ".slackwater" / "streams" / "web" / stream / "checkpoints" / "0001"

    def kill_in_first_phase(self) -> None:
        """Run, and kill when each query has committed the batch with data and the one without that follows it."""
        add(self.folder, 0)
        with (self.folder / "killed.log").open("wb") as log:
            command = [sys.executable, "-m", "slackwater", "run", "two.py", *CONF]
            process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        done = [(self.checkpoint(stream) / "commits" / "1").exists for stream in STREAMS]
        kill_when(process, lambda: all(one() for one in done), done[0])

    def slackwater(self, *arguments: str) -> str:
        done = warm_python.run(arguments, self.folder, attached(self.folder))
        assert done.returncode == 0, f"{arguments} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def finish(self) -> str:
        """The other phases, each with a start of its own; what the starts said."""
        said = ""
        for phase in (1, 2):
            add(self.folder, phase)
            said += self.slackwater("run", "two.py", "--until-caught-up", *CONF)
        return said

    def rows(self) -> dict[str, Rows]:
        return {f"{policy} {kind}": rows_of(self.folder / f"out_{n}") for n, (policy, kind) in STREAMS.items()}


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Watermarks]]:
    """Puts the workspace back as it was after the kill, at its place: a home that is elsewhere is a copy."""
    folder = tmp_path_factory.mktemp("killed")
    workspace = Watermarks(folder / "workspace")
    workspace.kill_in_first_phase()
    shutil.copytree(workspace.folder, folder / "saved", symlinks=True)

    def restored() -> Watermarks:
        shutil.rmtree(workspace.folder)
        shutil.copytree(folder / "saved", workspace.folder, symlinks=True)
        return workspace

    yield restored
    shutil.rmtree(folder)


def test_a_restart_and_a_rebuild_are_exact_where_those_of_spark_are_not(
    plain: dict[str, Rows], killed: Callable[[], Watermarks]
) -> None:
    whole, restarted = _named(plain, "uninterrupted"), _named(plain, "restarted")
    # Spark's own restart differs under the policy min, and only there: else this test would show nothing.
    assert {name for name in whole if whole[name] != restarted[name]} == {"min union", "min join"}

    workspace = killed()
    said = workspace.finish()
    assert FORGOTTEN not in said
    assert workspace.rows() == whole

    # The same kill, and every checkpoint deleted.
    workspace = killed()
    for stream in STREAMS:
        shutil.rmtree(workspace.checkpoint(stream))
        workspace.slackwater("plan", "rebuild", stream, "--out", "plan.json", "--force")
        workspace.slackwater("apply", "plan.json", "--yes", *CONF)
    said = workspace.finish()
    assert FORGOTTEN not in said
    assert workspace.rows() == whole


def test_a_start_that_forgets_them_says_so(plain: dict[str, Rows], killed: Callable[[], Watermarks]) -> None:
    workspace = killed()
    with closing(sqlite3.connect(workspace.folder / ".slackwater" / "ledger.db")) as connection, connection:
        assert connection.execute("DELETE FROM log_lines WHERE log = 'input-watermarks'").rowcount > 0
    said = workspace.finish()
    assert said.count(FORGOTTEN) == len(KINDS)
    assert workspace.rows() == _named(plain, "restarted")


def _named(plain: dict[str, Rows], kind: str) -> dict[str, Rows]:
    return {name.partition(" ")[2]: rows for name, rows in plain.items() if name.startswith(kind)}
