"""Spark's file sink: data files in a directory, and the manifest of valid files."""

from slackwater.formats.compactible import SINK_LOG
from slackwater.sinks.common.registry import SinkKind

SINK = SinkKind(
    opener="slackwater.sinks.files.sink:open_files_output",
    constructor="slackwater.sinks.files.sink:files",
    exports=("FilesSink",),
    entries="slackwater.sinks.files.sink:ENTRIES",
    log_folder=SINK_LOG,
    recognise="slackwater.sinks.files.sink:recognise",
    connectors={"avro": "spark-avro"},
)
