"""Delta tables: each batch is a commit with its number, so a repeated batch is skipped."""

from slackwater.sinks.common.registry import SinkKind

SINK = SinkKind(
    opener="slackwater.sinks.delta.sink:open_delta_output",
    constructor="slackwater.sinks.delta.sink:delta",
    exports=("DeltaSink",),
    entries="slackwater.sinks.delta.sink:ENTRIES",
    log_folder="_delta_log",
    connectors={"delta": "delta-spark"},
    # What the documentation of Delta Lake has a session set.
    session_settings={
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
)
