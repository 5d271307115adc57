"""How to tell the causes of a message apart where neither the message nor the files of the stream decide.

A message such as ``ExecutorLostFailure`` is the same for several causes. What decides is outside: the log of another
process, the status of a pod, the configuration of a service. Each sign says where to look and what is found there.
"""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.core.commands import command
from slackwater.diagnose.causes import ExplainedError
from slackwater.diagnose.errors.common.symptom import Certainty

SIGNS: Mapping[str, str] = {
    "APP-01": "the first frames of the trace are the program's own, and the function fails on these rows in a batch",
    "APP-02": "it ended with code 137 or 52, or OOMKilled: kubectl describe pod POD; yarn logs -applicationId ID",
    "APP-03": "it ended for another reason than memory: kubectl describe pod POD; yarn logs -applicationId ID",
    "APP-04": "the query is refused at each start, also when its sources have no new data",
    "APP-05": "the batch fails at each start, and a batch query over its offsets or files fails on the same record",
    "APP-06": "the name in the message is not listed: SHOW TABLES; DESCRIBE TABLE NAME; hdfs dfs -ls PATH",
    "APP-07": "the log has a stop of the query or of the application shortly before the message",
    "APP-08": "java -version, python --version or pip list differ between the driver's and an executor's machine",
    "APP-09": "it fails at each start before the first batch, until the option in the message is changed",
    "APP-11": "the program has no awaitTermination() after start(), and its log has no stop of the query",
    "LOG-16": "the program has no checkpointLocation, or another one at each start: the log names a temporary folder",
    "KAFKA-09": "the program has no startingOffsets, or latest: records from before the first start are not read",
    "SRC-01": f"the source's oldest position is newer than the checkpoint's: {command('inspect', 'CHECKPOINT')}",
    "SRC-03": "the connector's own files next to the checkpoint do not have the newest batch",
    "SRC-05": "the service does not answer on the machine of the driver or executor: nc -vz HOST PORT",
    "SRC-06": "another application, or an older run of this one, reads with the same consumer group",
    "SINK-07": "the table has a commit of another writer at that time: DESCRIBE HISTORY NAME",
    "SINK-08": "a column has another name or type in the table: df.printSchema(); DESCRIBE TABLE NAME",
    "SINK-09": "the log of the sink's service has the refused request, with its reason",
    "SHARE-01": "a second driver with the same checkpoint is running: list the applications of the cluster",
    "STORE-03": "only one driver uses the checkpoint, and the next start passes",
    "STORE-05": "the same user cannot write to the path, or the disk is full: hdfs dfs -touchz PATH; df -h",
    "STORE-08": "the next start passes, and the store's metrics show timeouts, 429 or 503 at that time",
    "VER-04": "a jar is for another Spark, Scala or Kafka: ls $SPARK_HOME/jars; spark-submit --verbose",
    "VER-06": "the issue tracker of the code in the first frames has the message, and another release passes",
}
"""By the codes of the catalogue that no file of a checkpoint shows."""


def signs_of(error: ExplainedError) -> Mapping[str, str]:
    """The signs of the causes that are left, the likeliest first; empty where the text or the files have decided."""
    left = [cause for cause in error.causes if cause.state != "excluded"]
    is_decided = any(cause.state == "confirmed" for cause in left)
    is_alone = len(left) == 1 and error.symptom.certainty is not Certainty.POSSIBLE
    if is_decided or is_alone:
        return {}
    return {cause.code: SIGNS[cause.code] for cause in left if cause.code in SIGNS}
