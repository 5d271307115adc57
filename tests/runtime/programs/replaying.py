"""replaying.py FOLDER: runs one batch again under different SQL settings. Prints what its rows were as JSON."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from slackwater.runtime.loader import load
from slackwater.runtime.replay.replay import SparkReplayer
from slackwater.runtime.session import SessionOptions
from slackwater.runtime.session.settings import effective_settings

FOLDER = Path(sys.argv[1])
PIPELINE = """
import slackwater as sw
from pyspark.sql import functions as F

pipeline = sw.Pipeline("work")


def note(value):
    with open("rows.txt", "a") as rows:
        rows.write(f"{value}\\n")
    return value


@pipeline.stream(sink=sw.sinks.files("json", "out"))
def rows(spark):
    rows = spark.readStream.schema("number STRING, at TIMESTAMP").json("in")
    computed = F.concat_ws(" ", F.date_format("at", "HH"), F.coalesce(F.expr("CAST(number AS INT)"), F.lit(-1)))
    return rows.select(F.udf(note, "string")(computed))
"""

os.chdir(FOLDER)
Path("pipeline.py").write_text(PIPELINE)
Path("in").mkdir()
Path("in/0.json").write_text('{"number": "5x", "at": "2026-01-01T03:00:00Z"}\n')
checkpoint = FOLDER / "checkpoint"
tokyo = {"spark.sql.session.timeZone": "Asia/Tokyo", "spark.sql.ansi.enabled": "false", "spark.work.own": "x"}
LOGIN = "postgresql://work:pw@host/work"
present = {
    "spark.sql.session.timeZone": "America/Bogota",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.own": "1",
    "spark.work.url": LOGIN,
}


def rows_under(replayer: SparkReplayer, settings: Mapping[str, str] | None) -> dict[str, object]:
    Path("rows.txt").write_text("")
    for file in ("0", ".0.crc"):
        (checkpoint / "commits" / file).unlink(missing_ok=True)
    batch, _ = replayer.run_pending(str(checkpoint), changelog=True, settings=settings)
    spark = replayer._open()
    return {
        "batch": batch,
        "rows": Path("rows.txt").read_text().split("\n")[:-1],
        "settings": effective_settings(spark),
        "logins": [spark.conf.get("spark.work.url"), spark.sparkContext._jsc.sc().conf().get("spark.work.url")],
    }


options = SessionOptions("test", "local[1]", present)
with SparkReplayer(
    load("pipeline.py"), "rows", options, home=FOLDER / "home", say=lambda _text: None, on_jvm=lambda _pid: None
) as replayer:
    found = {
        "present": rows_under(replayer, None),
        "recorded": rows_under(replayer, tokyo),
        "recorded again": rows_under(replayer, tokyo),
        "defaults": rows_under(replayer, {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "false"}),
        "present again": rows_under(replayer, None),
    }
    rows_under(replayer, tokyo)
    replayer.profile()
    found["profile"] = {"settings": effective_settings(replayer._open())}
sys.stdout.write(json.dumps(found))
