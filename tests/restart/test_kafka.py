"""The restart tests on a real Kafka broker: three partitions, ``subscribe``, ``maxOffsetsPerTrigger``."""

import json
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from examples.demo.broker import Broker
from tests.restart.scenario import AGGREGATES, CONF, ROWS_A_BATCH, SCHEMA, STREAM, Workspace, readings
from tests.restart.small import error_code, tree
from tests.restart.test_files import KILLED, POINTS, kill_at
from tests.support.kafka_login import PASSWORD, USER, guarded_broker
from tests.support.kafka_topics import records

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(1200)]

PARTITIONS = 3
KEYS = 2
SKEW = (0, 0, 0, 1, 1, 2)


class KafkaClicks:
    """All rows are there from the start, unevenly spread; ``maxOffsetsPerTrigger`` makes the batches."""

    def __init__(self, bootstrap_servers: str, topic: str, **options: str) -> None:
        self._servers = bootstrap_servers
        self._topic = topic
        self._options = options
        self.condition: str | None = None
        """Of the rows that the query reads, for a pipeline file that is written after it is set."""

    def lay_down(self, folder: Path) -> None:  # noqa: ARG002 - the topic is no file
        """Create the topic and fill it, unless another workspace has."""
        admin = AdminClient({"bootstrap.servers": self._servers})
        if self._topic in admin.list_topics(timeout=30).topics:
            return
        self._create(readings())

    def _create(self, batches: Iterable[list[dict[str, object]]]) -> None:
        admin = AdminClient({"bootstrap.servers": self._servers})
        admin.create_topics([NewTopic(self._topic, PARTITIONS, 1)])[self._topic].result(30)
        producer = Producer({"bootstrap.servers": self._servers})
        for number, row in enumerate(row for rows in batches for row in rows):
            partition = SKEW[number % len(SKEW)]
            producer.produce(self._topic, json.dumps(row).encode(), str(number % KEYS), partition)
        assert producer.flush(30) == 0

    def create_again(self, times: int = 0) -> None:
        """Delete the topic and create it again, with fewer records than it had, or with all of them several times."""
        admin = AdminClient({"bootstrap.servers": self._servers})
        admin.delete_topics([self._topic], operation_timeout=30)[self._topic].result(30)
        deadline = time.monotonic() + 30
        # The broker deletes the topic after it has answered.
        while self._topic in admin.list_topics(timeout=30).topics:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        self._create([*readings()] * times or list(readings())[:1])

    def compact(self) -> None:
        """Have the broker keep the newest record of each key only; no offset of an oldest record or an end changes."""
        admin = AdminClient({"bootstrap.servers": self._servers})
        settings = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0"}
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()
        ]
        [altered] = admin.incremental_alter_configs(
            [ConfigResource(ResourceType.TOPIC, self._topic, incremental_configs=entries)]
        ).values()
        altered.result(30)
        deadline, before = time.monotonic() + 60, len(records(self._servers, self._topic))
        # Only segments that have ended are compacted, and a segment ends when a record comes after its time.
        while len(records(self._servers, self._topic)) > before // 2:
            assert time.monotonic() < deadline
            self._produce_late()
            time.sleep(0.5)

    def _produce_late(self) -> None:
        """One record of each key in each partition."""
        producer = Producer({"bootstrap.servers": self._servers})
        late = json.dumps(next(iter(readings()))[0]).encode()
        for partition in range(PARTITIONS):
            for key in range(KEYS):
                producer.produce(self._topic, late, str(key), partition)
        assert producer.flush(30) == 0

    def allow(self, user: str) -> None:
        """Let a user read the topic, as a query with any group."""
        admin = AdminClient({"bootstrap.servers": self._servers})
        kinds = ((ResourceType.TOPIC, self._topic), (ResourceType.GROUP, "*"))
        rules = [
            AclBinding(
                kind, name, ResourcePatternType.LITERAL, f"User:{user}", "*", AclOperation.READ, AclPermissionType.ALLOW
            )
            for kind, name in kinds
        ]
        for created in admin.create_acls(rules).values():
            created.result(30)

    def delete_before(self, positions: Mapping[str, int]) -> None:
        """Have the broker remove everything before an offset of each partition, as its retention does."""
        ends = [TopicPartition(self._topic, int(partition), offset) for partition, offset in positions.items()]
        admin = AdminClient({"bootstrap.servers": self._servers})
        for removed in admin.delete_records(ends).values():
            removed.result(30)

    def source(self) -> str:
        """A subscription whose values are parsed as the files are."""
        options = {
            "kafka.bootstrap.servers": self._servers,
            "subscribe": self._topic,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(ROWS_A_BATCH),
            **self._options,
        }
        given = "".join(f".option({name!r}, {value!r})" for name, value in options.items())
        parsed = f'F.from_json(F.col("value").cast("string"), "{SCHEMA}").alias("row")'
        kept = f".filter({self.condition!r})" if self.condition else ""
        return f'spark.readStream.format("kafka"){given}.load().select({parsed}).select("row.*"){kept}'


TOPIC = "clicks"
LOSES_ITS_CHECKPOINT = "between offset and sink write"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker.start(tmp_path_factory.mktemp("broker"), settings={"log.cleaner.backoff.ms": "100"}) as broker:
        yield broker


@pytest.fixture(scope="module")
def clicks(broker: Broker) -> KafkaClicks:
    return KafkaClicks(broker.bootstrap_servers, TOPIC)


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory, clicks: KafkaClicks) -> Workspace:
    workspace = Workspace(tmp_path_factory.mktemp("kafka"), clicks)
    workspace.run()
    return workspace


@pytest.mark.parametrize(
    "point", [pytest.param(one, marks=() if one == LOSES_ITS_CHECKPOINT else pytest.mark.thorough) for one in POINTS]
)
def test_killed_and_rebuilt_is_as_if_uninterrupted(
    point: str, tmp_path_factory: pytest.TempPathFactory, clicks: KafkaClicks, baseline: Workspace
) -> None:
    workspace = Workspace(tmp_path_factory.mktemp("killed"), clicks)
    kill_at(workspace, point)
    written = workspace.written()
    if point == LOSES_ITS_CHECKPOINT:
        shutil.rmtree(workspace.checkpoint)

    position = json.loads(workspace.slackwater("offsets", STREAM).stdout)
    plan = workspace.rebuild()
    workspace.run()

    assert plan["facts"]["target"] == written
    assert 0 < plan["facts"]["contributing"] < written
    assert position == json.loads((baseline.checkpoint / "offsets" / str(written)).read_text().split("\n")[2])
    assert workspace.rows() == baseline.rows()


@pytest.mark.thorough
def test_a_cut_whose_input_the_broker_has_removed_is_refused(
    tmp_path_factory: pytest.TempPathFactory, broker: Broker
) -> None:
    clicks = KafkaClicks(broker.bootstrap_servers, "short-lived")
    workspace = Workspace(tmp_path_factory.mktemp("removed"), clicks)
    workspace.run()
    workspace.slackwater("plan", "rebuild", STREAM, "--at", f"batch:{KILLED}", "--out", "plan.json")
    rows, before = workspace.rows(), tree(workspace.output) | tree(workspace.stream_folder / "checkpoints")
    removed = json.loads((workspace.checkpoint / "offsets" / str(KILLED + 2)).read_text().split("\n")[2])["short-lived"]
    clicks.delete_before(removed)

    refused = workspace.slackwater("apply", "plan.json", "--yes", *CONF, code=5)

    assert error_code(refused) == "source-rows-lost"
    assert "short-lived-0: offsets" in refused.stderr
    assert f"the oldest that is left is {removed['0']}" in refused.stderr
    assert "restore" in refused.stderr
    assert tree(workspace.output) | tree(workspace.stream_folder / "checkpoints") == before
    workspace.slackwater("status")
    workspace.run()
    assert workspace.rows() == rows


def test_a_topic_that_was_created_again_is_not_replayed_with_other_code(
    tmp_path_factory: pytest.TempPathFactory, broker: Broker
) -> None:
    clicks = KafkaClicks(broker.bootstrap_servers, "created-again", failOnDataLoss="false")
    workspace = Workspace(tmp_path_factory.mktemp("created-again"), clicks)
    workspace.run()
    rows = workspace.rows()
    clicks.condition = "n < 100"
    workspace.write_pipeline(AGGREGATES)

    workspace.rebuild()
    workspace.run()
    assert workspace.rows() == rows, "no record is missing"

    clicks.condition = "n < 1000"
    workspace.write_pipeline(AGGREGATES)
    workspace.slackwater("plan", "rebuild", STREAM, "--out", "plan.json", "--force")
    clicks.create_again()
    before = tree(workspace.output) | tree(workspace.stream_folder / "checkpoints")

    refused = workspace.slackwater("apply", "plan.json", "--yes", *CONF, code=5)

    assert error_code(refused) == "source-rows-lost"
    assert "created-again-0: offsets" in refused.stderr
    assert "the topic was created again or truncated" in refused.stderr
    assert tree(workspace.output) | tree(workspace.stream_folder / "checkpoints") == before


def test_a_compacted_topic_is_not_replayed_with_other_code(
    tmp_path_factory: pytest.TempPathFactory, broker: Broker
) -> None:
    clicks = KafkaClicks(broker.bootstrap_servers, "compacted")
    workspace = Workspace(tmp_path_factory.mktemp("compacted"), clicks)
    workspace.run()
    clicks.condition = "n < 1000"
    workspace.write_pipeline(AGGREGATES)
    clicks.compact()
    workspace.slackwater("plan", "rebuild", STREAM, "--out", "plan.json", "--force")
    before = tree(workspace.output) | tree(workspace.stream_folder / "checkpoints")

    refused = workspace.slackwater("apply", "plan.json", "--yes", *CONF, code=5)

    assert error_code(refused) == "rows-differ"
    assert "A read of source 0 of batch 0 read" in refused.stderr
    assert "restore the source's data" in refused.stderr
    assert tree(workspace.output) | tree(workspace.stream_folder / "checkpoints") == before


@pytest.mark.thorough
def test_a_topic_that_was_created_again_with_more_records_refuses_the_start(
    tmp_path_factory: pytest.TempPathFactory, broker: Broker
) -> None:
    clicks = KafkaClicks(broker.bootstrap_servers, "more-records")
    workspace = Workspace(tmp_path_factory.mktemp("more-records"), clicks)
    workspace.run()
    assert _status(workspace)["verdict"]["code"] == "clean"
    clicks.create_again(2)

    refused = workspace.slackwater("run", "clicks.py", "--until-caught-up", *CONF, code=5)
    status = _status(workspace, 5)

    assert error_code(refused) == "SW-KAFKA-003"
    assert "expected topic id" in refused.stderr
    assert "starting Spark" not in refused.stderr
    assert (status["verdict"]["code"], status["not_compared"]) == ("SW-KAFKA-003", [])
    options = "--master 'local[2]' --conf spark.sql.shuffle.partitions=2"
    assert status["next"] == f"slackwater plan reset web/{STREAM} --from earliest --output keep {options}"
    doctor = json.loads(workspace.slackwater("doctor", STREAM, "--format", "json", code=1).stdout)
    assert doctor["streams"][0]["findings"][0]["code"] == "SW-KAFKA-003"


def test_brokers_that_need_credentials_are_asked_by_the_query_that_starts(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with guarded_broker(tmp_path_factory.mktemp("guarded")) as broker:
        login = {
            "kafka.bootstrap.servers": broker.guarded,
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'username="{USER}" password="{PASSWORD}";',
        }
        clicks = KafkaClicks(broker.servers, "guarded", **login)
        workspace = Workspace(tmp_path_factory.mktemp("guarded-clicks"), clicks)
        clicks.allow(USER)
        first = workspace.slackwater("run", "clicks.py", "--until-caught-up", *CONF)
        again = workspace.slackwater("run", "clicks.py", "--until-caught-up", *CONF)
        status = _status(workspace)
        clicks.create_again(2)
        refused = workspace.slackwater("run", "clicks.py", "--until-caught-up", *CONF, code=5)

    assert "not compared" not in first.stderr + again.stderr
    assert "credentials are not recorded" in status["not_compared"][0]
    assert error_code(refused) == "SW-KAFKA-003"
    assert "expected topic id" in refused.stderr
    assert PASSWORD not in first.stderr + again.stderr + refused.stderr


def _status(workspace: Workspace, code: int = 0) -> dict[str, Any]:
    printed = workspace.slackwater("status", STREAM, "--format", "json", code=code).stdout
    status: dict[str, Any] = json.loads(printed)["streams"][0]
    return status
