"""replayed_state.py FOLDER MASTER: replays batches of a stream with state. Prints what stays loaded as JSON."""

import json
import os
import sys
from pathlib import Path
from unittest import mock

from slackwater.runtime.loader import load
from slackwater.runtime.replay import replay
from slackwater.runtime.replay.replay import SparkReplayer
from slackwater.runtime.session import SessionOptions

FOLDER, MASTER = Path(sys.argv[1]), sys.argv[2]
BATCHES = 2
PIPELINE = """
import slackwater as sw

pipeline = sw.Pipeline("work")


@pipeline.stream(sink=sw.sinks.files("json", "out"))
def counted(spark):
    rows = spark.readStream.schema("number LONG").json(f"{folder}/in")
    return rows.dropDuplicates(["number"])
"""

os.chdir(FOLDER)
Path("pipeline.py").write_text(PIPELINE.replace("{folder}", str(FOLDER)))
Path("in").mkdir()

settings = {"spark.sql.shuffle.partitions": "1", "spark.executor.memory": "512m", "spark.ui.enabled": "false"}
options = SessionOptions("test", MASTER, settings)
found = []
with (
    mock.patch.object(replay, "LOADED_BYTES_MAX", 0),
    SparkReplayer(
        load("pipeline.py"), "counted", options, home=FOLDER / "home", say=lambda _text: None, on_jvm=lambda _pid: None
    ) as replayer,
):
    for number in range(BATCHES):
        Path("in", f"{number}.json").write_text(f'{{"number": {number}}}\n')
        application = replayer._open().sparkContext.applicationId
        batch, rows = replayer.run_pending(str(FOLDER / "checkpoint"), changelog=True)
        states = getattr(getattr(replayer._open().sparkContext._jvm, replay.STATE_STORE), "MODULE$")
        found.append(
            {
                "batch": batch,
                "rows": rows,
                "same application": replayer._open().sparkContext.applicationId == application,
                "loaded in the driver": bool(states.isMaintenanceRunning()),
            }
        )
sys.stdout.write(json.dumps(found))
