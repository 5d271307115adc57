"""Formats of the file sink in a real Spark, partitioned: each row once, also after a restart."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import slackwater as sw
from slackwater.core.sink import WriteContext
from slackwater.runtime.session import SessionOptions
from slackwater.runtime.session.session import end_session, start_session
from slackwater.sinks.common.registry import open_output
from tests.restart.scenario import FileClicks, Workspace
from tests.sinks import made_up

CONTEXT = WriteContext("id", "work/one", 1, "append")


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    settings = {"spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse"))}
    options = SessionOptions("formats", "local[2]", settings, sw.sinks.files("avro", "out").connectors)
    session = start_session(options, lambda _: None)
    yield session
    end_session(session)


@pytest.mark.spark
@pytest.mark.parametrize("file_format", ["parquet", "avro"])
def test_partitioned_rows_arrive_once_each(spark: SparkSession, tmp_path: Path, file_format: str) -> None:
    sink = sw.sinks.files(file_format, tmp_path / "out")
    (tmp_path / "in").mkdir()
    for number in range(2):
        rows = [f'{{"page": "page {n % 3}", "n": {number * 10 + n}}}' for n in range(10)]
        (tmp_path / "in" / f"{number}.json").write_text("\n".join(rows))
        frame = spark.readStream.schema("page string, n long").json(str(tmp_path / "in"))
        sink.check(frame, CONTEXT)
        writer = frame.writeStream.partitionBy("page").option("checkpointLocation", str(tmp_path / "checkpoint"))
        sink.attach(writer.trigger(availableNow=True), CONTEXT).start().awaitTermination()

    output = open_output(sink.identity())

    expected = Counter((f"page {n % 10 % 3}", n) for n in range(20))
    assert _rows(spark.read.format(file_format).load(sink.location)) == expected
    assert {folder.name for folder in (tmp_path / "out").glob("page=*")} == {f"page=page {page}" for page in range(3)}
    assert (output.last_written(), output.damage("all")) == (1, ())


def _rows(frame: DataFrame) -> Counter[tuple[str, int]]:
    return Counter((row["page"], row["n"]) for row in frame.collect())


# A kind of sink in one file of the user's, found by one line of an entry point: all commands work with it.

FILES = 9
AFTER = 5


class MadeUpWorkspace(Workspace):
    """A workspace whose stream writes to the sink of ``made_up.py``, installed as a distribution is."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, FileClicks())
        for file in sorted((folder / "landing").iterdir())[FILES:]:
            file.unlink()
        shutil.copy(made_up.__file__, folder)
        installed = folder / "made_up-1.dist-info"
        installed.mkdir()
        (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up\nVersion: 1\n")
        (installed / "entry_points.txt").write_text("[slackwater.sinks]\nmade-up = made_up:SINK\n")

    def write_pipeline(self, aggregates: str) -> None:
        super().write_pipeline(aggregates)
        file = self.folder / "clicks.py"
        text = file.read_text().replace('sw.sinks.files("parquet", "out")', 'made_up.DirectorySink("out")')
        file.write_text("import made_up\n" + text)

    def values(self) -> Counter[str]:
        files = self.output.glob("[0-9]*.json")
        return Counter(json.dumps(row, sort_keys=True) for file in files for row in json.loads(file.read_bytes()))

    def newest(self) -> int:
        """The newest batch of the output, as ``status`` shows it."""
        document = json.loads(self.slackwater("status", "--format", "json", java=False).stdout)
        newest: int = document["streams"][0]["marks"]["written"]
        return newest


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_made_up_sink_is_run_shown_cut_and_restored(tmp_path: Path) -> None:
    workspace = MadeUpWorkspace(tmp_path)
    listed = json.loads(workspace.slackwater("sinks", "--format", "json").stdout)["sinks"]
    assert [sink["call"] for sink in listed if sink["name"] == "made-up"] == ["DirectorySink(folder)"]
    assert listed[-1]["name"] == "made-up"

    workspace.run()
    whole, last = workspace.values(), workspace.newest()
    assert whole
    assert last >= FILES - 1

    plan = workspace.rebuild("--at", f"batch:{AFTER}")
    assert "cut-sink" in {action["kind"] for action in plan["actions"]}
    assert workspace.newest() == AFTER

    workspace.slackwater("undo", plan["id"], "--yes")
    assert (workspace.values(), workspace.newest()) == (whole, last)

    workspace.rebuild("--at", f"batch:{AFTER}")
    workspace.run()
    assert (workspace.values(), workspace.newest()) == (whole, last)
