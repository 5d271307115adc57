"""Several kinds of state, rebuilt from checkpoints that are kept, damaged, deleted or changed.

The streams run side by side on the first half of the input, and then on the rest: these rows are expected. The same
again from the first half on, but with each checkpoint treated in one of these ways, and rebuilt. No process is killed,
which the tests of the areas do.

Not compared with a run over all of the input at once: the first run ends with a batch without input, after which Spark
drops rows as late by the newest watermark, and by the one before it where the next batch has input.
"""

import ast
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.conformance.matrix import EXACT, compared
from tests.conformance.treatments import PROVIDER, ROCKSDB, TREATMENTS, area_of, run_twice

pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600)]
STREAMS = ("session_window", "sliding_window", "deduplicated_window", "full_outer", "left_outer")
SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    PROVIDER: ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "true",
}


def test_rebuilt_state_is_that_of_a_run_that_was_not_rebuilt(tmp_path: Path) -> None:
    workspace = area_of(STREAMS, SETTINGS).lay_down(tmp_path / "rebuilt")
    expected, bring_back = run_twice(workspace, tmp_path / "saved")
    assert [stream for stream in STREAMS if workspace.rows(stream) == expected[stream]] == []
    treated = dict(zip(STREAMS, TREATMENTS, strict=True))

    refused = {stream: workspace.rebuild(stream, treatment) for stream, treatment in treated.items()}
    bring_back()
    workspace.run()

    assert {stream: refused[stream] or compared(workspace.rows(stream), expected[stream]) for stream in STREAMS} == (
        dict.fromkeys(STREAMS, EXACT)
    )


CLOCK = """from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("operations")


@pipeline.stream(sink=sw.sinks.files("parquet", "out/tumbling_window"))
def tumbling_window(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema("at TIMESTAMP").option("maxFilesPerTrigger", 1).json("readings")
    seen = readings.withColumn("seen", F.current_timestamp()).withWatermark("at", "10 minutes")
    windows = seen.groupBy(F.window("at", "50 minutes")).agg(F.min("seen").alias("first_seen"))
    return windows.select("window.start", "first_seen")
"""


@pytest.mark.thorough
def test_a_replayed_batch_has_the_current_time_that_its_entry_records(tmp_path: Path) -> None:
    stream = "tumbling_window"
    workspace = area_of((stream,), {}).lay_down(tmp_path / "clock")
    (workspace.folder / "operations" / f"{stream}.py").write_text(CLOCK)
    expected, bring_back = run_twice(workspace, tmp_path / "saved")
    written, newest = workspace.rows(stream), _newest_time(workspace.checkpoint(stream))

    assert workspace.rebuild(stream) == ""
    bring_back()
    workspace.run()

    # A window whose first row came after the rebuild has another time in each of the two runs.
    in_state = {row for row in expected[stream] - written if dict(ast.literal_eval(row))["first_seen"] <= newest}
    assert in_state
    assert in_state <= set(workspace.rows(stream))


def _newest_time(checkpoint: Path) -> str:
    """The current time of the newest planned batch, as a row has it."""
    newest = max((entry for entry in (checkpoint / "offsets").iterdir() if entry.name.isdigit()), key=_number)
    metadata = json.loads(newest.read_text().splitlines()[1])
    return str(datetime.fromtimestamp(metadata["batchTimestampMs"] / 1000, UTC))


def _number(entry: Path) -> int:
    return int(entry.name)
