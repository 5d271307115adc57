"""What the files of a stream show where one of several causes of an error text is the right one.

The cases name these facts in place of files; ``diagnose.causes`` reads the files themselves.
"""

from collections.abc import Collection, Mapping

from slackwater.diagnose.error_texts import Symptom

FACTS: Mapping[str, str] = {
    "CHG-04": "the sink's log starts after batch 0",
    "CHG-07": "the operators differ from those in the checkpoint",
    "CHG-08": "the number of shuffle partitions in the offset log was edited",
    "CHG-09": "the state store provider in the offset log was edited",
    "DELTA-01": "the table's transaction of this application id is newer than the next batch",
    "DELTA-06": "versions of the source table that are still to be read were cleaned",
    "FSINK-01": "the sink's log is missing or has no compacted entry",
    "FSINK-02": "a compacted entry of the sink's log is missing",
    "FSINK-04": "the sink's log is newer than the checkpoint",
    "FSINK-05": "the newest entry of the sink's log is missing",
    "FSRC-01": "an entry of the file source's log is missing",
    "FSRC-02": "a compacted entry of the file source's log is missing",
    "KAFKA-01": "the next offset is older than the oldest one in the topic",
    "KAFKA-02": "the next offset is newer than the newest one in the topic",
    "KAFKA-04": "a partition of the checkpoint is not in the topics",
    "KAFKA-11": "the topic is compacted or has transactions",
    "LOG-01": "the newest offset entry is empty",
    "LOG-05": "the newest commit entry is empty or damaged",
    "LOG-06": "the offset entry before the newest is missing",
    "LOG-07": "commits are newer than offsets",
    "LOG-15": "the checkpoint has only its metadata file",
    "MODE-03": "offsets and commits have the same gaps",
    "MOVE-04": "the paths in the file source's log are not below the source's path",
    "SHARE-01": "two processes wrote the checkpoint",
    "SHARE-04": "several queries write to the output",
    "STATE-01": "a state file of the needed version is missing",
    "STATE-02": "a state file is empty or damaged",
    "STATE-03": "the state directory is empty",
    "STATE-04": "the zip of the needed version is missing",
    "STATE-05": "an SST file of the needed version is missing or damaged",
    "STATE-07": "a changelog of the needed version is missing",
    "STATE-09": "state of only some partitions has the needed version",
    "STATE-11": "the commits that name the state files are missing",
    "VER-03": "the checkpoint was written by a newer Spark",
}
"""By code of the catalogue."""


def codes_given(symptom: Symptom, facts: Collection[str]) -> tuple[str, ...]:
    """The codes of a symptom, with those first whose fact was seen."""
    return tuple(sorted(symptom.codes, key=lambda code: FACTS.get(code) not in facts))
