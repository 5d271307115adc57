"""Whether a source has data that a query has not read, for kinds of sources and their options, in a real Spark."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import metadata
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from unittest import mock

import pytest
from pyspark.sql import DataFrame, SparkSession

from slackwater import connectors
from slackwater.checkpoint.logs import read_logs
from slackwater.core.errors import EnvironmentMissing, UsageError
from slackwater.runtime.run.no_data_batch import backlog_of
from slackwater.runtime.session.session import end_session
from slackwater.storage.open import open_read_store

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    catalog = "spark.sql.catalog.ice"
    jars: list[Path] = []
    for name in ("delta", "iceberg"):
        # Not there for each Spark that these tests run on.
        with suppress(EnvironmentMissing, UsageError):
            jars += connectors.resolve([name], metadata.version("pyspark"))
    builder = SparkSession.builder.master("local[1]").config("spark.jars", ",".join(map(str, jars)))
    builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    builder = builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension").config(
        "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    )
    builder = builder.config(catalog, "org.apache.iceberg.spark.SparkCatalog").config(f"{catalog}.type", "hadoop")
    builder = builder.config(f"{catalog}.warehouse", str(tmp_path_factory.mktemp("ice")))
    with mock.patch.dict(os.environ, {"PYSPARK_PYTHON": sys.executable}):
        session = builder.config("spark.ui.enabled", "false").getOrCreate()
        yield session
        end_session(session)


class Reader:
    """A query over a folder ``in`` whose batches a test runs one by one."""

    def __init__(self, spark: SparkSession, folder: Path, **options: str) -> None:
        self.folder = folder / "in"
        self.folder.mkdir()
        self._checkpoint = folder / "checkpoint"
        self._spark, self._options = spark, options

    def add(self, name: str, newest: int = 0) -> Path:
        """Add a file with the modification time ``newest`` seconds after 2023-11-14."""
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text('{"n": 1}\n')
        os.utime(file, (1_700_000_000 + newest, 1_700_000_000 + newest))
        return file

    def frame(self) -> DataFrame:
        return self._spark.readStream.schema("n long").options(**self._options).json(str(self.folder))

    def run(self) -> None:
        run_once(self.frame(), self._checkpoint)

    def backlog(self) -> str:
        return backlog(self.frame(), self._checkpoint)


def run_once(frame: DataFrame, checkpoint: Path) -> None:
    query = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).trigger(once=True).start()
    query.awaitTermination()


def backlog(frame: DataFrame, checkpoint: Path) -> str:
    store = open_read_store(str(checkpoint))
    before = {path: path.read_bytes() for path in checkpoint.rglob("*") if path.is_file()}
    entry = read_logs(store).newest_offset
    assert entry is not None
    found = backlog_of(frame, store, entry)
    assert before == {path: path.read_bytes() for path in checkpoint.rglob("*") if path.is_file()}
    return found


def _touched(reader: Reader, touch: Callable[[Path], object]) -> None:
    for file in reader.folder.iterdir():
        touch(file)


def _linked(file: Path) -> None:
    os.link(file, file.parents[1] / f"{file.name}-{file.stat().st_nlink}")


def _synced(file: Path) -> None:
    subprocess.run(["cp", "-a", str(file), f"{file}.new"], check=True)
    Path(f"{file}.new").replace(file)


@pytest.mark.parametrize("touch", [lambda file: file.chmod(0o600), _linked, _synced], ids=["chmod", "link", "restored"])
def test_files_that_were_touched_are_read_or_unread_as_before(
    spark: SparkSession, tmp_path: Path, touch: Callable[[Path], object]
) -> None:
    reader = Reader(spark, tmp_path, maxFilesPerTrigger="1")
    reader.add("a.json", 1)
    reader.add("b.json", 2)
    checkpoint = tmp_path / "checkpoint"
    frame = reader.frame()
    query = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).start()
    query.processAllAvailable()
    query.stop()
    _touched(reader, touch)
    assert reader.backlog() == "none"
    for log in ("offsets", "commits", "sources/0"):
        (checkpoint / log / "1").unlink()
        (checkpoint / log / ".1.crc").unlink()
    _touched(reader, touch)
    assert reader.backlog() == "unread"


def test_files_that_the_source_would_not_take_are_no_backlog(spark: SparkSession, tmp_path: Path) -> None:
    reader = Reader(spark, tmp_path, maxFileAge="1h", fileNameOnly="true")
    reader.add("day=1/a.json", 36_000)
    reader.run()
    assert reader.backlog() == "none"
    reader.add("day=1/too-old.json", 10)
    reader.add("day=2/a.json", 36_001)
    assert reader.backlog() == "none", "one is too old, the other has a name that was read"
    reader.add("day=2/b.json", 36_002)
    assert reader.backlog() == "unread"


def test_a_file_whose_entry_is_in_the_log_of_the_source_only_is_unread(spark: SparkSession, tmp_path: Path) -> None:
    reader = Reader(spark, tmp_path, maxFilesPerTrigger="1", latestFirst="true")
    reader.add("a.json", 1)
    reader.run()
    log = tmp_path / "checkpoint" / "sources" / "0"
    planned = reader.add("b.json", 2)
    line = {"path": f"file://{planned}", "timestamp": 1_700_000_002_000, "batchId": 1}
    (log / "1").write_text("v1\n" + json.dumps(line))
    assert reader.backlog() == "unread"


def test_versions_of_a_delta_table(spark: SparkSession, tmp_path: Path) -> None:
    table, checkpoint = str(tmp_path / "table"), tmp_path / "checkpoint"

    def append() -> None:
        spark.range(3).write.format("delta").mode("append").save(table)

    append()
    spark.sql(f"CREATE TABLE numbers USING delta LOCATION '{table}'")
    frame, by_name = spark.readStream.format("delta").load(table), spark.readStream.table("numbers")
    run_once(frame, checkpoint)
    assert [backlog(frame, checkpoint), backlog(by_name, checkpoint)] == ["none", "none"]
    append()
    assert [backlog(frame, checkpoint), backlog(by_name, checkpoint)] == ["unread", "unread"]


def test_snapshots_of_an_iceberg_table(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).writeTo("ice.db.numbers").using("iceberg").create()
    frame, checkpoint = spark.readStream.format("iceberg").load("ice.db.numbers"), tmp_path / "checkpoint"
    run_once(frame, checkpoint)
    assert backlog(frame, checkpoint) == "none"
    spark.range(3).writeTo("ice.db.numbers").append()
    assert backlog(frame, checkpoint) == "unread"


NUMBERS = """
from pathlib import Path
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader

class Reader(SimpleDataSourceStreamReader):
    def __init__(self, path):
        self.path = path
    def initialOffset(self):
        return {"n": 0}
    def read(self, start):
        end = {"n": int(Path(self.path).read_text())}
        return self.readBetweenOffsets(start, end), end
    def readBetweenOffsets(self, start, end):
        return iter([(n,) for n in range(start["n"], end["n"])])

class Numbers(DataSource):
    @classmethod
    def name(cls):
        return "numbers"
    def schema(self):
        return "n int"
    def simpleStreamReader(self, schema):
        return Reader(self.options["path"])
"""


def test_a_python_data_source(spark: SparkSession, tmp_path: Path) -> None:
    # Not classes of this module: workers cannot import it.
    (tmp_path / "numbers_source.py").write_text(NUMBERS)
    spec = spec_from_file_location("numbers_source", tmp_path / "numbers_source.py")
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(defined := module_from_spec(spec))
    spark.dataSource.register(defined.Numbers)
    numbers, checkpoint = tmp_path / "numbers", tmp_path / "checkpoint"
    numbers.write_text("3")
    frame = spark.readStream.format("numbers").load(str(numbers))
    run_once(frame, checkpoint)
    assert backlog(frame, checkpoint) == "none"
    numbers.write_text("4")
    assert backlog(frame, checkpoint) == "unread"


def test_a_source_that_is_read_twice_has_one_log(spark: SparkSession, tmp_path: Path) -> None:
    reader, other = Reader(spark, tmp_path), tmp_path / "other"
    reader.add("a.json")
    shutil.copytree(reader.folder, other)
    twice, once = reader.frame(), spark.readStream.schema("n long").json(str(other))
    frame = twice.union(twice).union(once)
    run_once(frame, tmp_path / "checkpoint")
    assert backlog(frame, tmp_path / "checkpoint") == "none"
    shutil.copy(other / "a.json", other / "b.json")
    assert backlog(frame, tmp_path / "checkpoint") == "unread"


def test_a_rate_always_has_more(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.readStream.format("rate").load()
    run_once(frame, tmp_path / "checkpoint")
    time.sleep(1.1)
    assert backlog(frame, tmp_path / "checkpoint") == "unread"


def test_a_socket_is_not_asked(spark: SparkSession, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        frame = spark.readStream.format("socket").option("host", "127.0.0.1").option("port", server.getsockname()[1])
        files = Reader(spark, tmp_path)
        files.add("a.json")
        files.run()
        entry = read_logs(open_read_store(str(tmp_path / "checkpoint"))).newest_offset
        assert entry is not None
        assert backlog_of(frame.load(), open_read_store(str(tmp_path / "checkpoint")), entry) == "unknown"
        with pytest.raises(TimeoutError):
            server.accept()
