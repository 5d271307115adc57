"""The reference pipeline on a cluster, its home on HDFS and its ledger in PostgreSQL, moved to another machine.

A worker is killed in a batch, then the driver. Another driver, which shares only HDFS and the database with the first
one, continues, and rebuilds the last stage there. The rows of every stage are those of an uninterrupted run.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from slackwater.storage.open import open_write_store
from slackwater.storage.protocols import WriteStore
from tests.restart.stored import stored_rows
from tests.runtime.project import Project
from tests.support.hdfs import HdfsServer
from tests.support.outputs import Rows, rows_of
from tests.support.postgres_server import PostgresServer
from tests.support.processes import Command
from tests.support.standalone_cluster import JOB, SPARK_HOME, StandaloneCluster

pytestmark = pytest.mark.spark

EXAMPLES = Path(__file__).parents[2] / "examples"
OUTPUTS = ("out/raw", "out/readings", "out/rejects", "out/gold")
FILES, MORE = 5, 2
LAST_STAGE = "home/streams/weather/sensor-merge-gold"
UNTIL = ("run", "weather.py", "--until-caught-up")
GROUP, USERS = "pipelines", ("first", "second")
SETTINGS = {
    "hadoop.user.group.static.mapping.overrides": ";".join(f"{user}={GROUP}" for user in USERS),
    # What one member of the group has written, the other one may change.
    "fs.permissions.umask-mode": "002",
}


@dataclass
class Place:
    """Where both machines have everything: a folder on HDFS, which belongs to a group, and a database."""

    server: HdfsServer
    location: str
    ledger: str
    store: WriteStore

    def add_files(self, folder: Path, count: int) -> None:
        """Make the next files of readings, and put them into ``landing``."""
        known = len(list((folder / "landing").glob("*"))) if (folder / "landing").is_dir() else 0
        subprocess.run([sys.executable, EXAMPLES / "make_weather.py", str(count)], cwd=folder, check=True)
        for file in sorted((folder / "landing").iterdir())[known:]:
            path = f"{self.location.removeprefix(self.server.uri)}/landing/{file.name}"
            self.server.filesystem().pipe_file(path, file.read_bytes())
            time_ms = file.stat().st_mtime_ns // 1_000_000
            self.server.filesystem()._call("SETTIMES", "put", path, modificationtime=time_ms)

    def written(self, output: str) -> int:
        """The newest batch in the manifest of an output, -1 for none."""
        names = [entry.name for entry in self.store.list(f"{output}/_spark_metadata")]
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def rows(self, output: str) -> Rows:
        return stored_rows(self.store, self.location, output)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    """An HDFS with two users of one group, none of whom owns the root folder."""
    with HdfsServer(tmp_path_factory.mktemp("hdfs"), SETTINGS) as running:
        yield running


@pytest.fixture
def place(server: HdfsServer, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Place:
    filesystem = server.filesystem()
    filesystem.mkdir("/weather/landing")
    filesystem._call("SETOWNER", "put", "/weather", group=GROUP)
    filesystem._call("SETPERMISSION", "put", "/weather", permission="775")
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    location = f"{server.uri}/weather"
    return Place(server, location, postgres.url(postgres.new_database()), open_write_store(location))


@dataclass
class Machine:
    """A machine with a user, the pipeline file and a configuration of Hadoop; nothing else is there."""

    folder: Path
    user: str
    place: Place
    project: Project

    def install(self) -> None:
        self.folder.mkdir()
        text = (EXAMPLES / "weather.py").read_text().replace('"out/', f'"{self.place.location}/out/')
        (self.folder / "weather.py").write_text(text.replace('"landing"', f'"{self.place.location}/landing"'))
        (self.folder / "slackwater-job.py").write_text(JOB)

    @property
    def environment(self) -> dict[str, str]:
        mine = {"HADOOP_USER_NAME": self.user, "USER": self.user, "LOGNAME": self.user, "HOME": str(self.folder)}
        shared = {"SLACKWATER_HOME": f"{self.place.location}/home", "SLACKWATER_LEDGER": self.place.ledger}
        spark = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
        # Connectors that were downloaded stay in the cache of whoever runs the tests.
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        return {**os.environ, **self.place.server.environment(), **mine, **shared, **spark, "XDG_CACHE_HOME": cache}

    def start(self, *arguments: str) -> Command:
        command = Command(arguments, self.folder, environment=self.environment)
        self.project.commands.append(command)
        return command

    def slackwater(self, *arguments: str) -> None:
        command = self.start(*arguments)
        assert command.end(500) == 0, command.log

    def submit(self, cluster: StandaloneCluster, *arguments: str) -> None:
        """``spark-submit ... slackwater-job.py ...`` to its end."""
        command = [str(SPARK_HOME / "bin" / "spark-submit"), *cluster.arguments, "slackwater-job.py", *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False, timeout=500
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.thorough
def test_the_reference_pipeline_moves_to_another_machine(
    cluster: StandaloneCluster, place: Place, project: Project
) -> None:
    one = Machine(project.folder / "one", "first", place, project)
    other = Machine(project.folder / "other", "second", place, project)
    place.add_files(project.folder, FILES)
    one.install()

    driver = one.start(*UNTIL, *cluster.arguments)
    driver.wait_for(lambda: place.written("out/raw") >= 1, "two batches of the first stage")
    cluster.workers[-1].kill()
    driver.wait_for(lambda: place.written("out/readings") >= 1, "two batches of the second stage")
    driver.kill()
    # The leases of the killed driver cannot be looked up from here, and were not renewed for long.
    with psycopg.connect(place.ledger) as ledger:
        changed = ledger.execute("UPDATE leases SET host = 'another.example', heartbeat_ms = 1 WHERE host IS NOT NULL")
        assert changed.rowcount > 0
    shutil.rmtree(one.folder)
    cluster.add_worker()

    other.install()
    other.submit(cluster, *UNTIL)
    assert {output: place.rows(output) for output in OUTPUTS} == _expected(project)

    place.store.delete_tree(f"{LAST_STAGE}/checkpoints/0001")
    other.slackwater("plan", "rebuild", "sensor-merge-gold", "--out", "plan.json", *cluster.arguments)
    other.slackwater("apply", "plan.json", "--yes", *cluster.arguments)
    assert not place.store.list(f"{LAST_STAGE}/checkpoints/0001")
    place.add_files(project.folder, MORE)
    other.slackwater(*UNTIL, *cluster.arguments)
    assert {output: place.rows(output) for output in OUTPUTS} == _expected(project)


def _expected(project: Project) -> dict[str, Rows]:
    """The rows of an uninterrupted run of the same files on this machine's disk."""
    text = (EXAMPLES / "weather.py").read_text().replace('"landing"', f'"{project.folder}/landing"')
    (project.folder / "weather.py").write_text(text)
    for done in (".slackwater", "out"):
        shutil.rmtree(project.folder / done, ignore_errors=True)
    with pytest.MonkeyPatch.context() as environment:
        # Else a path without a scheme would be one of HDFS.
        environment.delenv("HADOOP_CONF_DIR")
        project.slackwater(*UNTIL)
    return {output: rows_of(project.folder / output) for output in OUTPUTS}
