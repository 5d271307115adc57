"""The exactly-once Kafka sink with a real Spark and a real broker: columns, repeated batches, killed tasks."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import slackwater as sw
from examples.demo.broker import Broker
from slackwater.core.errors import Refused
from slackwater.core.sink import Owner, WriteContext
from slackwater.runtime.session.session import end_session
from slackwater.sinks.common.batch_function import BatchFailed
from slackwater.sinks.common.registry import open_output
from tests.support.errors import raises_code
from tests.support.kafka_proxy import END_TXN, kafka_proxy
from tests.support.kafka_topics import Record, create_topic, records, values
from tests.support.killing import children_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
CONTEXT = WriteContext("5f0e", "clicks/orders", 3, "append")


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - heavy; only these tests pay for it

    builder = SparkSession.builder.master("local[2, 3]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    with pytest.MonkeyPatch.context() as patch:
        # PySpark reads it when the session starts; without it workers use the python3 of PATH.
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        # Its JVM as well: the next session of this process may need other jars.
        end_session(session)


def _sink(servers: str, topic: str) -> Any:
    return sw.sinks.kafka(topic, bootstrap_servers=servers, exactly_once=True)


def _start(sink: Any, frame: DataFrame, context: WriteContext = CONTEXT) -> Any:
    """Claim and check as a run does; the batch function."""
    open_output(sink.identity()).claim(Owner(context.stream_id, context.stream, "/srv/home"))
    sink.check(frame, context)
    writer: Any = SimpleNamespace(foreachBatch=lambda function: function)
    return sink.attach(writer, context)


def _fails(code: str, act: Callable[[], object]) -> str:
    with pytest.raises(BatchFailed) as failed:
        act()
    assert f"[{code}]" in str(failed.value)
    return str(failed.value)


def test_columns_and_repeated_batches(spark: SparkSession, broker: Broker) -> None:
    from pyspark.sql import functions as F  # noqa: PLC0415 - heavy

    servers = broker.bootstrap_servers
    topic = create_topic(servers, "columns", 3)
    rows = [("a", b"k", 2, [("h", b"1")]), (None, None, 0, None), ("ü", None, 1, [])]
    columns = "Value STRING, key BINARY, partition INT, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, topic STRING"
    frame = spark.createDataFrame([(*row, "ignored") for row in rows], columns)
    sink = _sink(servers, topic)
    write = _start(sink, frame)
    for batch in (0, 0, 1, 0):
        write(frame, batch)
    expected = [Record(None, None, 0), Record(b"a", b"k", 2, (("h", b"1"),)), Record("ü".encode(), None, 1)]
    assert records(servers, topic) == [record for record in expected for _ in range(2)]
    write(frame.where("false"), 2)
    assert open_output(sink.identity()).last_written() == 2

    many = spark.range(0, 20_000, 1, 4).select(F.col("id").cast("string").alias("value"))
    write(many, 3)
    assert len(values(servers, topic)) == 6 + 20_000
    assert len(set(values(servers, topic))) == 3 + 20_000
    outside = _fails("kafka-partition", lambda: write(frame.withColumn("partition", F.lit(9)), 4))
    assert "UNKNOWN_PARTITION" in outside
    assert len(values(servers, topic)) == 6 + 20_000


def test_a_task_that_is_killed_at_its_commit_is_retried(spark: SparkSession, broker: Broker) -> None:
    servers = broker.bootstrap_servers
    topic = create_topic(servers, "killed", 2)
    frame = spark.range(0, 1000, 1, 2).selectExpr("CAST(id AS STRING) AS value")
    killed: list[int] = []
    with kafka_proxy(broker.port) as proxy:
        write = _start(_sink(proxy.bootstrap_servers, topic), frame)
        for batch, what in enumerate(("request", "reply")):
            stop = proxy.stop_at(END_TXN, "request" if what == "request" else "reply", hold=True)

            def kill(stop: Any = stop) -> None:
                assert stop.reached.wait(60)
                for pid in _python_workers(spark):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
                stop.break_off()

            thread = threading.Thread(target=kill)
            thread.start()
            write(frame, batch)
            thread.join()
            assert len(values(servers, topic)) == 1000 * (batch + 1), what
    assert len(killed) >= 2


def _python_workers(spark: SparkSession) -> list[int]:
    """The processes that run Python tasks: the daemon's children."""
    gateway: Any = spark.sparkContext._gateway
    daemons = [
        pid for pid in children_of(gateway.proc.pid) if b"pyspark.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    return [worker for daemon in daemons for worker in children_of(daemon)]


def test_a_run_that_was_replaced_and_another_stream(spark: SparkSession, broker: Broker) -> None:
    servers = broker.bootstrap_servers
    topic = create_topic(servers, "fenced")
    frame = spark.range(3).selectExpr("CAST(id AS STRING) AS value")
    sink = _sink(servers, topic)
    old = _start(sink, frame)
    old(frame, 0)
    new = _start(sink, frame, replace(CONTEXT, epoch=4))
    _fails("sink-fenced", lambda: old(frame, 1))
    new(frame, 1)
    with raises_code(Refused, "sink-fenced"):
        _start(sink, frame)
    with raises_code(Refused, "sink-owned"):
        _start(sink, frame, replace(CONTEXT, stream_id="other"))
    assert len(values(servers, topic)) == 6
