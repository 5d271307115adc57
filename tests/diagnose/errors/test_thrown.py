"""Exceptions that no table knows: whose code has thrown them, what their messages say, and what is no failure."""

from __future__ import annotations

import time

import pytest

from slackwater.diagnose.error_texts import recognise
from slackwater.diagnose.errors.common.symptom import Level
from slackwater.diagnose.errors.common.thrown import Owner, owner_of, thrown_places

INFO = "26/11/23 10:00:00 INFO MicroBatchExecution: Committed offsets for batch 41. Metadata OffsetSeqMetadata(0,1)\n"


def _code(text: str) -> str:
    found = recognise(text)
    return found[0].codes[0] if found else "none"


def _names(text: str) -> list[str]:
    return [name for name, _ in thrown_places(text)]


@pytest.mark.parametrize(
    ("frame", "owner"),
    [
        ("java.base/java.util.HashMap.get", Owner.JDK),
        ("scala.Predef$.assert", Owner.JDK),
        ("org.apache.spark.sql.execution.streaming.StreamExecution.run", Owner.SPARK),
        ("org.apache.spark.sql.kinesis.KinesisSource.getOffset", Owner.CONNECTOR),
        ("org.apache.hudi.client.Writer.write", Owner.CONNECTOR),
        ("com.fasterxml.jackson.core.JsonParser.next", Owner.PARSER),
        ("kafka.consumer.ZookeeperConsumerConnector.consume", Owner.CLIENT),
        ("org.postgresql.jdbc.PgStatement.execute", Owner.DATABASE),
        ("com.typesafe.config.Config.get", Owner.LIBRARY),
        ("com.example.orders.Enrich.apply", Owner.PROGRAM),
        ("azure_cosmos_spark.reactor.core.publisher.BlockingSingleSubscriber.blockingGet", Owner.LIBRARY),
        ("my.shaded.org.apache.kafka.clients.Consumer.poll", Owner.CLIENT),
        ("com.example.shaded.Enrich.apply", Owner.PROGRAM),
        ("Main$.main", Owner.PROGRAM),
    ],
)
def test_the_longest_prefix_decides_whose_code_a_frame_is(frame: str, owner: Owner) -> None:
    assert owner_of(frame) is owner


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("java.lang.NullPointerException\n\tat com.example.Enrich.apply(E.scala:5)", "APP-01"),
        (
            (
                "java.lang.ClassCastException: java.util.ArrayList cannot be cast to java.lang.String\n"
                "\tat org.apache.spark.streaming.kafka.KafkaCluster$SimpleConsumerConfig$.apply(K.scala:401)"
            ),
            "APP-09",
        ),
        (
            (
                "java.lang.ClassCastException: java.util.ArrayList cannot be cast to java.lang.String\n"
                "\tat org.apache.spark.sql.catalyst.expressions.Rows.get(R.scala:4)"
            ),
            "VER-06",
        ),
        ("java.lang.IllegalStateException: no rate\n\tat com.example.Enrich.apply(E.scala:5)", "APP-01"),
        ("com.example.RateException: no rate\n\tat com.example.Enrich.apply(E.scala:5)", "APP-01"),
        ("java.lang.NullPointerException\n\tat org.apache.hudi.Writer.x(W.java:5)", "VER-06"),
        (
            "java.util.NoSuchElementException: None.get\n\tat scala.None$.get(O.scala:1)\n\tat io.delta.A.b(A.x:1)",
            "VER-06",
        ),
        ("java.util.NoSuchElementException: key not found: value.id\n\tat za.co.absa.abris.A.b(A.x:1)", "APP-09"),
        (
            (
                "java.lang.IllegalArgumentException: bad\n\tat java.util.Base64$Decoder.x(B.java:1)\n"
                "\tat org.apache.spark.eventhubs.Utils.x(U.scala:1)"
            ),
            "APP-09",
        ),
        ("java.io.IOException: bad block\n\tat org.apache.avro.file.Reader.open(R.java:1)", "APP-05"),
        ("org.vendor.ThingException: no\n\tat org.postgresql.jdbc.PgStatement.x(P.java:1)", "SINK-09"),
        ("org.neo4j.OddException: refused it\n\tat org.neo4j.spark.Writer.commit(W.scala:1)", "SINK-09"),
        ("org.neo4j.OddException: refused it\n\tat org.neo4j.spark.Partition.next(W.scala:1)", "SRC-05"),
        (
            "KeyError: 1\n\n\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(P)",
            "APP-01",
        ),
        ("psycopg2.OperationalError: could not connect", "SRC-05"),
        ("com.vendor.ServerBusyException", "SRC-05"),
        ("com.vendor.IndexNotFoundException: i", "APP-06"),
        ("com.vendor.SchemaMismatchException: i", "SINK-08"),
        ("com.vendor.StreamLoadException: i", "SINK-09"),
        ("ERROR Writer: Cannot commit because: Expected parameter(s): event", "APP-09"),
        ("The server is currently not available", "SRC-05"),
        ("No space was left: disk is full", "STORE-05"),
        ("The field cannot be null", "SINK-08"),
    ],
)
def test_an_unknown_exception_has_a_kind(text: str, code: str) -> None:
    assert _code(text) == code


@pytest.mark.parametrize(
    "text",
    [
        INFO,
        "26/11/23 10:00:00 INFO Client: connection refused, trying the next server\n",
        "26/11/23 10:00:00 DEBUG Client: permission denied by the first of two handlers\n",
        "26/11/23 10:00:00 WARN Utils: Set SPARK_LOCAL_IP if you need to bind to another address, option unset\n",
        "\tat com.example.ConnectionRefused.timeout(C.java:1)\n",
        "hello\n",
        INFO * 100 + "a table was not found\n" + INFO,
    ],
)
def test_what_is_no_message_of_a_failure_is_not_recognised(text: str) -> None:
    assert recognise(text) == ()


def test_words_do_not_count_next_to_a_known_cause() -> None:
    known = "java.lang.IllegalStateException: batch 3 doesn't exist"

    found = recognise(f"ERROR Client: permission denied\n{known}\n\tat a.b(C.java:1)\n")

    assert found[0].codes[0] == "LOG-06"
    assert all(one.level is not Level.WORDS for one in found)


def test_the_words_of_a_message_of_a_query_that_continues_do_not_count() -> None:
    text = "WARN HoodieStreamingSink: Ignore the exception and move on streaming as per option"

    assert [one.codes[0] for one in recognise(text)] == ["STATE-10"]


def test_of_several_traces_each_kind_is_named_once_at_its_last_place() -> None:
    trace = "java.lang.NullPointerException\n\tat com.example.A.b(A.java:1)\n"
    text = trace * 3

    [(name, place)] = list(thrown_places(text))

    assert name == "defect in program"
    assert text[place.start : place.end] == trace.rstrip("\n")


def test_the_class_of_an_exception_is_none_of_its_words() -> None:
    trace = "\n\tat com.microsoft.azure.eventhubs.Link.open(L.java:1)"

    assert _names(f"java.lang.UnsupportedOperationException: it was opened before{trace}") == ["defect in connector"]


@pytest.mark.parametrize(
    "unit", ["Caused by: ", "ERROR permission denied\n", "    at ", "a.b", "\tat a.B.c(D.java:1)\n"]
)
def test_a_long_text_takes_no_longer_for_its_length(unit: str) -> None:
    def seconds(text: str) -> float:
        started = time.perf_counter()
        list(thrown_places(text))
        return time.perf_counter() - started

    text = unit * (200_000 // len(unit))

    assert min(seconds(text * 4) for _ in range(2)) < 12 * max(seconds(text), 0.01)
