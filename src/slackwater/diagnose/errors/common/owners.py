"""Whose code a stack frame is: that of the program, of a connector, of a library, of Spark or of the JDK.

An exception says little of its cause: a ``NullPointerException`` is a defect of the code that throws it. The first
frame that is not of the JDK says whose code that is.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache


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
