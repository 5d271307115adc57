"""What a sink checks before its query starts: columns, the broker and its topic, the catalog of a table."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from pyspark.sql.types import BinaryType, DataType, IntegerType, LongType, StringType, StructField, StructType

import slackwater as sw
from examples.demo.broker import Broker
from slackwater.core.errors import PipelineError, StreamFailed
from slackwater.core.sink import WriteContext
from slackwater.runtime.run.failures import classify
from slackwater.sinks.kafka import marked
from tests.support.errors import raises_code

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from slackwater.sinks.common.contract import Sink

CONTEXT = WriteContext("id", "work/one", 1, "append")
SECURED: Mapping[str, Any] = {"kafka.security.protocol": "SASL_SSL"}
"""The broker is not asked with these options, so that only the columns are checked."""


TYPES: Mapping[str, DataType] = {
    "binary": BinaryType(),
    "bigint": LongType(),
    "int": IntegerType(),
    "string": StringType(),
    "struct": StructType([StructField("a", IntegerType())]),
}


def _schema(columns: str) -> StructType:
    """From ``name type, name type``; ``fromDDL`` would need a JVM."""
    pairs = [column.split() for column in columns.split(", ")]
    return StructType([StructField(name, TYPES[kind]) for name, kind in pairs])


def _frame(schema: str, conf: Mapping[str, str] | None = None, table: str | None = None) -> DataFrame:
    """As much of a DataFrame as the checks look at. ``table``: the schema of every table, ``None`` for no tables."""
    session = SimpleNamespace(
        conf=SimpleNamespace(get=(conf or {}).get),
        catalog=SimpleNamespace(tableExists=lambda _: table is not None),
        table=lambda _: SimpleNamespace(schema=_schema(table or "")),
    )
    return cast("DataFrame", SimpleNamespace(schema=_schema(schema), sparkSession=session))


def _refused(sink: Sink, frame: DataFrame) -> PipelineError:
    with pytest.raises(PipelineError) as caught:
        sink.check(frame, CONTEXT)
    return caught.value


@pytest.mark.parametrize(
    "schema", ["value string", "VALUE binary, key string, other int", "key binary, value string, partition int"]
)
def test_kafka_takes_these_columns(schema: str) -> None:
    sw.sinks.kafka("clicks", bootstrap_servers="nosuch:9092", **SECURED).check(_frame(schema), CONTEXT)


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ("page string", "page"),
        ("value int", "value: int"),
        ("value string, key struct", "key: struct"),
        ("value string, partition bigint", "partition: bigint"),
        ("value string, headers string", "headers: string"),
    ],
)
def test_kafka_refuses_these_columns(schema: str, found: str) -> None:
    error = _refused(sw.sinks.kafka("clicks", bootstrap_servers="nosuch:9092", **SECURED), _frame(schema))

    assert error.code == "sink-schema"
    assert found in str(error.found)


def test_a_broker_that_does_not_answer_may_do_so_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marked, "WAIT_S_MAX", 1.0)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        servers = f"127.0.0.1:{unused.getsockname()[1]}"
    with raises_code(StreamFailed, "broker-unreachable") as caught:
        sw.sinks.kafka("clicks", bootstrap_servers=servers).check(_frame("value string"), CONTEXT)

    assert classify(caught.value).kind == "transient"


@pytest.mark.kafka
def test_a_topic_that_the_broker_does_not_create(broker: Broker) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic  # noqa: PLC0415

    sink = sw.sinks.kafka("clicks", bootstrap_servers=broker.bootstrap_servers)
    assert _refused(sink, _frame("value string")).code == "kafka-topic"

    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic("clicks", 1, 1)])["clicks"].result(30)
    sink.check(_frame("value string"), CONTEXT)


HIVE = {"spark.sql.catalogImplementation": "hive"}


def test_a_table_that_the_next_run_would_not_know_is_refused(tmp_path: Path) -> None:
    assert _refused(sw.sinks.table("clicks"), _frame("n int")).code == "table-catalog"

    sw.sinks.table("clicks", path=str(tmp_path)).check(_frame("n int"), CONTEXT)
    sw.sinks.table("clicks").check(_frame("n int", HIVE), CONTEXT)
    sw.sinks.table("clicks", format="delta").check(_frame("n int"), CONTEXT)


def test_a_table_with_other_columns_is_refused() -> None:
    sink = sw.sinks.table("clicks")
    sink.check(_frame("n int, page string", HIVE, table="page string, N int"), CONTEXT)

    error = _refused(sink, _frame("n int, page string", HIVE, table="n bigint, page string"))
    assert (error.code, error.expected, error.found) == ("sink-schema", "n: bigint", "n: int")
    assert _refused(sink, _frame("n int", HIVE, table="n int, page string")).found == "page: no such column"
