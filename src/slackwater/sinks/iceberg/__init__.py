"""Iceberg tables: a batch is staged, then published with its number in one commit."""

from slackwater.sinks.common.registry import SinkKind

SINK = SinkKind(
    opener="slackwater.sinks.iceberg.output:open_iceberg_output",
    constructor="slackwater.sinks.iceberg.sink:iceberg",
    exports=("IcebergSink",),
    entries="slackwater.sinks.iceberg.output:ENTRIES",
    transient=frozenset({"iceberg-conflict", "iceberg-busy", "iceberg-commit", "iceberg-unreachable"}),
    log_folder="metadata",
    connectors={"iceberg": "iceberg-spark-runtime"},
    # What the documentation of Apache Iceberg has a session set.
    session_settings={"spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"},
)
