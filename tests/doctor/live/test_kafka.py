"""Failures of a Kafka source, on a real broker."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator

import pytest

from examples.demo.broker import Broker
from tests.doctor.live.frame import FILES, READ, Failure, Scene, Silent, Stops, Stream, prove
from tests.doctor.live.kafka_scene import RECORDS, KafkaScene, make_kafka_stream, uninterrupted
from tests.support.outputs import Rows

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

REMOVED = "('n', '6')"
"""What the rows have in common whose records are removed before they are read."""
FAILS, GOES_ON = '"failOnDataLoss", "true"', '"failOnDataLoss", "false"'


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker for the cases of this module."""
    with Broker.start(tmp_path_factory.mktemp("broker")) as broker:
        yield broker.bootstrap_servers


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory, servers: str) -> Rows:
    """The rows of the uninterrupted query."""
    return uninterrupted(tmp_path_factory.mktemp("whole") / "scene", servers, "whole")


def of_kafka(scene: Scene) -> KafkaScene:
    assert isinstance(scene, KafkaScene)
    return scene


def expired(scene: Scene) -> None:
    """While the stream is stopped, records arrive, and retention removes the oldest of them."""
    scene.arrive(READ, FILES)
    of_kafka(scene).delete_before((READ + 1) * RECORDS)


def expired_unnoticed(scene: Scene) -> None:
    """The query has been told to ignore that."""
    scene.change_code(FAILS, GOES_ON)
    expired(scene)


def recreated(scene: Scene) -> None:
    """The topic is deleted and created again; fewer records arrive than the old one had."""
    of_kafka(scene).recreate()


def reset_by_hand(scene: Scene) -> None:
    """Somebody deletes the checkpoint, and the query starts at the end of the topic."""
    scene.change_code("'startingOffsets', 'earliest'", "'startingOffsets', 'latest'")
    scene.arrive(READ, FILES)
    shutil.rmtree(scene.checkpoint)


def start_changed(scene: Scene) -> None:
    """A release has another start position, as if that moved a query that has read five files."""
    scene.change_code("'startingOffsets', 'earliest'", "'startingOffsets', 'latest'")


def consent(scene: Scene) -> None:
    """Read how many records are lost, and accept the loss, as the advice says."""
    [stream] = json.loads(scene.type("slackwater doctor --format json").stdout)["streams"]
    [found] = stream["findings"]
    assert found["at_stake"] == f"{RECORDS} records"
    text = (scene.folder / "clicks.py").read_text()
    (scene.folder / "clicks.py").write_text(text.replace(FAILS, GOES_ON))


def without_removed(stream: Stream) -> Rows:
    left = Counter({row: times for row, times in stream.rows.items() if REMOVED not in row})
    assert left.total() == stream.rows.total() - RECORDS
    return left


FAILURES = [
    Failure(
        "KAFKA-01", "retention has removed unread records", expired,
        spark=Stops("Some data may have been lost because they are not available in Kafka any more"),
        found="SW-KAFKA-001", risk="loss", goal="backfill", by_hand=consent, typed=("run",),
        expected=without_removed, all_arrived=True,
    ),
    Failure(
        "KAFKA-01", "and Spark leaves them out silently", expired_unnoticed,
        spark=Silent(),
        found="SW-KAFKA-001", risk="loss", goal="backfill", by_hand=consent, typed=("run",),
        expected=without_removed, all_arrived=True,
    ),
    Failure(
        "KAFKA-02", "the topic was created again", recreated,
        spark=Stops("Some data may have been lost because they are not available in Kafka any more"),
        found="SW-KAFKA-002", risk="loss", goal="reset", typed=("plan reset", "apply", "run"),
    ),
    Failure(
        "KAFKA-07", "startingOffsets was changed to rewind", start_changed,
        spark=Silent(),
        found="start-position-ignored", risk="none", goal=None, typed=("run",),
        doctor="slackwater doctor --pipeline clicks.py",
    ),
    Failure(
        "KAFKA-09", "the checkpoint was deleted, and the query starts with latest", reset_by_hand,
        spark=Silent(lacks=(FILES - READ) * RECORDS),
        found="checkpoint-lost", risk="skip", goal="rebuild", typed=("plan rebuild", "apply", "run"),
        all_arrived=True,
    ),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(FAILURES)), ids=[str(failure) for failure in FAILURES])
def test_damaged_kafka(tmp_path_factory: pytest.TempPathFactory, servers: str, rows: Rows, number: int) -> None:
    stream = make_kafka_stream(tmp_path_factory.mktemp("kafka"), servers, f"clicks-{number}", rows)
    prove(stream, FAILURES[number])
