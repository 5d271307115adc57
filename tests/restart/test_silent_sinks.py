"""Sinks that cannot show what they hold, and output modes update and complete: killed, rebuilt and finished.

One application with a stream for each sink. The stream ``copied`` is held inside its batch ``HELD`` until the kill,
when its rows are written and not committed.
"""

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic

from examples.demo.broker import Broker
from tests.restart.scenario import CONF
from tests.restart.small import SmallWorkspace, error_code
from tests.support.killing import kill_when
from tests.support.outputs import rows_of

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(1800)]

FILES = 6
ROWS = 20
HELD = 3
TOPIC = "copies"
STREAMS = ("updated", "whole", "copied", "sent", "tabled", "kept")
PIPELINE = '''
import json
import time
import uuid
from pathlib import Path

import slackwater as sw
from pyspark.sql import functions as F

FOLDER = Path("{folder}")
pipeline = sw.Pipeline("web")


class Lines:
    """A file for each batch, partition and attempt."""

    def __init__(self, stream):
        self.stream = stream

    def open(self, partition, batch):
        self.batch, self.rows = batch, []
        return True

    def process(self, row):
        self.rows.append(json.dumps(row.asDict(recursive=True), default=str))

    def close(self, error):
        file = FOLDER / "lines" / f"{{self.stream}}-{{self.batch}}-{{uuid.uuid4()}}.jsonl"
        file.write_text("".join(line + "\\n" for line in self.rows))
        while self.stream == "copied" and self.batch == {held} and (FOLDER / "hold").exists():
            time.sleep(0.05)


def rows(spark):
    return spark.readStream.schema("ts timestamp, page string, n long").option("maxFilesPerTrigger", 1).json("landing")


def sums(spark):
    marked = rows(spark).withWatermark("ts", "10 minutes")
    return marked.groupBy(F.window("ts", "30 minutes"), "page").agg(F.sum("n").alias("n")).select(
        F.col("window.start").cast("string").alias("start"), "page", "n")


@pipeline.stream(sink=sw.sinks.foreach(Lines("updated")), output_mode="update")
def updated(spark):
    return sums(spark)


@pipeline.stream(sink=sw.sinks.foreach(Lines("whole")), output_mode="complete")
def whole(spark):
    return sums(spark)


@pipeline.stream(sink=sw.sinks.foreach(Lines("copied")))
def copied(spark):
    return rows(spark).select("page", "n")


@pipeline.stream(sink=sw.sinks.kafka("{topic}", bootstrap_servers="{servers}"))
def sent(spark):
    return rows(spark).select(F.to_json(F.struct("page", "n")).alias("value"))


@pipeline.stream(sink=sw.sinks.table("clicks", path="{folder}/table"))
def tabled(spark):
    return rows(spark).select("page", "n")


@pipeline.stream(sink=sw.sinks.memory("kept"))
def kept(spark):
    return rows(spark)
'''


class Project(SmallWorkspace):
    """The workspace with its streams; all but the last file of the input are there from the start."""

    def __init__(self, folder: Path, servers: str) -> None:
        super().__init__(folder, PIPELINE.format(folder=folder, servers=servers, topic=TOPIC, held=HELD))
        (folder / "lines").mkdir()
        (folder / "hold").touch()
        for file in range(FILES):
            self.add_file(file, range(file * ROWS, (file + 1) * ROWS))

    def add_file(self, number: int, minutes: range) -> None:
        """Add a file whose ``n`` is the minute, and whose pages take turns."""
        rows = [{"ts": f"2024-01-01T{m // 60:02d}:{m % 60:02d}:00Z", "page": f"page-{m % 3}", "n": m} for m in minutes]
        hidden = self.folder / ".hidden"
        hidden.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(hidden, (1_700_000_000 + number, 1_700_000_000 + number))
        hidden.rename(self.folder / "landing" / f"{number:03d}.json")

    def lines(self, stream: str) -> dict[int, list[dict[str, Any]]]:
        found: dict[int, list[dict[str, Any]]] = {}
        for file in sorted((self.folder / "lines").glob(f"{stream}-*.jsonl")):
            rows = [json.loads(line) for line in file.read_text().splitlines()]
            found.setdefault(int(file.name.split("-")[1]), []).extend(rows)
        return found

    def kill_held(self) -> None:
        """Run, and kill inside the held batch, when all other streams have read everything."""
        process = self.start("run", "clicks.py", *CONF)
        home = self.folder / ".slackwater" / "streams" / "web"
        others = [home / name / "checkpoints/0001/commits" / str(FILES - 1) for name in STREAMS if name != "copied"]

        def reached() -> bool:
            held = any((self.folder / "lines").glob(f"copied-{HELD}-*"))
            return held and all(commit.exists() for commit in others)

        kill_when(process, reached, (home / "copied/checkpoints/0001/offsets/0").exists)
        (self.folder / "hold").unlink()


MINUTES = range(FILES * ROWS)
LATER = range(FILES * ROWS - 5, FILES * ROWS + 25)
"""Rows of a window that was open at the kill, and of the next."""


def _sums() -> dict[tuple[str, str], int]:
    """The final table in plain Python."""
    sums: Counter[tuple[str, str]] = Counter()
    for minute in (*MINUTES, *LATER):
        start = minute // 30 * 30
        sums[f"2024-01-01 {start // 60:02d}:{start % 60:02d}:00", f"page-{minute % 3}"] += minute
    return dict(sums)


def _table(lines: dict[int, list[dict[str, Any]]]) -> dict[tuple[str, str], int]:
    return {(row["start"], row["page"]): row["n"] for batch in sorted(lines) for row in lines[batch]}


def _received(servers: str, at_least: int) -> Counter[int]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "test", "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    try:
        records = consumer.consume(at_least, timeout=60)
        records += consumer.consume(1000, timeout=2)
    finally:
        consumer.close()
    return Counter(json.loads(record.value() or b"")["n"] for record in records)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker.start(tmp_path_factory.mktemp("broker")) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
        admin.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC].result(30)
        yield running


@pytest.mark.thorough
def test_killed_and_rebuilt(broker: Broker, tmp_path: Path) -> None:
    project = Project(tmp_path / "project", broker.bootstrap_servers)
    project.kill_held()
    home = project.folder / ".slackwater" / "streams" / "web"
    for name in ("updated", "whole"):
        shutil.rmtree(home / name / "checkpoints" / "0001")

    status = json.loads(project.slackwater("status", "--format", "json", code=5).stdout)
    found = {stream["name"]: [finding["code"] for finding in stream["findings"]] for stream in status["streams"]}
    assert found["updated"][0] == found["whole"][0] == "checkpoint-lost"
    assert found["copied"] == ["sink-silent", "at-least-once"]
    assert found["sent"][:1] == ["sink-silent"]
    assert found["tabled"] == ["sink-silent"]
    assert found["kept"] == ["sink-silent", "rows-not-kept"]
    assert error_code(project.slackwater("plan", "rebuild", "updated", "--at", "batch:2", code=5)) == "sink-uncuttable"

    for name in ("updated", "whole"):
        project.slackwater("plan", "rebuild", name, "--out", "plan.json", "--force")
        project.slackwater("apply", "plan.json", "--yes", *CONF)
        plan = json.loads((project.folder / "plan.json").read_text())
        assert plan["facts"]["target"] >= FILES - 2, "the ledger may lack the commit that was followed by the kill"
        assert plan["facts"]["written"] is None
        assert any("may be written twice" in risk for risk in plan["risks"])
    project.add_file(FILES, LATER)
    messages = project.caught_up(code=7).stderr

    assert "memory-restart" in messages or "cannot be restarted in append mode" in messages
    assert "web/copied: the foreach sink writes at least once" in messages
    assert _table(project.lines("updated")) == _sums()
    whole = project.lines("whole")
    assert _table({max(whole): whole[max(whole)]}) == _sums(), "the newest batch has the whole table"
    every = Counter((*MINUTES, *LATER))
    doubled = Counter(range(HELD * ROWS, (HELD + 1) * ROWS))
    assert Counter(row["n"] for rows in project.lines("copied").values() for row in rows) == every + doubled
    assert _received(broker.bootstrap_servers, every.total()) == every
    assert rows_of(project.folder / "table").total() == every.total()
