"""The catalogue of failures: codes, titles, and how they are met without a finding.

``docs/reference/coverage.md`` is made of it. ``SW-LOG-006`` finds ``LOG-06``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

How = Literal["plan", "run", "not-detectable"]


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure without a finding; ``how``: ``plan`` and ``run`` refuse or prevent it.

    ``text`` says by which code, or why it is undetectable.
    """

    title: str
    how: How | None = None
    text: str = ""


def _run(title: str, text: str) -> Failure:
    return Failure(title, "run", text)


def _reported(title: str, *codes: str) -> Failure:
    return _run(title, f"reported as {', '.join(f'`{code}`' for code in codes)}")


def _hidden(title: str, text: str) -> Failure:
    return Failure(title, "not-detectable", text)


CATALOGUE: Mapping[str, Failure] = {
    "LOG-01": Failure("The newest entry of offsets/ is empty"),
    "LOG-02": Failure("The newest entry of offsets/ has only its version"),
    "LOG-03": Failure("An entry of offsets/ or commits/ is malformed"),
    "LOG-04": Failure("A log was written by a newer Spark"),
    "LOG-05": Failure("The newest entry of commits/ is empty or malformed"),
    "LOG-06": Failure("The entry before the newest one in offsets/ is missing"),
    "LOG-07": Failure("commits/ is ahead of offsets/"),
    "LOG-08": Failure("The newest batch is not committed: a usual crash"),
    "LOG-09": Failure("More than one batch is not committed"),
    "LOG-10": Failure("Old entries are missing"),
    "LOG-11": Failure("An entry of offsets/ was edited"),
    "LOG-12": Failure("The file metadata is missing"),
    "LOG-13": Failure("The file metadata is malformed"),
    "LOG-14": Failure("The query id is not the one that the sink knows"),
    "LOG-15": Failure("The checkpoint has only the file metadata"),
    "LOG-16": _run("A query has no checkpoint location", "`run` gives each stream a checkpoint in the home"),
    "LOG-17": _reported("The sink cannot continue from a checkpoint", "memory-restart"),
    "LOG-18": Failure("An entry of a log is a copy of an older one"),
    "LOG-19": Failure("A pinned setting changes from one batch to the next"),
    "SHARE-01": _run(
        "Two drivers use one checkpoint",
        "`lease-held` between runs; of other drivers the slower one fails, and says so",
    ),
    "SHARE-02": _reported("A session starts the query of a checkpoint twice", "lease-held"),
    "SHARE-03": Failure("Two different queries use one checkpoint"),
    "SHARE-04": Failure("Two queries write to one output"),
    "SHARE-05": _reported("Two queries of a session have one name", "stream-duplicate"),
    "SHARE-06": _run(
        "Two Delta sources share a schema location", "Delta refuses it: DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT"
    ),
    "MOVE-01": Failure("The checkpoint was moved or copied alone"),
    "MOVE-02": Failure("The copy of a checkpoint is not consistent"),
    "MOVE-03": Failure("The output of a file sink was moved"),
    "MOVE-04": _run("The folder of a file source was moved", "`sources-changed`, also by `doctor --pipeline`"),
    "MOVE-05": Failure("The scheme or authority of a path changed"),
    "MOVE-06": _run("A checkpoint of Spark 2 has an escaped path", "Spark refuses to start, and names both folders"),
    "MOVE-07": Failure("A copy left out files whose names begin with a dot or an underscore"),
    "FSINK-01": Failure("The manifest of a file sink is missing"),
    "FSINK-02": Failure("A compacted entry of the manifest is missing"),
    "FSINK-03": Failure("An entry of the manifest is empty or malformed"),
    "FSINK-04": Failure("The file sink is ahead of the checkpoint"),
    "FSINK-05": Failure("The file sink is behind the checkpoint"),
    "FSINK-06": Failure("A data file that the manifest lists is gone"),
    "FSINK-07": Failure("Readers do not use the manifest"),
    "FSINK-08": Failure("A batch job has overwritten the output directory"),
    "FSINK-09": Failure("The manifest grows without end"),
    "FSINK-10": _run(
        "The compaction interval of the manifest changed", "Spark derives a compatible interval; nothing is lost"
    ),
    "FSINK-11": _reported(
        "The output mode or the schema of a file sink changed", "output-mode", "output-schema-changed"
    ),
    "FSRC-01": Failure("The newest entry of a source's log is missing"),
    "FSRC-02": Failure("A compacted entry of a source's log is missing"),
    "FSRC-03": Failure("A planned file was deleted before its batch ran"),
    "FSRC-04": _hidden("A file was deleted before it was planned", "no log has ever named the file"),
    "FSRC-05": Failure("A file that was read has been replaced"),
    "FSRC-06": Failure("A late file is older than maxFileAge"),
    "FSRC-07": _run(
        "maxFileAge or latestFirst changed",
        "Spark knows the files that it has read from its log; those that are too old are `SW-FSRC-006`, and "
        "`source-files-too-old` where batches have read them",
    ),
    "FSRC-08": _reported("fileNameOnly was switched", "source-options-changed"),
    "FSRC-09": Failure("cleanSource has removed files that a replay needs"),
    "FSRC-10": Failure("The source is the output of another stream"),
    "FSRC-11": Failure("A rollback left the source's log as it was"),
    "FSRC-12": Failure("An older entry of a source's log is missing"),
    "FSRC-13": Failure("Entries of a source's log list different files for one number"),
    "KAFKA-01": Failure("Retention has removed offsets that the next batch needs"),
    "KAFKA-02": Failure("A topic was created again and ends before the checkpoint"),
    "KAFKA-03": Failure("A topic was created again and has more records than before"),
    "KAFKA-04": Failure("Partitions or topics disappeared"),
    "KAFKA-05": Failure("Partitions or topics were added"),
    "KAFKA-06": _reported("Other topics are subscribed", "sources-changed"),
    "KAFKA-07": _run("startingOffsets changed and has no effect", "in the code, by `check` and `doctor --pipeline`"),
    "KAFKA-08": _run(
        "startingOffsets does not name each partition",
        "positions are set by `plan reset`, never by this option",
    ),
    "KAFKA-09": _run("A reset with startingOffsets=latest", "`plan reset --from` sets the positions"),
    "KAFKA-10": _run("The group id is fixed", "Spark's own message names it; partitions that are gone are `data-loss`"),
    "KAFKA-11": _hidden(
        "Offsets of a compacted or transactional topic are no rows",
        "a broker does not tell how many records it has removed",
    ),
    "KAFKA-12": _run("Topics changed during an available-now run", "the run is started again: a transient failure"),
    "KAFKA-13": Failure("A planned batch is larger than its new limit"),
    "KAFKA-14": Failure("The topics are on another cluster"),
    "KAFKA-15": Failure("The log of a topic was cut at its end"),
    "CHG-01": _reported("The number of sources changed", "sources-changed"),
    "CHG-02": Failure("The order of the sources changed"),
    "CHG-03": _reported("A source is of another kind", "sources-changed", "source-format-changed"),
    "CHG-04": _reported("The sink changed", "sink-changed"),
    "CHG-05": _reported("The schema of state changed", "state-schema-changed", "aggregates-changed"),
    "CHG-06": _run(
        "The meaning of state changed, and its schema did not",
        "`check`: `window-changed`, `aggregates-changed`, `function-changed`",
    ),
    "CHG-07": _run(
        "A stateful operator was added, removed or replaced", "`check` and `run` compare the code: `operators-changed`"
    ),
    "CHG-08": Failure("The number of shuffle partitions was changed, in the session or in offsets/"),
    "CHG-09": Failure("The state store provider was changed, in the session or in offsets/"),
    "CHG-10": Failure("The watermark policy was changed in the session"),
    "CHG-11": Failure("The state of an outer join has the old format"),
    "CHG-12": _reported("The state of an arbitrary function changed", "function-changed", "state-schema-changed"),
    "CHG-13": _reported("A state variable changed", "state-schema-changed"),
    "CHG-14": _hidden(
        "Pickled values in state cannot be read by another Python", "they are bytes for Spark and for every tool"
    ),
    "CHG-15": _reported("The columns of a deduplication changed", "dedup-kind-changed", "state-schema-changed"),
    "CHG-16": _reported("A limit changed", "operators-changed"),
    "CHG-17": _reported("A named source was renamed", "sources-changed"),
    "CHG-18": _run("Options of a rate source changed", "Spark refuses another number of partitions, and names it"),
    "STATE-01": Failure("A delta or snapshot of state is missing"),
    "STATE-02": Failure("A file of state is empty or damaged"),
    "STATE-03": Failure("All state was deleted"),
    "STATE-04": Failure("A version of a RocksDB store is missing"),
    "STATE-05": Failure("A table of a RocksDB store is missing or has another size"),
    "STATE-06": Failure("Schema or operator metadata of state is missing or damaged"),
    "STATE-07": _run("Changelog checkpointing was switched", "Spark reads both forms; nothing is lost"),
    "STATE-08": Failure("Tables of a RocksDB store do not belong together"),
    "STATE-09": Failure("Only some partitions have committed their state"),
    "STATE-10": Failure("A batch function has swallowed an error"),
    "STATE-11": Failure("The ids of state versions are lost"),
    "STATE-12": _run("A state store has no memory, or is locked", "a transient failure: the run is started again"),
    "STATE-13": Failure("The stores of a join have different versions"),
    "STATE-14": Failure("State is left under a new query"),
    "STATE-15": Failure("Versions of state between others are missing"),
    "STATE-16": _hidden(
        "A file of state is a copy of an older one",
        "without checksum, only a changelog of format 2 names its version; batches may well write the same bytes",
    ),
    "WM-01": Failure("Rows come late after a replay"),
    "WM-02": _reported("The windows of the only batch are not written", "no-data-batch-pending"),
    "WM-03": Failure("An idle source keeps the watermark"),
    "WM-04": _run("The delay of a watermark changed", "in the code, by `check` and `run`"),
    "WM-05": Failure("A commit has no watermark"),
    "WM-06": Failure("A timestamp in the future has moved the watermark"),
    "WM-07": _reported("Stateful operators follow each other in an old Spark", "query-refused"),
    "WM-08": Failure("A commit and the next batch have different watermarks"),
    "WM-09": Failure("State is never removed: no watermark, or its column is not part of the key"),
    "WM-10": Failure("The watermark drops rows as late"),
    "VER-01": Failure("A log has a version that this Spark cannot read"),
    "VER-02": Failure("A newer Spark continues"),
    "VER-03": Failure("An older Spark continues"),
    "VER-04": _reported("A connector is for another Spark", "connector-not-locked", "pipeline-connectors"),
    "VER-05": _hidden(
        "The runtime of a vendor has written the checkpoint", "fields of vendors are kept and not interpreted"
    ),
    "VER-06": _hidden(
        "A defect of Spark or of a connector",
        "the checkpoint may be intact: look for the message among the known issues, and use a release without it",
    ),
    "SINK-01": Failure("The checkpoint was deleted, and the output was kept"),
    "SINK-02": Failure("The output was deleted, and the checkpoint was kept"),
    "SINK-03": Failure("A batch function is not idempotent"),
    "SINK-04": Failure("A JDBC sink appends"),
    "SINK-05": Failure("Spark's Kafka sink writes at least once"),
    "SINK-06": Failure("Batch ids begin again under a sink that remembers them"),
    "SINK-07": _run(
        "Another writer changed the table at the same time",
        "the batch was not committed, and runs again at the next start; separate the writers",
    ),
    "DELTA-01": Failure("A txnAppId is used again after a reset"),
    "DELTA-02": _hidden("Two writes of a batch have one transaction id", "the second leaves no trace in the table"),
    "DELTA-03": _hidden("Transaction settings are left in the session", "the writes that were skipped leave no trace"),
    "DELTA-04": Failure("Delta's own sink does not know the batch any more"),
    "DELTA-05": Failure("The source table was created again"),
    "DELTA-06": Failure("The log of the source table was cleaned"),
    "DELTA-07": _run(
        "The source table has another schema, or rows of it were changed",
        "Delta's own message; a restart takes a new schema, and stops again at rows that were deleted or updated: "
        "skipChangeCommits leaves these out, a reset reads the table again",
    ),
    "SRC-01": _hidden(
        "A source no longer has the position in the checkpoint",
        "only the connector can read it (Iceberg, Hudi, Kinesis, Event Hubs, Pulsar, MongoDB); its message says so",
    ),
    "SRC-02": _hidden("Rows of an Iceberg source were changed", "only the connector reads the snapshots; it refuses"),
    "SRC-03": _hidden(
        "A connector has lost its own record of a batch", "the record is outside the logs of Spark; its message says so"
    ),
    "SRC-04": _hidden(
        "The records of a source have new fields", "only the connector compares them; a restart takes the new schema"
    ),
    "SRC-06": _run(
        "Another reader has taken a partition of the source",
        "the batch was not committed, and runs again at the next start; give each query its own consumer group",
    ),
    "STORE-01": Failure("The store has no atomic rename"),
    "STORE-02": Failure("A rename was reported, and the file is absent"),
    "STORE-03": _run(
        "A rename found its target", "`checkpoint-shared`, or a transient failure: the run is started again"
    ),
    "STORE-04": Failure("A lifecycle rule has removed files"),
    "STORE-05": _reported("No permission, no quota or no space", "disk-full", "cannot-write"),
    "STORE-06": Failure("A checkpoint on a local disk is used by a cluster"),
    "STORE-07": Failure("A tool has left files in a log"),
    "MODE-01": _run("Trigger once leaves new data", "`run --until-caught-up` runs available-now"),
    "MODE-02": _reported("Asynchronous progress tracking is not supported here", "query-refused"),
    "MODE-03": Failure("Asynchronous progress tracking was switched off"),
    "MODE-04": Failure("A continuous query becomes a micro-batch query"),
    "MODE-05": _run("A task of a continuous query failed", "the run is started again; `at-least-once`"),
    "MODE-06": _reported("Real-time mode does not take the checkpoint", "query-refused"),
    "MODE-07": Failure("A batch was skipped by hand"),
    "APP-10": Failure("A batch takes longer than its rows take to arrive"),
    "APP-12": Failure("Batches take longer than the interval of their trigger"),
}
