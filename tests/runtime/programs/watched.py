"""watched.py FOLDER: an application that Slackwater only watches. Prints what happened as JSON."""

import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

import slackwater as sw

FOLDER = Path(sys.argv[1])
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "1")
    .getOrCreate()
)


def add_files(folder: Path, first: int, count: int) -> None:
    folder.mkdir(exist_ok=True)
    for number in range(first, first + count):
        # Seen by a running query before its time was set back, a file would make all others too old (maxFileAge).
        hidden = folder / f".{number:05}"
        hidden.write_text(json.dumps({"id": number}) + "\n")
        os.utime(hidden, (1_700_000_000 + number, 1_700_000_000 + number))
        hidden.rename(folder / f"{number:05}.json")


def start(name: str, checkpoint: str) -> StreamingQuery:
    rows = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1).json(str(FOLDER / f"{name}-in"))
    writer = rows.writeStream.queryName(name).format("json").option("path", str(FOLDER / f"{checkpoint}-out"))
    return writer.option("checkpointLocation", str(FOLDER / checkpoint)).start()


def wait(query: StreamingQuery, happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 90
    while not happened():
        if not query.isActive or time.monotonic() > deadline:
            sys.exit(f"{query.name} did not get there: {query.exception()}")
        time.sleep(0.02)


def committed(checkpoint: str) -> int:
    folder = FOLDER / checkpoint / "commits"
    names = [file.name for file in folder.iterdir()] if folder.exists() else []
    return max((int(name) for name in names if name.isdigit()), default=-1)


def plain() -> None:
    """Two lives of one query, and then one with a new checkpoint under the same name."""
    add_files(FOLDER / "plain-in", 0, 12)
    watching = sw.watch(spark, ledger=FOLDER / "plain.db")
    for checkpoint, last in (("plain-1", 11), ("plain-1", 13), ("plain-2", 13)):
        if last == 13:
            add_files(FOLDER / "plain-in", 12, 2)
        query = start("plain", checkpoint)
        wait(query, lambda checkpoint=checkpoint, last=last: committed(checkpoint) == last)  # type: ignore[misc] # defaults bind the loop variables
        query.stop()
    watching.close()
    report["plain"] = {"errors": watching.errors}


def broken() -> None:
    """The ledger's tables are missing for some batches; then they are restored, and the query is started again."""
    add_files(FOLDER / "broken-in", 0, 4)
    watching = sw.watch(spark, ledger=FOLDER / "broken.db")
    query = start("broken", "broken-1")
    wait(query, lambda: committed("broken-1") == 3)
    database = sqlite3.connect(FOLDER / "broken.db", timeout=30)
    # The watcher looks ten times a second.
    wait(query, lambda: _offsets(database) == [4, 5, 6, 7])
    for table in ("log_lines", "batches"):
        database.execute(f"ALTER TABLE {table} RENAME TO {table}_away")
    add_files(FOLDER / "broken-in", 4, 4)
    wait(query, lambda: committed("broken-1") == 7 and watching.errors > 0)
    active = query.isActive
    query.stop()
    watching.close()
    for table in ("log_lines", "batches"):
        database.execute(f"ALTER TABLE {table}_away RENAME TO {table}")
    database.commit()
    report["broken"] = {"errors": watching.errors, "active": active, "left_out": _offsets(database)}
    again = sw.watch(spark, ledger=FOLDER / "broken.db")
    add_files(FOLDER / "broken-in", 8, 1)
    query = start("broken", "broken-1")
    wait(query, lambda: committed("broken-1") == 8)
    query.stop()
    again.close()
    report["broken"]["errors_again"] = again.errors


def _offsets(database: sqlite3.Connection) -> list[int]:
    known = {row[0] for row in database.execute("SELECT entry FROM log_lines WHERE log = 'offsets'")}
    return sorted(set(range(8)) - known)


def deleted() -> None:
    """The ledger's file is deleted while a query runs."""
    add_files(FOLDER / "deleted-in", 0, 3)
    watching = sw.watch(spark, ledger=FOLDER / "deleted.db")
    query = start("deleted", "deleted-1")
    wait(query, lambda: committed("deleted-1") == 2)
    for file in FOLDER.glob("deleted.db*"):
        file.unlink()
    add_files(FOLDER / "deleted-in", 3, 3)
    wait(query, lambda: committed("deleted-1") == 5)
    query.stop()
    watching.close()
    again = sw.watch(spark, ledger=FOLDER / "deleted.db")
    add_files(FOLDER / "deleted-in", 6, 1)
    query = start("deleted", "deleted-1")
    wait(query, lambda: committed("deleted-1") == 6)
    query.stop()
    again.close()
    report["deleted"] = {"errors_again": again.errors}


def continuous() -> None:
    """A query without micro-batches: it has marks and no progress of batches."""
    watching = sw.watch(spark, ledger=FOLDER / "continuous.db")
    rows = spark.readStream.format("rate").option("numPartitions", 1).load()
    writer = rows.writeStream.queryName("continuous").format("noop").trigger(continuous="500 milliseconds")
    query = writer.option("checkpointLocation", str(FOLDER / "continuous-1")).start()
    wait(query, lambda: committed("continuous-1") >= 2)
    query.stop()
    watching.close()
    report["continuous"] = {"errors": watching.errors, "committed": committed("continuous-1")}


report: dict[str, dict[str, object]] = {}
for scene in (plain, broken, deleted, continuous):
    scene()
(FOLDER / "report.json").write_text(json.dumps(report))
spark.stop()
