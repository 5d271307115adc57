"""The store of the checkpoint has no atomic rename.

What it finds: the checkpoint is on a store that renames by a copy and a delete, and the last run did not have a
checkpoint file manager that writes without renames.
Why it matters: Spark makes each entry of a log and each file of state by a rename. A driver that dies during the copy
leaves a part of a file under its final name, and of two drivers both can win.
How to confirm: the driver's log has a warning about FileContext and rename() at the start of the query.
What to do: move the checkpoint to HDFS or to a disk that all machines mount. Or, where it is on S3 and no output has a
manifest on another store, add Spark's module `spark-hadoop-cloud` to `spark.jars.packages`, in Spark's own version, and
set `spark.sql.streaming.checkpointFileManagerClass` to
`org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager`, which the module has. Without it the
query does not start (CANNOT_LOAD_CHECKPOINT_FILE_MANAGER).
Is the remedy safe: yes; the files are the same. Stop the query before a checkpoint is copied, and compare the copy
with `slackwater doctor LOCATION --verify`.
References: SPARK-40039; SPARK-19407
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts, HistoryFacts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check

_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_DEFAULT = "the default, which renames"
_WITHOUT_RENAME = "AbortableStreamBased"


class Renames(NamedTuple):
    """The setting, and what the last run had as its value."""

    setting: str
    manager: str


def find(facts: Facts) -> Iterator[Renames]:
    """A checkpoint on such a store whose last run renamed files."""
    history = facts.history
    if facts.checkpoint.atomic_rename or not isinstance(history, HistoryFacts) or not history.runs:
        return
    manager = (history.runs[0].settings or {}).get(_MANAGER, _DEFAULT)
    if _WITHOUT_RENAME not in manager:
        yield Renames(_MANAGER, manager)


CHECK = Check(
    "SW-STORE-001",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="the store of the checkpoint renames a file by a copy, and Spark makes its files by renames: a crash can "
    "leave a part of a file",
    risk="stuck",
    where="{facts.checkpoint.location}",
    expected="{it.setting} with a class that does not rename",
    found="{it.manager}",
    advice="move the checkpoint to HDFS or to a disk that all machines mount; or on S3 add Spark's module "
    "spark-hadoop-cloud to spark.jars.packages, and set {it.setting} to "
    "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager before the next start",
    needs=("renames",),
)
