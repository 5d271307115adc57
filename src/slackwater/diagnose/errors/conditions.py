"""Kinds of failures by the SQLSTATE of Spark's, Delta's and databases' error conditions (all areas).

Every condition of Spark 3.5 and later has a SQLSTATE, whose first two characters are its class (ISO/IEC 9075-2, and
Spark's own in ``KD`` and ``XX``). A condition that means more than its class is named by itself.
"""

from __future__ import annotations

from slackwater.diagnose.errors.common.names import STATE
from slackwater.diagnose.errors.common.symptom import Certainty, ErrorText, Level, Near


def _condition(
    symptom: str,
    codes: tuple[str, ...],
    *,
    states: str = "",
    names: str = "",
    level: Level = Level.NAMED,
    certainty: Certainty = Certainty.LIKELY,
) -> ErrorText:
    """``states``: SQLSTATEs and their classes; ``names``: conditions that mean more. Both are separated by blanks."""
    all_names = (*(STATE + state for state in states.split()), *names.split())
    return ErrorText(symptom, codes, names=all_names, level=level, certainty=certainty)


def _family(symptom: str, codes: tuple[str, ...], names: str) -> ErrorText:
    """``names``: the first or last words of conditions that a vendor has added to those of Spark."""
    return ErrorText(symptom, codes, names=tuple(names.split()), level=Level.GENERAL, certainty=Certainty.POSSIBLE)


GROUP = (
    _condition(
        "condition-of-query",
        ("APP-04",),
        states="07 0A 0B 21 24 2B 42 44 46 51 54 55 56 HY KD00D KD00E",
        names="DELTA_OPERATION_NOT_ALLOWED",
    ),
    _condition(
        "condition-of-name",
        ("APP-06",),
        states="3D 3F 42703 42704 42883 42K03 42P01 42P08 42S02 22KD1 02 KD011",
        names="SCHEMA_NOT_FOUND DELTA_EMPTY_DIRECTORY DELTA_METADATA_ABSENT "
        "DELTA_METADATA_ABSENT_EXISTING_CATALOG_TABLE",
    ),
    _condition(
        "condition-of-record",
        ("APP-05",),
        states="22 KD001 KD003 KD009 KD00B",
        names="MALFORMED_CSV_RECORD DUPLICATED_MAP_KEY CANNOT_MERGE_SCHEMAS UNABLE_TO_INFER_SCHEMA "
        "AVRO_INCOMPATIBLE_READ_TYPE INVALID_BUCKET_FILE",
    ),
    _condition(
        "condition-of-program",
        ("APP-01",),
        states="22003 22008 22012 2200E 38 39 P0",
        names="ROW_VALUE_IS_NULL ILLEGAL_STATE_STORE_VALUE STATE_STORE_HANDLE_NOT_INITIALIZED "
        "MERGE_CARDINALITY_VIOLATION DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
        level=Level.WRAPPER,
    ),
    _condition(
        "condition-of-setting",
        ("APP-09",),
        states="22022 22023 22024 42616 42K06 46110 F0 KD000 22KD3",
        names="INVALID_KRYO_SERIALIZER_NO_DATA KRYO_BUFFER_OVERFLOW INVALID_TIMEZONE MISSING_TIMEOUT_CONFIGURATION "
        "INCORRECT_RAMP_UP_RATE STATE_STORE_CANNOT_CREATE_COLUMN_FAMILY_WITH_RESERVED_CHARS",
    ),
    _condition(
        "condition-of-row-in-table",
        ("SINK-08",),
        states="22001 22005 23 21S01 KD005 KD007 KD008",
        names="INCOMPATIBLE_DATA_FOR_TABLE DELTA_SCHEMA_NOT_CONSISTENT_WITH_TARGET DELTA_EMPTY_DATA "
        "DELTA_INVALID_PARTITION_COLUMN DELTA_NULL_SCHEMA_IN_STREAMING_WRITE",
    ),
    _condition(
        "condition-of-unique-key",
        ("SINK-04",),
        states="23505",
    ),
    _condition(
        "condition-of-concurrent-change",
        ("SINK-07",),
        states="25 2D 40 55P03",
        names="INCOMPATIBLE_TABLE_CHANGE_AFTER_ANALYSIS",
    ),
    _condition(
        "condition-of-connection",
        ("SRC-05",),
        states="08 28 53300 57P01 57P02 57P03 HV KD010",
    ),
    _condition(
        "condition-of-store",
        ("STORE-08", "STORE-05"),
        states="58 57",
    ),
    _condition(
        "condition-of-permission",
        ("STORE-05",),
        states="42501 53100",
        names="CANNOT_WRITE_STATE_STORE CANNOT_RESTORE_PERMISSIONS_FOR_PATH",
    ),
    _condition(
        "condition-of-memory",
        ("APP-02",),
        states="53 82",
        level=Level.WRAPPER,
    ),
    _condition(
        "condition-of-stop",
        ("APP-07",),
        states="57014 HY008 XXKDA",
        level=Level.WRAPPER,
    ),
    _condition(
        "condition-of-connector",
        ("VER-04",),
        states="42K02 56038 KD004",
        names="CANNOT_LOAD_CATALOG InvalidProtocolVersionException DeltaTableFeatureException "
        "DeltaUnsupportedTableFeatureException",
    ),
    _condition(
        "condition-of-source-table",
        ("DELTA-07", "DELTA-06"),
        states="42KD4 KD002 KD006 KD00C",
        names="DELTA_MISSING_CHANGE_DATA DELTA_INVALID_SOURCE_VERSION DELTA_SCHEMA_CHANGED "
        "DELTA_SCHEMA_CHANGED_WITH_VERSION DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS "
        "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT "
        "DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_PARTITION_SCHEMA "
        "DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA "
        "DELTA_STREAMING_SCHEMA_LOG_PARSE_SCHEMA_FAILED",
    ),
    _condition(
        "condition-of-state-schema",
        ("CHG-05", "CHG-13"),
        names="STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE "
        "STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION STATE_STORE_VALUE_SCHEMA_EVOLUTION_THRESHOLD_EXCEEDED "
        "STATE_STORE_STATE_SCHEMA_FILES_THRESHOLD_EXCEEDED STATE_STORE_COLUMN_FAMILY_SCHEMA_INCOMPATIBLE "
        "STATE_STORE_KEY_ROW_FORMAT_VALIDATION_FAILURE STATE_STORE_VALUE_ROW_FORMAT_VALIDATION_FAILURE "
        "TRANSFORM_WITH_STATE_SCHEMA_MUST_BE_NULLABLE",
    ),
    _condition(
        "condition-of-state-variable",
        ("CHG-13", "CHG-05"),
        names="STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE STATE_STORE_INVALID_CONFIG_AFTER_RESTART",
    ),
    _condition(
        "condition-of-operators",
        ("CHG-07",),
        names="STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA "
        "STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY",
    ),
    _condition(
        "condition-of-provider",
        ("CHG-09",),
        names="STATE_STORE_INVALID_PROVIDER STATE_STORE_UNSUPPORTED_OPERATION "
        "STATE_STORE_UNSUPPORTED_OPERATION_BINARY_INEQUALITY "
        "STATE_STORE_UNSUPPORTED_OPERATION_ON_MISSING_COLUMN_FAMILY "
        "STATE_STORE_PROVIDER_DOES_NOT_SUPPORT_FINE_GRAINED_STATE_REPLAY STATE_STORE_CHECKPOINT_IDS_NOT_SUPPORTED "
        "STREAM_STREAM_JOIN_INCOMPATIBLE_STATE_STORE_CONFIGS",
    ),
    _condition(
        "condition-of-state-file",
        ("STATE-02", "STATE-01", "STATE-11"),
        names="STATE_STORE_ROW_CHECKSUM_VERIFICATION_FAILED STATE_STORE_UNEXPECTED_EMPTY_FILE_IN_ROCKSDB_ZIP "
        "CANNOT_READ_ZIP_ENTRY STATE_STORE_UNKNOWN_INTERNAL_COLUMN_FAMILY STREAM_STREAM_JOIN_INCONSISTENT_STATE "
        "STDS_FAILED_TO_READ_STATE_SCHEMA",
    ),
    _condition(
        "condition-of-state-load",
        ("STATE-02", "STATE-01", "STATE-11"),
        names="CANNOT_LOAD_STATE_STORE",
        level=Level.WRAPPER,
        certainty=Certainty.POSSIBLE,
    ),
    _condition(
        "condition-of-state-lineage",
        ("STATE-11", "SHARE-01"),
        names="STATE_STORE_BASE_CHECKPOINT_ID_MISMATCH STATE_STORE_COMMIT_VALIDATION_FAILED",
    ),
    _condition(
        "condition-of-state-store-in-use",
        ("VER-06", "STATE-12"),
        names="STATE_STORE_INVALID_STAMP STATE_STORE_INVALID_STATE_MACHINE_TRANSITION "
        "STATE_STORE_OPERATION_OUT_OF_ORDER",
    ),
    _condition(
        "condition-of-empty-checkpoint",
        ("LOG-15", "LOG-10"),
        names="STDS_COMMITTED_BATCH_UNAVAILABLE STDS_NO_PARTITION_DISCOVERED_IN_STATE_STORE",
    ),
    _condition(
        "condition-of-rate-source",
        ("CHG-18", "APP-09"),
        names="INCORRECT_END_OFFSET",
    ),
    _condition(
        "condition-of-log",
        ("LOG-03",),
        names="MALFORMED_LOG_FILE STDS_OFFSET_LOG_UNAVAILABLE STDS_OFFSET_METADATA_LOG_UNAVAILABLE",
    ),
    _condition(
        "condition-of-log-version",
        ("VER-01",),
        names="STDS_MIXED_CHECKPOINT_FORMAT_VERSIONS_NOT_SUPPORTED",
    ),
    ErrorText(
        "condition-of-metadata",
        ("LOG-12",),
        names=("STREAMING_CHECKPOINT_MISSING_METADATA_FILE",),
        level=Level.NAMED,
    ),
    _condition(
        "condition-of-rename",
        ("STORE-03", "SHARE-01"),
        names="FAILED_RENAME_PATH FAILED_RENAME_TEMP_FILE RENAME_SRC_PATH_NOT_FOUND",
    ),
    _condition(
        "condition-of-source-file",
        ("FSRC-03",),
        names="FAILED_READ_FILE.FILE_NOT_EXIST SparkFileNotFoundException",
    ),
    _condition(
        "condition-of-processes",
        ("APP-03",),
        names="STREAMING_PYTHON_RUNNER_INITIALIZATION_FAILURE "
        "STREAMING_PYTHON_RUNNER_INITIALIZATION_COMMUNICATION_FAILURE "
        "STREAMING_PYTHON_RUNNER_INITIALIZATION_TIMEOUT_FAILURE STREAMING_SHUFFLE_CHECKSUM_VERIFICATION_FAILED "
        "STREAMING_SHUFFLE_INCORRECT_SEQUENCE_NUMBER STREAMING_SHUFFLE_UNEXPECTED_MESSAGE_TYPE "
        "STREAMING_SHUFFLE_WRITER_CONNECTION_TIMEOUT CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT "
        "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND",
        level=Level.WRAPPER,
    ),
    _condition(
        "condition-around-a-cause",
        ("APP-01",),
        names="TASK_WRITE_FAILED STREAMING_ASYNC_OPERATION_FAILED",
        level=Level.GENERAL,
        certainty=Certainty.POSSIBLE,
    ),
    ErrorText(
        "condition-around-a-read",
        ("APP-05", "FSRC-03", "STORE-08"),
        names=("FAILED_READ_FILE",),
        level=Level.GENERAL,
        certainty=Certainty.POSSIBLE,
        near=(Near(("FILE_NOT_EXIST", "does not exist"), ("FSRC-03",), Certainty.LIKELY),),
    ),
    _condition(
        "condition-of-spark-itself",
        ("VER-06",),
        states="XX000 XXKCM XXKD0 XXKDS XXSC0 KD00A",
        names="STDS_INTERNAL_ERROR",
        level=Level.GENERAL,
    ),
    _family("family-of-files", ("FSRC-03",), "*_FILE_NOT_FOUND *_FILE_NOT_EXIST *_FILES_NOT_FOUND *_ARCHIVED_FILE"),
    _family("family-of-names", ("APP-06",), "*_NOT_FOUND *_NOT_EXIST *_NOT_EXISTS *_DOES_NOT_EXIST *_MISSING"),
    _family("family-of-queries", ("APP-04",), "*_NOT_SUPPORTED *_UNSUPPORTED *_NOT_ALLOWED UNSUPPORTED_*"),
    _family("family-of-options", ("APP-09",), "*_REQUIRED *_OPTION *_OPTIONS *_OPTION_KEYS_ERROR CF_* CLOUD_FILE_*"),
    _family("family-of-records", ("APP-05",), "*_INFER_SCHEMA *_PARSE_ERROR *_SCHEMA_INFERENCE CANNOT_PARSE_*"),
    _family(
        "family-of-services", ("SRC-05",), "*_TIMEOUT *_AUTHENTICATION *_AUTH_ERROR *_UNAVAILABLE KINESIS_* PUBSUB_*"
    ),
    _family("family-of-positions", ("SRC-01",), "*_DATA_LOSS KINESIS_COULD_NOT_READ_*"),
    _family("family-of-conflicts", ("SINK-07",), "*_CONFLICT *_CONCURRENT_MODIFICATION DELTA_CONCURRENT_*"),
    _family("family-of-source-tables", ("DELTA-07",), "DELTA_STREAMING_* DELTA_SOURCE_*"),
    _family("family-of-state", ("STATE-02", "CHG-05", "VER-06"), "STATE_STORE_* STDS_*"),
    _family("family-of-defects", ("VER-06",), "*_INTERNAL_ERROR INTERNAL_ERROR_*"),
)
