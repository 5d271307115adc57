"""Failures of batch functions that write a batch a second time, or skip one that they have never seen."""

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import psycopg
import pytest

from tests.diagnose.live.damage import archived_input, in_order
from tests.diagnose.live.frame import FILES, READ, RUN, SETTINGS, Failure, Scene, Silent, make_stream, prove
from tests.diagnose.live.test_batch_function import Copies
from tests.restart.small import SOURCE
from tests.support.killing import kill_when
from tests.support.outputs import Rows
from tests.support.postgres_server import PostgresServer

pytestmark = pytest.mark.spark

FUNCTION = f"""
import time
from pathlib import Path


def write(batch, number):
    {{body}}


@pipeline.stream(sink=sw.sinks.foreach_batch(write))
def per_page(spark):
    return {SOURCE}
"""
SLOW = FUNCTION.format(
    body="""batch.write.mode("append").json("copies")
    if Path("slow").exists():
        Path("written").touch()
        time.sleep(600)"""
)
GUARDED = FUNCTION.format(
    body="""newest = Path("newest")
    if newest.exists() and number <= int(newest.read_text()):
        return
    batch.write.mode("append").json("copies")
    newest.write_text(str(number))"""
)
TABLES = FUNCTION.format(
    body="""rows = batch.withColumn("batch", F.lit(number))
    rows.write.jdbc("{url}", "copies", "append", {"driver": "org.postgresql.Driver"})
    counts = rows.groupBy("page", "batch").count()
    counts.write.jdbc("{url}", "counts", "append", {"driver": "org.postgresql.Driver"})"""
)


def killed_after_the_write(scene: Scene) -> None:
    """Python and JVM are killed when the function has written a batch and has not returned."""
    (scene.folder / "slow").touch()
    scene.arrive(READ, READ + 1)
    process = scene.start(*RUN)
    kill_when(process, (scene.folder / "written").exists, (scene.checkpoint / "offsets" / str(READ)).exists)
    (scene.folder / "slow").unlink()
    scene.arrive(READ + 1, FILES)
    assert (scene.newest, scene.ids("commits")[-1]) == (READ, READ - 1)


def rows_of_the_batch_removed(scene: Scene) -> None:
    """The files with the rows of the interrupted batch are deleted, as doctor's advice asks for."""
    files = [file for file in scene.output.glob("*.json") if f'"n":{READ + 1}' in file.read_text()]
    assert len(files) == 1
    files[0].unlink()


KILLED = Failure(
    "SINK-03",
    "a batch function was killed after its write",
    killed_after_the_write,
    spark=Silent(wrong=4),
    found="SW-SINK-003",
    risk="duplicate",
    goal="resume",
    by_hand=rows_of_the_batch_removed,
    typed=("run",),
    all_arrived=True,
    left=("at-least-once",),
)
RESET = Failure(
    "SINK-06",
    "batch ids begin again under a function that remembers them",
    in_order(lambda scene: shutil.rmtree(scene.checkpoint), archived_input),
    spark=Silent(lacks=12),
    found="checkpoint-lost",
    risk="duplicate",
    goal="rebuild",
    typed=("plan rebuild", "apply", "run"),
    left=("at-least-once",),
)


@pytest.mark.parametrize(
    ("query", "failure"),
    [
        pytest.param(SLOW, KILLED, id=str(KILLED)),
        pytest.param(GUARDED, RESET, id=str(RESET), marks=pytest.mark.thorough),
    ],
)
def test_batch_functions(tmp_path: Path, query: str, failure: Failure) -> None:
    prove(make_stream(tmp_path, query, SETTINGS, Copies), failure)


class Tables(Scene):
    """The function appends to two tables of a database of the scene's own."""

    def __init__(self, server: PostgresServer, folder: Path, query: str, settings: Sequence[str]) -> None:
        self._database = server.url(server.new_database())
        self.execute("CREATE TABLE copies (ts timestamptz, page text, n bigint, batch int)")
        self.execute("CREATE TABLE counts (page text, batch int, count bigint)")
        address = self._database.partition("://")[2].rpartition("@")[2]
        super().__init__(folder, query.replace("{url}", f"jdbc:postgresql://{address}?user=slackwater"), settings)
        # A copy of the checkpoint and of the output is made of every stream: this output is elsewhere.
        self.output.mkdir()

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self._database, autocommit=True) as connection:
            found = connection.execute(statement.encode())
            return found.fetchall() if found.description else []

    def rows(self, first: int = 0, last: int | None = None) -> Rows:
        assert (first, last) == (0, None)
        return Counter(map(repr, self.execute("SELECT ts, page, n FROM copies") + self.execute("TABLE counts")))


def of_tables(scene: Scene) -> Tables:
    assert isinstance(scene, Tables)
    return scene


def refused_by_the_second_table(scene: Scene) -> None:
    """The first table has the batch when the second refuses it; then the second is corrected."""
    tables = of_tables(scene)
    tables.execute(f"ALTER TABLE counts ADD CONSTRAINT known CHECK (batch <> {READ})")
    scene.arrive(READ, READ + 1)
    scene.type("slackwater run clicks.py")
    assert tables.execute(f"SELECT count(*) FROM copies WHERE batch = {READ}") == [(4,)]
    tables.execute("ALTER TABLE counts DROP CONSTRAINT known")
    scene.arrive(READ + 1, FILES)


def deleted_from_the_table(scene: Scene) -> None:
    of_tables(scene).execute(f"DELETE FROM copies WHERE batch = {READ}")


APPENDED = Failure(
    "SINK-04",
    "one of two JDBC appends failed",
    refused_by_the_second_table,
    spark=Silent(wrong=4),
    found="SW-SINK-003",
    risk="duplicate",
    goal="resume",
    by_hand=deleted_from_the_table,
    typed=("run",),
    all_arrived=True,
    left=("at-least-once",),
)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server that Java reaches."""
    with PostgresServer.running(tcp=True) as running:
        yield running


@pytest.mark.thorough
@pytest.mark.parametrize("failure", [APPENDED], ids=str)
def test_tables(tmp_path: Path, server: PostgresServer, failure: Failure) -> None:
    kind = partial(Tables, server)
    first, second = (make_stream(tmp_path / name, TABLES, SETTINGS, kind) for name in ("first", "second"))
    prove(first, failure, second)
