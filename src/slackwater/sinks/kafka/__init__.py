"""Kafka topics: by Spark's own sink, at least once, or a transaction per batch, exactly once.

Passwords may leave this package only to a Kafka client.
"""

from slackwater.sinks.common.registry import SinkKind

SINK = SinkKind(
    opener="slackwater.sinks.kafka.sink:open_kafka_output",
    constructor="slackwater.sinks.kafka.sink:kafka",
    exports=("ExactlyOnceKafkaSink", "KafkaSink"),
    entries="slackwater.sinks.kafka.sink:ENTRIES",
    identifying=("kind", "topic", "marker_topic"),
    transient=frozenset({"broker-unreachable", "output-broker-unreachable", "kafka-fenced"}),
    recognise="slackwater.sinks.kafka.sink:recognise",
    connectors={"kafka": "spark-sql-kafka"},
)
