"""State files that are missing or damaged, and state stores that cannot be used (STATE-*)."""

from __future__ import annotations

from slackwater.diagnose.errors.common.symptom import Certainty, ErrorText, Level, Near

_STATE = ("StateStore", "/state/", "STATE_STORE", "RocksDB")
_STORE_DIRECTORY = "<path>/state/<operator>/<partition>"


def _missing(file: str) -> tuple[str, ...]:
    """The texts of Hadoop's file systems for a state file that does not exist, with and without a store's name."""
    return tuple(
        text
        for name in (f"{_STORE_DIRECTORY}/{file}", f"{_STORE_DIRECTORY}/<store>/{file}")
        for text in (
            f"File {name} does not exist",
            f"File does not exist: {name}",
            f"No such file or directory: {name}",
        )
    )


_FIRST = ("CHG-07", "STATE-03", "STATE-09", "CHG-08", "STATE-01", "STORE-01", "STORE-06")
"""What it means if version 1 is missing: the partition had no state, or has lost all of it."""

GROUP = (
    ErrorText(
        "first-delta-missing",
        _FIRST,
        (
            f"Error reading delta file {_STORE_DIRECTORY}/1.delta of <any> does not exist",
            f"Error reading delta file {_STORE_DIRECTORY}/<store>/1.delta of <any> does not exist",
            *_missing("1.delta"),
        ),
        near=(Near(("s3a://", "s3n://", "s3://"), ("STATE-01", "STORE-01", "STATE-09")),),
    ),
    ErrorText(
        "local-state-missing",
        ("STORE-06", "STATE-01"),
        tuple(
            text
            for directory in (_STORE_DIRECTORY, f"{_STORE_DIRECTORY}/<store>")
            for text in (
                f"Error reading delta file file:{directory}/<version>.delta of <any> does not exist",
                f"File file:{directory}/<version>.delta does not exist",
                f"File file:{directory}/<version>.zip does not exist",
            )
        ),
        # Of a query in one process, Spark writes "executor driver".
        needs=tuple(f"executor {number}" for number in range(10)),
    ),
    ErrorText(
        "delta-missing",
        # An operator that a batch did not have, such as one that the optimizer removed, left no state (CHG-07).
        ("STATE-01", "STORE-01", "STATE-09", "CHG-07", "STORE-06"),
        (
            f"Error reading delta file {_STORE_DIRECTORY}/<version>.delta of <any> does not exist",
            f"Error reading delta file {_STORE_DIRECTORY}/<store>/<version>.delta of <any> does not exist",
            "Error reading delta file <path> of <any> does not exist",
            f"Error reading snapshot file {_STORE_DIRECTORY}/<version>.snapshot of <any> does not exist",
            f"Error reading snapshot file {_STORE_DIRECTORY}/<store>/<version>.snapshot of <any> does not exist",
            *_missing("<version>.delta"),
            *_missing("<version>.snapshot"),
            "CANNOT_LOAD_STATE_STORE.CANNOT_READ_DELTA_FILE_NOT_EXISTS",
            "CANNOT_LOAD_STATE_STORE.CANNOT_READ_MISSING_SNAPSHOT_FILE",
        ),
    ),
    ErrorText(
        "state-file-damaged",
        ("STATE-02",),
        (
            f"Error reading delta file {_STORE_DIRECTORY}/<version>.delta of <any> size cannot be <size>",
            "Error reading delta file <path> of <any> size cannot be <size>",
            "Error reading snapshot file <path> of <any> size cannot be <size>",
            "CANNOT_LOAD_STATE_STORE.CANNOT_READ_DELTA_FILE_KEY_SIZE",
            "CANNOT_LOAD_STATE_STORE.CANNOT_READ_SNAPSHOT_FILE_",
            "CANNOT_LOAD_STATE_STORE.AUTO_SNAPSHOT_REPAIR_FAILED",
            "Checksum verification failed, the file may be corrupted. File: <path>",
            "CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED",
            "ChecksumException: Checksum error: <path>/state/<operator>/",
            "Could not obtain block: <any> file=<path>/state/<operator>/",
        ),
    ),
    ErrorText(
        "state-file-cut",
        ("STATE-02", "STATE-06"),
        ("java.io.EOFException<eol>", "Stream is corrupted"),
        certainty=Certainty.LIKELY,
        needs=_STATE,
        near=(Near(("SchemaCompatibilityChecker", "SchemaHelper"), ("STATE-06",), Certainty.LIKELY),),
    ),
    ErrorText(
        "state-not-loaded",
        ("STATE-02", "STATE-01", "STATE-11"),
        ("CANNOT_LOAD_STATE_STORE.UNCATEGORIZED",),
        level=Level.WRAPPER,
        certainty=Certainty.POSSIBLE,
    ),
    ErrorText(
        "zip-missing",
        ("STATE-04", "STATE-03", "VER-03", "CHG-09"),
        _missing("<version>.zip"),
    ),
    ErrorText(
        "first-changelog-missing",
        ("CHG-07", "STATE-03", "STATE-11", "CHG-09", "STATE-04"),
        (
            f"Error reading streaming state file of {_STORE_DIRECTORY}/1.changelog does not exist",
            f"Error reading streaming state file of {_STORE_DIRECTORY}/<store>/1.changelog does not exist",
        ),
    ),
    ErrorText(
        "changelog-of-other-lineage",
        ("STATE-11",),
        (f"Error reading streaming state file of {_STORE_DIRECTORY}/<version>_<state_id>.changelog does not exist",),
    ),
    ErrorText(
        "changelog-missing",
        ("STATE-04", "STATE-07", "CHG-09", "STATE-11", "STATE-01"),
        (
            f"Error reading streaming state file of {_STORE_DIRECTORY}/<version>.changelog does not exist",
            f"Error reading streaming state file of {_STORE_DIRECTORY}/<store>/<version>.changelog does not exist",
            "Error reading streaming state file of <path> does not exist",
            "CANNOT_LOAD_STATE_STORE.CANNOT_READ_STREAMING_STATE_FILE",
        ),
    ),
    ErrorText(
        "rocksdb-files-damaged",
        ("STATE-05", "STORE-04"),
        (
            *_missing("SSTs/<name>"),
            "Copied <path> to <target>, expected <expected> bytes, found <found> bytes",
            "CANNOT_LOAD_STATE_STORE.UNEXPECTED_FILE_SIZE",
            "STATE_STORE_UNEXPECTED_EMPTY_FILE_IN_ROCKSDB_ZIP",
            "java.nio.file.NoSuchFileException: <path>/workingDir-<any>/metadata",
        ),
    ),
    ErrorText(
        "rocksdb-not-opened",
        ("STATE-05", "STATE-08"),
        (
            "No SST files found",
            "While opening a file for sequentially reading: <path>/CURRENT",
            "While opening a file for sequentially reading",
            "RocksDBException: Corruption",
            "RocksDBException: While open a file for random read",
            "RocksDBException: Can't access /<name>.sst",
        ),
        certainty=Certainty.LIKELY,
        needs=("StateStore", "/state", "streaming.state", "org.rocksdb."),
    ),
    ErrorText(
        "rocksdb-zip-cut",
        ("STATE-05",),
        ("java.io.EOFException: Unexpected end of ZLIB input stream",),
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "state-metadata-unreadable",
        ("STATE-06",),
        (
            "Failed to read the operator metadata for checkpointLocation=<path> and batchId=<batch>",
            "STDS_FAILED_TO_READ_OPERATOR_METADATA",
            "STDS_FAILED_TO_READ_STATE_SCHEMA",
            "STDS_NO_PARTITION_DISCOVERED_IN_STATE_STORE",
            "Failed to recover the state-store partition count from checkpoint metadata",
        ),
    ),
    ErrorText(
        "partition-count-unknown",
        ("STATE-06",),
        ("java.util.NoSuchElementException: None.get",),
        certainty=Certainty.POSSIBLE,
        needs=("OffsetSeq", "StatePartition"),
    ),
    ErrorText(
        "changelog-version-unknown",
        ("STATE-07", "VER-01"),
        ("The change log reader version cannot be <version>", "INVALID_CHANGE_LOG_READER_VERSION"),
    ),
    ErrorText(
        "rocksdb-files-mixed",
        ("STATE-08", "SHARE-01"),
        ("Mismatch in unique ID on table file <file>", "Sst file size mismatch"),
    ),
    ErrorText(
        "state-partly-committed",
        ("STATE-09",),
        (
            "State store commit validation failed for batch <batch>. Expected <expected> commits but got <found>",
            "STATE_STORE_COMMIT_VALIDATION_FAILED",
            "STATE_STORE_UPDATING_AFTER_TASK_COMPLETION",
        ),
    ),
    ErrorText(
        "state-formats-mixed",
        ("STATE-11",),
        (
            "HDFSBackedStateStoreProvider does not support checkpointFormatVersion > 1",
            "STATE_STORE_CHECKPOINT_IDS_NOT_SUPPORTED",
            # What Spark 4.0 says of the same: its check of the version fails itself.
            'SQLConf.stateStoreCheckpointFormatVersion()" because the return value of',
            "STATE_STORE_BASE_CHECKPOINT_ID_MISMATCH",
            "CANNOT_LOAD_STATE_STORE.INVALID_CHECKPOINT_LINEAGE",
            "CANNOT_LOAD_STATE_STORE.CANNOT_FIND_BASE_SNAPSHOT_CHECKPOINT",
            "STREAMING_REAL_TIME_MODE.CHECKPOINT_FORMAT_V1_NOT_SUPPORTED",
        ),
    ),
    ErrorText(
        "state-store-unusable",
        ("STATE-12",),
        (
            "CANNOT_LOAD_STATE_STORE.HDFS_STORE_PROVIDER_OUT_OF_MEMORY",
            "CANNOT_LOAD_STATE_STORE.ROCKSDB_STORE_PROVIDER_OUT_OF_MEMORY",
            "CANNOT_LOAD_STATE_STORE.UNRELEASED_THREAD_ERROR",
            "RocksDB instance could not be acquired by",
            "Insert failed due to LRU cache being full",
            "/LOCK: No locks available",
            "/LOCK: Resource temporarily unavailable",
            "While lock file: ",
            "lock hold by current process",
            "STATE_STORE_OPERATION_OUT_OF_ORDER",
            "StateStoreOperationOutOfOrder",
        ),
    ),
    ErrorText(
        # Another attempt of the task has closed the store that this one uses.
        "state-store-closed",
        ("STATE-12",),
        ("java.lang.NullPointerException",),
        certainty=Certainty.LIKELY,
        needs=("execution.streaming.state.RocksDB.",),
    ),
    ErrorText(
        "join-state-inconsistent",
        ("STATE-13",),
        ("STREAM_STREAM_JOIN_INCONSISTENT_STATE",),
    ),
    ErrorText(
        "join-state-null",
        ("STATE-13",),
        ("java.lang.NullPointerException",),
        certainty=Certainty.LIKELY,
        needs=("SymmetricHashJoinStateManager",),
    ),
    ErrorText(
        "state-of-earlier-query",
        ("STATE-14",),
        (
            "The checkpoint location <path> should be empty on batch 0",
            "The offset log does not exist, but the state checkpoint location <path> is not empty",
            "STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY",
        ),
    ),
    ErrorText(
        "state-file-unreadable",
        ("STATE-02", "STATE-01"),
        ("Error reading snapshot file <path>", "Error reading delta file <path>"),
        level=Level.NAMED,
        certainty=Certainty.LIKELY,
    ),
)
