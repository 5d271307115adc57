"""Tells causes apart if neither message nor files decide.

The deciding fact is outside: another process's log, a store's permissions, a cluster's jars. Each sign says which place
to check, and for which fact.
"""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.core.commands import command
from slackwater.diagnose.causes import ExplainedError
from slackwater.diagnose.error_texts import Certainty

SIGNS: Mapping[str, str] = {
    "LOG-16": "the program has no checkpointLocation, or another one at each start: the log names a temporary folder",
    "SRC-01": f"the source's oldest position is newer than the checkpoint's: {command('inspect', 'CHECKPOINT')}",
    "SRC-03": "the connector's own files next to the checkpoint do not have the newest batch",
    "SRC-06": "another application, or an older run of this one, reads with the same consumer group",
    "SINK-07": "the table has a commit of another writer at that time: DESCRIBE HISTORY NAME",
    "SHARE-01": "a second driver with the same checkpoint is running: list the applications of the cluster",
    "STORE-03": "only one driver uses the checkpoint, and the next start passes",
    "VER-04": "a jar is for another Spark, Scala or Kafka: ls $SPARK_HOME/jars; spark-submit --verbose",
    "VER-06": "the issue tracker of the code in the first frames has the message, and another release passes",
}
"""By codes that no file of a checkpoint shows."""


def signs_of(error: ExplainedError) -> Mapping[str, str]:
    """Signs of the remaining causes, the likeliest first; empty if text or files decided."""
    left = [cause for cause in error.causes if cause.state != "excluded"]
    is_decided = any(cause.state == "confirmed" for cause in left)
    is_alone = len(left) == 1 and error.symptom.certainty is not Certainty.POSSIBLE
    if is_decided or is_alone:
        return {}
    return {cause.code: SIGNS[cause.code] for cause in left if cause.code in SIGNS}
