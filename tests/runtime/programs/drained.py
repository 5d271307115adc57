"""drained.py FOLDER SEED COUNT: drains queries at random times. Prints when each was told to end, and its end."""

import json
import logging
import random
import sys
import time
from pathlib import Path

from slackwater.runtime.run.listener import Drain
from slackwater.runtime.session import SessionOptions
from slackwater.runtime.session.session import end_session, start_session

FOLDER, SEED, COUNT = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
FILES = {"busy": 200, "idle": 2}
WAIT_S = 60


def newest(log: Path) -> int:
    return max((int(file.name) for file in log.iterdir() if file.name.isdigit()), default=-1) if log.exists() else -1


def drain_one(number: int) -> dict[str, object]:
    kind = chance.choice(["busy", "busy", "idle"])
    trigger = chance.choice(["0 seconds", "300 milliseconds"])
    checkpoint = FOLDER / f"checkpoint-{number}"
    rows = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1).json(str(FOLDER / kind))
    writer = (
        rows.writeStream.format("json").option("path", str(FOLDER / f"out-{number}")).trigger(processingTime=trigger)
    )
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    goal, give_up = chance.randint(0, 3) if kind == "busy" else 1, time.monotonic() + WAIT_S
    while newest(checkpoint / "commits") < goal and time.monotonic() < give_up:
        time.sleep(0.005)
    time.sleep(chance.uniform(0, 0.4))
    drain, asked = Drain(query), None
    drain.start()
    while True:
        # How many batches pass before the loop can be told to end depends on the machine; after that, none may start.
        if drain.ending and asked is None:
            asked = newest(checkpoint / "offsets")
        if drain.finished() or time.monotonic() > give_up:
            break
    ended = {"planned": newest(checkpoint / "offsets"), "committed": newest(checkpoint / "commits")}
    active, error = query.isActive, query.exception()
    query.stop()
    found = {"kind": kind, "trigger": trigger, "asked": asked, "last": FILES[kind] - 1, **ended}
    return {**found, "active": active, "error": error and str(error)}


for kind, count in FILES.items():
    (FOLDER / kind).mkdir()
    for number in range(count):
        (FOLDER / kind / f"{number:05}.json").write_text(json.dumps({"id": number}) + "\n")
chance = random.Random(SEED)
spark = start_session(SessionOptions("drained"), logging.info)
try:
    sys.stdout.writelines(json.dumps(drain_one(number)) + "\n" for number in range(COUNT))
finally:
    end_session(spark)
