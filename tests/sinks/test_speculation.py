"""Spark's own speculation: two attempts of one task at a time, in a cluster, by exactly-once sinks.

Spark runs a second attempt on another host only: hence a standalone cluster with two workers, in the driver's JVM.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import slackwater as sw
from examples.demo.broker import Broker
from slackwater import connectors
from slackwater.core.sink import Owner, WriteContext
from slackwater.runtime.session.session import end_session
from slackwater.sinks.common.registry import open_output
from tests.support.kafka_topics import create_topic, values
from tests.support.postgres_server import PostgresServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
CONTEXT = WriteContext("5f0e", "clicks/orders", 3, "append")
ROWS = 2000
WAIT_S = 60
SETTINGS = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "500ms",
    "spark.speculation.efficiency.enabled": "false",
    # A stage with one task has no other to compare it with.
    "spark.speculation.task.duration.threshold": "3s",
    "spark.locality.wait": "0",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - heavy; only these tests pay for it
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    folder = tmp_path_factory.mktemp("cluster")
    jars = connectors.resolve(["kafka"], metadata.version("pyspark"))
    with pytest.MonkeyPatch.context() as patch:
        # PySpark reads it when the session starts; without it workers use the python3 of PATH.
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        conf = SparkConf(loadDefaults=False).setAll(list(SETTINGS.items())).setAppName("speculation")
        conf.set("spark.jars", ",".join(map(str, jars))).set("spark.sql.warehouse.dir", str(folder / "warehouse"))
        launch: Callable[[SparkConf], Any] = launch_gateway
        gateway = launch(conf)
        session = SparkSession(SparkContext(conf=conf.setMaster(_cluster(gateway, folder)), gateway=gateway))
        session.sparkContext.setLogLevel("OFF")
        yield session
        end_session(session)


def _cluster(gateway: Any, folder: Path) -> str:
    """A master and two workers, as ``local-cluster`` starts them but for the hosts; the master's URL."""
    jvm, conf = gateway.jvm, gateway.jvm.org.apache.spark.SparkConf(True)
    conf.set("spark.master.rest.enabled", "false")
    deploy = jvm.org.apache.spark.deploy
    master = deploy.master.Master.startRpcEnvAndEndpoint("127.0.0.1", 0, 0, conf)._1()
    url = f"spark://{master.address().hostPort()}"
    urls = gateway.new_array(jvm.java.lang.String, 1)
    urls[0] = url
    for number in (1, 2):
        place = (f"127.0.0.{number}", 0, 0, 1, 512, urls, str(folder / f"worker-{number}"))
        deploy.worker.Worker.startRpcEnvAndEndpoint(
            *place, jvm.scala.Option.apply(number), conf, jvm.scala.Option.empty()
        )
    return url


def _slow_first_attempt(folder: Path) -> Callable[[int], int]:
    """Holds the first attempt in the middle of its rows until the second is there; then both go on, side by side."""

    def passed(number: int) -> int:
        from pyspark import TaskContext  # noqa: PLC0415 - runs on executors

        context = TaskContext.get()
        if number == ROWS // 2 and context is not None:
            (folder / f"attempt-{context.attemptNumber()}").touch()
            deadline = time.monotonic() + WAIT_S
            while not (folder / "attempt-1").exists() and time.monotonic() < deadline:
                time.sleep(0.02)
        return number

    return passed


def _files(folder: Path, _servers: str, _postgres: PostgresServer) -> tuple[Any, Callable[[SparkSession], list[int]]]:
    path = str(folder / "out")
    return sw.sinks.files("json", path), lambda spark: _ids(spark.read.schema("id LONG").json(path))


def _postgres(_folder: Path, _servers: str, server: PostgresServer) -> tuple[Any, Callable[[SparkSession], list[int]]]:
    import psycopg  # noqa: PLC0415 - an extra

    url = server.url(server.new_database())
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE rows (id BIGINT)")

    def read(_spark: SparkSession) -> list[int]:
        with psycopg.connect(url) as connection:
            return [row[0] for row in connection.execute("SELECT id FROM rows ORDER BY id")]

    return sw.sinks.postgres(url, "rows"), read


def _kafka(_folder: Path, servers: str, _postgres: PostgresServer) -> tuple[Any, Callable[[SparkSession], list[int]]]:
    topic = create_topic(servers, "speculation", 2)
    sink = sw.sinks.kafka(topic, bootstrap_servers=servers, exactly_once=True)
    return sink, lambda _: sorted(int(value or b"") for value in values(servers, topic))


def _ids(frame: DataFrame) -> list[int]:
    return [row.id for row in frame.orderBy("id").collect()]


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(_files, id="files"),
        # tests/sinks/test_jdbc_staged.py publishes one of two attempts.
        pytest.param(_postgres, id="postgres", marks=pytest.mark.thorough),
        pytest.param(_kafka, id="kafka"),
    ],
)
def test_two_attempts_at_the_rows_of_a_batch(
    made: Any, spark: SparkSession, broker: Broker, postgres: PostgresServer, tmp_path: Path
) -> None:
    from pyspark.sql import functions as F  # noqa: PLC0415 - heavy; only these tests pay for it

    sink, read = made(tmp_path, broker.bootstrap_servers, postgres)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "rows.json").write_text("".join(f'{{"id": {number}}}\n' for number in range(ROWS)))
    slow = F.udf(_slow_first_attempt(tmp_path), "long", useArrow=False)
    frame = spark.readStream.schema("id LONG").json(str(tmp_path / "in")).repartition(2).select(slow("id").alias("id"))
    if sink.kind == "kafka":
        frame = frame.selectExpr("CAST(id AS STRING) AS value")
    open_output(sink.identity()).claim(Owner(CONTEXT.stream_id, CONTEXT.stream, "/srv/home"))
    sink.check(frame, CONTEXT)
    writer = frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    assert sink.attach(writer, CONTEXT).start().awaitTermination(2 * WAIT_S)

    assert {path.name for path in tmp_path.glob("attempt-*")} == {"attempt-0", "attempt-1"}
    assert read(spark) == list(range(ROWS))
    assert open_output(sink.identity()).last_written() == 0
