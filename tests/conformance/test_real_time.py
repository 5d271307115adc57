"""Real-time mode, as far as PySpark goes, and foreach with continuous processing."""

import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql.streaming.readwriter import DataStreamWriter

from examples.demo.broker import Broker
from slackwater import connectors
from slackwater.runtime.session import spark_version
from tests.conformance.matrix import EXAMPLES
from tests.support.kafka_topics import create_topic

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.thorough, pytest.mark.timeout(900)]
PLAIN = """
import sys, tempfile
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[4]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
rate = spark.readStream.format("rate").load()
kafka = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "{servers}")
kafka = kafka.option("subscribe", "readings-1").option("startingOffsets", "earliest").load().select("key", "value")


def tried(name, writer, **trigger):
    writer = writer.option("checkpointLocation", tempfile.mkdtemp())
    if trigger:
        writer = writer.trigger(**trigger)
    else:
        writer._jwrite = writer._jwrite.trigger(spark._jvm.org.apache.spark.sql.streaming.Trigger.RealTime("5 seconds"))
    try:
        query = writer.start()
        ended = query.awaitTermination(20)
        failed = str(query.exception())
        print(name, "runs" if not ended else failed.replace("\\n", " "), flush=True)
        query.stop()
    except Exception as error:
        print(name, str(error).replace("\\n", " "), flush=True)


tried("foreach", rate.writeStream.foreach(lambda row: None), continuous="1 second")
tried("rate", rate.writeStream.format("console").outputMode("update"))
tried("append", kafka.writeStream.format("console").outputMode("append"))
tried("memory", kafka.writeStream.format("memory").queryName("m").outputMode("update"))
topic = kafka.writeStream.format("kafka").option("kafka.bootstrap.servers", "{servers}").option("topic", "real-time")
tried("kafka", topic.outputMode("update"))
tried("rows", kafka.writeStream.foreach(lambda row: None).outputMode("update"))
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker.start(tmp_path_factory.mktemp("broker")) as running:
        servers = {**os.environ, "KAFKA_SERVERS": running.bootstrap_servers}
        subprocess.run([sys.executable, str(EXAMPLES / "make_topics.py")], check=True, env=servers)
        create_topic(running.bootstrap_servers, "real-time", 2)
        yield running


def test_what_spark_does_with_foreach_continuously_and_in_real_time_mode(broker: Broker, tmp_path: Path) -> None:
    program = tmp_path / "plain.py"
    program.write_text(PLAIN.format(servers=broker.bootstrap_servers))
    jars = ",".join(map(str, connectors.resolve(["kafka"], spark_version())))
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": f"--jars {jars} pyspark-shell", "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        timeout=600,
        check=True,
    )
    found = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)

    assert "IllegalThreadStateException" in found["foreach"]
    assert "realTime" not in inspect.signature(DataStreamWriter.trigger).parameters
    assert "INPUT_STREAM_NOT_SUPPORTED" in found["rate"]
    assert "OUTPUT_MODE_NOT_SUPPORTED" in found["append"]
    assert "OPERATOR_OR_SINK_NOT_IN_ALLOWLIST" in found["memory"]
    assert found["kafka"] == found["rows"] == "runs"
