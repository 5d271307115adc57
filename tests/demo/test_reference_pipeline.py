"""The reference pipeline in its three forms: one kill -9 hits each stage at another point, and no row differs.

The file system of the tests' JVMs holds each stage before it plans a batch, before its output gets the
batch, or before the batch is committed, until all three are held.
"""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import psycopg
import pytest
from confluent_kafka import Producer

from examples import make_weather
from examples.demo.broker import Broker
from examples.demo.places import GOLD, STREAMS
from examples.demo.story import RAW_FROM_KAFKA
from examples.demo.topic import TOPIC
from slackwater.cli.verbs.init import read_example, with_change
from tests.conformance.outputs import rows_of_sink
from tests.support import warm_python
from tests.support.kafka_topics import create_topic
from tests.support.killing import kill_when_held
from tests.support.outputs import Rows
from tests.support.postgres_server import PostgresServer
from tests.support.warm_jvm import attached

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(1200)]
FILES = 6
HELD = {"sensor-raw-ingest": 5, "sensor-deserialize": 3, GOLD: 2}
"""The batch in which each stage is held: the one before has made its input by then."""
POINTS = ("planning", "writing", "committing")
ROTATIONS = range(len(POINTS))
SETTINGS = """master = "local[2]"

[spark]
"spark.sql.shuffle.partitions" = "2"
"spark.databricks.delta.snapshotPartitions" = "1"
"""


@dataclass(frozen=True)
class Form:
    """A form of the pipeline: its file, what the file is made of, and where each stage's output gets a batch."""

    pipeline: str
    reads_kafka: bool
    log_entry: str

    def text(self) -> str:
        text = read_example(f"{self.pipeline}.py")
        if self.reads_kafka:
            # Fewer messages a batch than in the demo, whose input is larger.
            text = with_change(text, read_example(RAW_FROM_KAFKA)).replace("1450", "600")
        return text


FORMS = {
    "files": Form("weather", reads_kafka=False, log_entry="_spark_metadata/{batch}"),
    "kafka to files": Form("weather", reads_kafka=True, log_entry="_spark_metadata/{batch}"),
    "kafka to tables": Form("weather_tables", reads_kafka=True, log_entry="_delta_log/{batch:020}.json"),
}


class Pipeline:
    def __init__(self, folder: Path, form: Form) -> None:
        self.folder, self.form = folder, form
        folder.mkdir()
        (folder / f"{form.pipeline}.py").write_text(form.text())
        if form.pipeline != "weather":
            (folder / "weather.py").write_text(read_example("weather.py"))
        (folder / "slackwater.toml").write_text(SETTINGS)
        make_weather.write(folder / "landing", FILES)

    def run(self) -> None:
        arguments = ("run", f"{self.form.pipeline}.py", "--until-caught-up")
        done = warm_python.run(arguments, self.folder, attached(self.folder))
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"

    def kill(self, rotation: int) -> None:
        """Run, and kill when each stage is held at its point."""
        points = [self._path(stream, POINTS[(number + rotation) % len(POINTS)]) for number, stream in enumerate(HELD)]
        kill_when_held(("run", f"{self.form.pipeline}.py"), self.folder, points)

    def _path(self, stream: str, point: str) -> Path:
        checkpoint = self.folder / ".slackwater/streams" / self.form.pipeline / stream / "checkpoints/0001"
        batch = HELD[stream]
        if point == "planning":
            return checkpoint / "offsets" / str(batch)
        if point == "writing" and not (stream == GOLD and self.form.pipeline == "weather_tables"):
            return self.folder / STREAMS[stream] / self.form.log_entry.format(batch=batch)
        # A database has no file that shows when it gets a batch.
        return checkpoint / "commits" / str(batch)

    def rows(self) -> dict[str, Rows]:
        found = {stream: rows_of_sink(self.folder / place) for stream, place in STREAMS.items() if stream != GOLD}
        return found | {GOLD: self._gold()}

    def _gold(self) -> Rows:
        if self.form.pipeline == "weather":
            return rows_of_sink(self.folder / STREAMS[GOLD])
        with psycopg.connect(os.environ["WEATHER_DATABASE"]) as connection:
            table = os.environ["WEATHER_TABLE"]
            rows = connection.execute(f'SELECT day, station, readings, mean_temperature_f FROM "{table}"').fetchall()
        return Counter(map(repr, rows))


@contextmanager
def topic_of_the_input(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A broker with the lines of the input, a partition for each station."""
    make_weather.write(folder / "lines", FILES)
    files = sorted((folder / "lines").iterdir())
    lines = list(chain.from_iterable(file.read_text().splitlines() for file in files))
    with Broker.start(folder / "broker") as broker:
        monkeypatch.setenv("WEATHER_BROKERS", broker.bootstrap_servers)
        create_topic(broker.bootstrap_servers, TOPIC, len(make_weather.STATIONS))
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 3})
        for number, line in enumerate(lines):
            producer.produce(TOPIC, line.encode(), partition=number % len(make_weather.STATIONS))
            producer.poll(0)
        assert producer.flush(60) == 0
        yield


def check(form: Form, folder: Path, rotations: range, monkeypatch: pytest.MonkeyPatch) -> None:
    def pipeline(name: str) -> Pipeline:
        # A table cannot be put elsewhere with its folder: each run has its own.
        monkeypatch.setenv("WEATHER_TABLE", name)
        return Pipeline(folder / name, form)

    whole = pipeline("whole")
    whole.run()
    expected = whole.rows()
    assert all(expected.values()), "every stage writes rows"
    for rotation in rotations:
        killed = pipeline(f"killed_{rotation}")
        killed.kill(rotation)
        assert killed.rows() != expected
        killed.run()
        assert killed.rows() == expected, f"rotation {rotation}"


def test_files_to_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(FORMS["files"], tmp_path, ROTATIONS[:1], monkeypatch)


def test_files_to_files_at_the_other_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(FORMS["files"], tmp_path, ROTATIONS[1:], monkeypatch)


@pytest.mark.kafka
def test_kafka_to_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with topic_of_the_input(tmp_path, monkeypatch):
        check(FORMS["kafka to files"], tmp_path, ROTATIONS, monkeypatch)


@pytest.mark.kafka
def test_kafka_to_delta_to_postgresql(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres: PostgresServer
) -> None:
    monkeypatch.setenv("WEATHER_DATABASE", postgres.url(postgres.new_database()))
    with topic_of_the_input(tmp_path, monkeypatch):
        check(FORMS["kafka to tables"], tmp_path, ROTATIONS, monkeypatch)
