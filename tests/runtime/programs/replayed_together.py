"""replayed_together.py FOLDER STATE: replays batches by one query. Prints what it did, and the state, as JSON."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from slackwater.runtime.loader import load
from slackwater.runtime.replay.replay import SparkReplayer
from slackwater.runtime.session import SessionOptions

FOLDER, STATE = Path(sys.argv[1]), sys.argv[2]
BATCHES = 4
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
STATES = {
    "hdfs": {},
    "rocksdb": {PROVIDER: ROCKSDB},
    "format-2": {PROVIDER: ROCKSDB, CHANGELOG: "true", "spark.sql.streaming.stateStore.checkpointFormatVersion": "2"},
}
PIPELINE = """
import slackwater as sw
from pyspark.sql import functions as F

pipeline = sw.Pipeline("work")


@pipeline.stream(sink=sw.sinks.files("json", "out"))
def counted(spark):
    rows = spark.readStream.schema("at TIMESTAMP, n LONG").option("maxFilesPerTrigger", 1).json("in")
    return rows.withWatermark("at", "10 minutes").groupBy(F.window("at", "10 minutes"), "n").count()
"""


def entries(checkpoint: Path, log: str) -> dict[str, Any]:
    """The entries of a log, without the unique ids of state."""
    found = {}
    for batch in range(BATCHES):
        text = (checkpoint / log / str(batch)).read_text()
        found[str(batch)] = {**json.loads(text.split("\n")[1]), "stateUniqueIds": None}
    return found


def replayed(replayer: SparkReplayer, recorded: Path, checkpoint: Path) -> list[list[object]]:
    """Replays the batches; of each its id, its rows, the run of its query, and whether that waits for more."""
    checkpoint.mkdir()
    for name in ("metadata", "sources"):
        copy = shutil.copytree if (recorded / name).is_dir() else shutil.copy
        copy(recorded / name, checkpoint / name)
    (checkpoint / "offsets").mkdir()
    found: list[list[object]] = []
    for batch in range(BATCHES):
        shutil.copy(recorded / "offsets" / str(batch), checkpoint / "offsets")
        ran = replayer.run_pending(str(checkpoint), changelog=True, settings={}, more=batch < BATCHES - 1)
        query = replayer._query
        found.append([*ran, str(query.query.runId) if query is not None else None])
    return found


os.chdir(FOLDER)
Path("pipeline.py").write_text(PIPELINE)
Path("in").mkdir()
for number in range(BATCHES):
    # Each file has a row that its batch's watermark makes late.
    lines = [f'{{"at": "2026-01-01T{hour:02}:00:00Z", "n": {number}}}\n' for hour in (number + 4, number)]
    Path("in", f"{number}.json").write_text("".join(lines))
    os.utime(Path("in", f"{number}.json"), (1_700_000_000 + number, 1_700_000_000 + number))

options = SessionOptions("test", "local[2]", {"spark.sql.shuffle.partitions": "1", "spark.ui.enabled": "false"})
with SparkReplayer(
    load("pipeline.py"), "counted", options, home=FOLDER / "home", say=lambda _text: None, on_jvm=lambda _pid: None
) as replayer:
    spark = replayer._open()
    recorded, rebuilt = FOLDER / "recorded", FOLDER / "rebuilt"
    # Calls the stream's function, and sets all settings to those of the session.
    frame = replayer.frame()
    for key, value in {**STATES[STATE], "spark.sql.streaming.noDataMicroBatches.enabled": "false"}.items():
        spark.conf.set(key, value)
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(recorded))
    writer.trigger(availableNow=True).start().awaitTermination()
    answer = {
        "version": spark.version,
        "batches": replayed(replayer, recorded, rebuilt),
        "commits equal": entries(recorded, "commits") == entries(rebuilt, "commits"),
        "states": [
            sorted(map(str, spark.read.format("statestore").load(str(checkpoint)).drop("partition_id").collect()))
            for checkpoint in (recorded, rebuilt)
        ],
    }
sys.stdout.write(json.dumps(answer))
