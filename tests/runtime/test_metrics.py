"""Metrics of a run: what Prometheus reads while the streams run is what the ledger has afterwards."""

import re
import signal
from http import HTTPStatus
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.runtime.project import Project

PIPELINE = """
import slackwater as sw
from pyspark.sql import functions as F

pipeline = sw.Pipeline("work")

@pipeline.stream(sink=sw.sinks.files("json", "out"), trigger="200 milliseconds")
def counted(spark):
    open("page_of_spark", "w").write(spark.sparkContext.uiWebUrl)
    source = spark.readStream.schema("id LONG, at TIMESTAMP").option("maxFilesPerTrigger", 1).json("in")
    minutes = source.withWatermark("at", "1 minute").groupBy(F.window("at", "1 minute"))
    return minutes.agg(F.max("id").alias("id")).select("id")
"""
OF_SPARK = (
    "spark.ui.enabled=true",
    "spark.ui.port=0",
    "spark.ui.prometheus.enabled=true",
    "spark.sql.streaming.metricsEnabled=true",
    "spark.metrics.conf.*.sink.prometheusServlet.class=org.apache.spark.metrics.sink.PrometheusServlet",
    "spark.metrics.conf.*.sink.prometheusServlet.path=/metrics/prometheus",
)
FILES = 5


def _read(address: str) -> str:
    parts = urlsplit(address)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    connection.request("GET", parts.path)
    response = connection.getresponse()
    assert response.status == HTTPStatus.OK, f"{address}: {response.status}"
    return response.read().decode()


def _metrics(address: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(_read(address)):
        for sample in family.samples:
            labels = {key: value for key, value in sample.labels.items() if key not in {"pipeline", "stream"}}
            assert {key: sample.labels[key] for key in ("pipeline", "stream")} == {
                "pipeline": "work",
                "stream": "counted",
            }
            found[sample.name + "".join(f" {value}" for value in labels.values())] = sample.value
    return found


@pytest.mark.spark
def test_the_metrics_of_a_run_are_what_the_ledger_has(project: Project) -> None:
    project.write(PIPELINE)
    project.add_files(FILES)
    options = [word for setting in OF_SPARK for word in ("--conf", setting)]
    command = project.start("run", "pipeline.py", "--metrics-port", "0", *options)
    command.wait_for(lambda: "metrics at " in command.log, "the address is printed")
    match = re.search(r"metrics at (http://127\.0\.0\.1:\d+/metrics)", command.log)
    assert match is not None, command.log
    address = match[1]
    # The last batch has no rows: it is planned because the watermark has passed the end of windows.
    command.wait_for(lambda: _metrics(address).get("slackwater_batches_total", 0) >= FILES + 1, "all files are read")
    # What the page reads, it reads every few seconds; the mark is of that batch only after it.
    written = "slackwater_mark_batch_id written"
    command.wait_for(lambda: _metrics(address).get(written) == FILES, "the page has been read again")
    found = _metrics(address)
    of_spark = _read((project.folder / "page_of_spark").read_text() + "/metrics/prometheus/")
    command.signal_group(signal.SIGINT)
    assert command.end() == 0, command.log

    with project.ledger() as ledger:
        batches = ledger.batches("work/counted")
    assert found["slackwater_batches_total"] == len(batches)
    assert found["slackwater_batch_duration_seconds_count"] == len(batches)
    assert found["slackwater_input_rows_total"] == sum(batch.input_rows for batch in batches) == FILES
    assert found["slackwater_mark_batch_id planned"] == found[written] == len(batches) - 1
    assert found["slackwater_state_rows"] == batches[-1].state_rows
    assert found["slackwater_state_bytes"] == batches[-1].state_bytes
    assert batches[-1].state_bytes
    assert found["slackwater_watermark_timestamp_seconds"] > 0
    assert found["slackwater_lag_files"] == 0
    assert found["slackwater_lag_seconds"] == pytest.approx(0, abs=60)
    assert found["slackwater_stream_state running"] == 1
    assert found["slackwater_stream_readable"] == 1
    assert found["slackwater_restarts_total"] == 0
    assert "inputRate_total" in of_spark
    with pytest.raises(ConnectionRefusedError):
        _read(address)
