"""Reads the stack traces of a log: which code has thrown an exception, and what its message says.

This is for exceptions that no table knows by their names. Each trace gives one name that tables can have, such as
``defect in connector`` or ``says unreachable``. The work grows with the length of the text only.

An exception says little of its cause: a ``NullPointerException`` is a defect of the code that throws it. The first
frame that is not of the JDK says whose code that is.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from enum import StrEnum
from functools import cache

from slackwater.diagnose.errors.common.template import Place
from slackwater.diagnose.errors.common.words import CLASS, said_by

_FRAME = re.compile(r"(?:^|[\n\v])[ \t]{0,40}at ([\w.$<>/@+-]{3,300})\(")
_TRACE_FRAMES_MAX = 40
_HEADER_CHARACTERS = 1200
_SHORT_CHARACTERS = 4000
"""A text up to this length is taken for the message itself, not for a log: each line counts."""

_DEFECT = re.compile(
    r"NullPointerException|MatchError|AssertionError|NoSuchElementException|IndexOutOfBoundsException"
    r"|ArithmeticException"
    r"|ClassCastException|NegativeArraySizeException|StackOverflowError|BufferUnderflowException|EmptyStackException"
    r"|IllegalMonitorStateException|UninitializedFieldError|NotImplementedError|ArrayStoreException"
)
_PLAIN = re.compile(r"(?:java\.lang\.)?(?:Runtime|Illegal(?:State|Argument)|UnsupportedOperation)?Exception")
"""Classes that any code throws: they say nothing by themselves."""
_MISUSE = re.compile(r"(?:java\.lang\.)?(?:IllegalArgument|UnsupportedOperation)Exception")
"""Classes that a connector throws at its own calls, where its service is not at fault."""

_VALUES = re.compile(
    r"java\.(?:util\.(?:Base64|UUID|regex)|net\.UR[IL]|lang\.(?:Integer|Long|Double|Boolean|Enum"
    r"|NumberFormatException)\b"
    r"|time\.|nio\.charset)|scala\.concurrent\.duration"
)
"""Code of the JDK that reads a value: where a library calls it, mostly an option is malformed."""

_CAST_OF_VALUE = re.compile(r"java\.(?:lang|util)\.\w+ cannot be cast to (?:class )?java\.(?:lang|util)\.")
_OF_OPTIONS = re.compile(r"Config|Option|Param|Propert|Setting")
"""Classes that read options: what they cannot cast is the value of an option."""

_NO_FAILURE = re.compile(r"\b(?:INFO|DEBUG|TRACE)\b")
_WARNING = re.compile(r"\bWARN(?:ING)?\b")
_FAILURE = re.compile(r"\b(?:ERROR|FATAL|SEVERE|CRITICAL)\b|Caused by: ")
_LINE_START_MAX = 300
_LINE_END_MAX = 600
_NEWEST_MAX = 100
"""How many traces or messages of a part of a log are read: the last ones are the newest failure."""
_WRITES = re.compile(r"[Ww]rit|[Ss]ink|[Cc]ommit|[Ii]nsert|[Uu]psert|[Ss]ave|[Ff]lush|[Bb]ulk|[Uu]pload")


def thrown_places(text: str) -> Iterator[tuple[str, Place]]:
    """The last place of each name that a stack trace, or the message of an error, gives."""
    found: dict[str, Place] = {}
    traces = deque(_traces(text), _NEWEST_MAX)
    for start, end, frames in traces:
        header_start = _header_start(text, start)
        for name in _names_of_trace(text[header_start:start], frames):
            found[name] = Place(header_start, end, {})
    if len(text) <= _SHORT_CHARACTERS or not traces:
        for start, line in _failures(text):
            said = said_by(line)
            if said is not None:
                found[f"says {said}"] = Place(start, start + len(line), {})
    yield from found.items()


def _traces(text: str) -> Iterator[tuple[int, int, list[str]]]:
    """Runs of frames without another line between them: start, end and the first frames."""
    start = end = -1
    frames: list[str] = []
    for match in _FRAME.finditer(text):
        line_end = _end_of_line(text, match.end())
        if frames and match.start() <= end + 1:
            end = line_end
            if len(frames) < _TRACE_FRAMES_MAX:
                frames.append(match[1])
            continue
        if frames:
            yield start, end, frames
        start, end, frames = match.start(), line_end, [match[1]]
    if frames:
        yield start, end, frames


def _end_of_line(text: str, at: int) -> int:
    stop = at + _LINE_END_MAX
    ends = [end for mark in "\n\v" if (end := text.find(mark, at, stop)) >= 0]
    return min(ends, default=min(stop, len(text)))


def _header_start(text: str, at: int) -> int:
    """Where the message before a trace begins: its last paragraph, of bounded length, after any earlier frame."""
    lowest = max(0, at - _HEADER_CHARACTERS)
    above = text[lowest:at].rstrip()
    last_frame = max(above.rfind("\tat "), above.rfind("    at "), above.rfind("\t... "))
    if last_frame >= 0:
        return lowest + min(len(above), _end_of_line(above, last_frame) + 1)
    cause = above.rfind("Caused by: ")
    return lowest + max(cause, 0) if cause >= 0 else lowest + above.rfind("\n") + 1


def _names_of_trace(header: str, frames: list[str]) -> Iterator[str]:
    thrower = next((frame for frame in frames if owner_of(frame) is not Owner.JDK), frames[0])
    owner = owner_of(thrower)
    if "handlePythonException" in thrower:
        yield "thrown by python"
        return
    if owner is Owner.PARSER and _is_called_to_write(frames):
        yield "parser in writing connector"
        return
    classes = CLASS.findall(header)
    exception = classes[-1] if classes else ""
    is_value = _VALUES.match(frames[0]) is not None or "key not found: " in header
    is_value = is_value or (_CAST_OF_VALUE.search(header) is not None and _OF_OPTIONS.search(thrower) is not None)
    if owner is not Owner.PROGRAM and is_value:
        yield "value refused"
        return
    if _DEFECT.search(exception):
        yield f"defect in {owner}"
        return
    said = said_by(header)
    is_own = "." in exception and owner_of(exception) is Owner.PROGRAM
    if is_own or (owner is Owner.PROGRAM and _PLAIN.fullmatch(exception)):
        yield "exception of program"
    elif said is not None:
        yield f"says {said}"
    elif owner is Owner.CONNECTOR and _MISUSE.fullmatch(exception):
        yield f"defect in {owner}"
    elif owner is Owner.CONNECTOR:
        yield "connector fails to write" if any(map(_WRITES.search, frames[:12])) else "connector fails to read"
    elif exception:
        yield f"exception in {owner}"


def _is_called_to_write(frames: list[str]) -> bool:
    """Whether a connector that writes has called the parser of the first frames."""
    caller = next((frame for frame in frames if owner_of(frame) not in {Owner.JDK, Owner.PARSER}), "")
    return owner_of(caller) is Owner.CONNECTOR and any(map(_WRITES.search, frames[frames.index(caller) :][:3]))


def _failures(text: str) -> Iterator[tuple[int, str]]:
    """The messages of errors: each line of a short text, and of a log those that say so, with their positions."""
    if len(text) > _SHORT_CHARACTERS:
        for match in deque(_FAILURE.finditer(text), _NEWEST_MAX):
            start = text.rfind("\n", max(0, match.start() - _LINE_START_MAX), match.start()) + 1 or match.start()
            yield start, text[start : _end_of_line(text, match.end())]
        return
    at = 0
    for line in re.split(r"[\n\v]", text):
        is_warning = _WARNING.search(line[:200]) is not None and not CLASS.search(line)
        if not (is_warning or _NO_FAILURE.search(line[:200]) or line.lstrip().startswith("at ")):
            yield at, line
        at += len(line) + 1


class Owner(StrEnum):
    """Who has written the code of a frame."""

    JDK = "jdk"
    SPARK = "spark"
    CONNECTOR = "connector"
    LIBRARY = "library"
    PARSER = "parser"
    CLIENT = "client"
    DATABASE = "database"
    PROGRAM = "program"


_PREFIXES: dict[Owner, tuple[str, ...]] = {
    Owner.JDK: (
        *("java.", "javax.", "jdk.", "sun.", "com.sun.", "scala.", "kotlin.", "org.apache.spark.util.Utils"),
        *("com.google.common.base.Preconditions", "org.apache.hadoop.thirdparty.com.google.common.base", "java8."),
        *("org.apache.hudi.common.util.ValidationUtils", "org.apache.iceberg.relocated.com.google.common.base"),
    ),
    Owner.SPARK: ("org.apache.spark.", "org.apache.hadoop.", "py4j.", "org.sparkproject.", "org.codehaus.janino."),
    Owner.CONNECTOR: (
        *("org.apache.hudi.", "org.apache.iceberg.", "io.delta.", "org.apache.spark.sql.delta.", "org.apache.paimon."),
        *("org.apache.spark.sql.kinesis.", "org.apache.spark.sql.connector.kinesis.", "org.apache.spark.sql.pulsar."),
        *("org.apache.spark.sql.eventhubs.", "org.apache.spark.eventhubs.", "org.apache.spark.sql.streaming.sqs."),
        *("org.apache.spark.sql.cassandra.", "org.apache.spark.sql.redis.", "org.apache.spark.sql.mlsql."),
        *("org.apache.spark.sql.execution.streaming.http.", "org.apache.spark.streaming.kinesis."),
        *("com.mongodb.", "com.datastax.", "org.elasticsearch.", "org.opensearch.", "com.google.cloud.spark."),
        *("net.snowflake.", "org.neo4j.", "com.clickhouse.", "xenon.clickhouse."),
        *("com.redislabs.", "com.couchbase.", "com.aerospike.", "com.singlestore.", "com.memsql.", "com.vertica."),
        *("org.apache.doris.", "com.starrocks.", "org.apache.phoenix.", "org.apache.kudu.", "org.apache.geode."),
        *("com.azure.cosmos.", "com.microsoft.azure.", "com.microsoft.kusto."),
        *("com.databricks.spark.", "io.github.spark_redshift", "io.pravega.", "org.apache.pulsar.", "io.streamnative."),
        *("org.apache.hadoop.hbase.", "org.apache.hadoop.hive.", "org.apache.ignite.", "com.arangodb.", "io.tiledb."),
        *(
            "com.google.cloud.bigquery.",
            "com.google.cloud.pubsub",
            "com.samelamin.",
            "com.springml.",
            "com.crealytics.",
        ),
        *("za.co.absa.abris.", "za.co.absa.", "it.agilelab.", "com.qubole.", "org.apache.bahir.", "com.hivemq."),
        *("org.apache.rocketmq.", "com.rabbitmq.", "com.solacecoe.", "com.questdb.", "com.influxdb.", "io.qbeast."),
        *("org.apache.seatunnel.", "org.projectnessie.", "org.apache.polaris.", "io.unitycatalog.", "com.dremio."),
        *("org.apache.kyuubi.", "org.apache.gluten.", "com.nvidia.spark.", "io.openlineage.", "za.co.absa.spline."),
        *("datahub.spark", "com.amazon.", "com.amazonaws.glue.", "org.apache.carbondata.", "org.apache.sedona."),
        *("org.graphframes.", "ml.dmlc.", "com.johnsnowlabs.", "com.microsoft.azure.synapse.ml.", "io.projectglow."),
    ),
    Owner.PARSER: (
        *("org.apache.avro.", "org.apache.parquet.", "org.apache.orc.", "com.fasterxml.", "org.json4s.", "org.json."),
        *("com.univocity.", "com.google.protobuf.", "com.google.gson.", "org.yaml.", "org.dom4j.", "net.jpountz."),
        *("com.github.luben.zstd.", "org.xerial.snappy.", "io.confluent.kafka.serializers.", "com.esotericsoftware."),
    ),
    Owner.CLIENT: (
        *("org.apache.kafka.", "kafka.", "kafkashaded.", "org.apache.http.", "org.apache.hc.", "io.netty.", "io.grpc."),
        *("com.amazonaws.", "software.amazon.awssdk.", "okhttp3.", "okio.", "org.apache.zookeeper.", "org.I0Itec."),
        *(
            "io.confluent.kafka.schemaregistry.",
            "com.azure.core.",
            "com.google.api.",
            "reactor.netty.",
            "redis.clients.",
        ),
        *("org.apache.pulsar.client.", "org.apache.qpid.", "io.lettuce.", "org.eclipse.paho.", "org.apache.thrift."),
    ),
    Owner.DATABASE: (
        *("org.postgresql.", "com.mysql.", "org.mariadb.", "oracle.jdbc.", "com.microsoft.sqlserver.", "com.ibm.db2."),
        *("com.clickhouse.jdbc.", "ru.yandex.clickhouse.", "net.snowflake.client.", "com.amazon.redshift.", "org.h2."),
        *("com.simba.", "com.vertica.jdbc.", "com.teradata.", "org.sqlite.", "org.duckdb.", "com.zaxxer.hikari."),
    ),
    Owner.LIBRARY: (
        *("org.apache.", "com.google.", "software.amazon.", "com.azure.", "com.twitter.", "org.slf4j.", "org.rocksdb."),
        *("org.", "reactor.", "rx.", "io.confluent.", "oracle.", "com.ibm.", "net.razorvine.", "consumer.kafka."),
        *("shaded.", "shadeio.", "shadeaws.", "repackaged.", "cosmosdb_connector_shaded.", "com.thoughtworks."),
        *("com.microsoft.", "io.vertx.", "io.micrometer.", "io.prometheus.", "com.typesafe.", "akka.", "cats.", "zio."),
        *("com.databricks.", "jnr.", "javassist.", "net.sf.", "com.sksamuel.", "com.lucidworks.", "io.trino."),
    ),
}


_SHADED = re.compile(r"^[\w.]{0,80}?(?:shaded|repackaged|relocated|thirdparty|shade|_spark)\w*\.")
"""What build tools put before the packages of a library that is packed into a connector."""


@cache
def owner_of(frame: str) -> Owner:
    """The owner of the class and method of a frame, such as ``org.apache.hudi.Writer.write``: the longest prefix.

    A library that a connector has packed under its own name, such as ``azure_cosmos_spark.reactor``, stays a library.
    """
    name = frame.rsplit("/", 1)[-1]
    owner = _by_prefix(name)
    return _by_prefix(_SHADED.sub("", name)) if owner is Owner.PROGRAM else owner


def _by_prefix(name: str) -> Owner:
    found = [
        (len(prefix), owner) for owner, all_of in _PREFIXES.items() for prefix in all_of if name.startswith(prefix)
    ]
    return max(found, default=(0, Owner.PROGRAM))[1]
