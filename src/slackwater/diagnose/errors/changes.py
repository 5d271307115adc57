"""Queries that were changed between restarts (CHG-*)."""

from __future__ import annotations

from slackwater.diagnose.errors.common.symptom import Certainty, ErrorText, Level, Near

_OVERRIDDEN = "' in current session from '<before>' to '<after>'"
_DEDUPLICATION = ("StreamingDeduplicate", "dropDuplicates")
_DESERIALIZATION_FRAMES = ("GroupsWithState", "StateStoreRDD", "StateManager")

GROUP = (
    ErrorText("deduplication-keys-changed", ("CHG-15",), ("Cannot evolve the key columns of dropDuplicates",)),
    ErrorText(
        "source-count-changed",
        ("CHG-01",),
        ("There are [<recorded>] sources in the checkpoint offsets and now there are [<requested>] sources",),
    ),
    ErrorText(
        "source-type-changed",
        ("CHG-03",),
        (
            'java.lang.NumberFormatException: For input string: "{"path":',
            'Expected e.g. {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}, got',
            "Invalid conversion from offset of <any> to ",
            "Offset cannot be cast to <any>Offset",
            "Offset cannot be cast to class <any>Offset",
        ),
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "state-schema-changed",
        ("CHG-05", "CHG-15", "CHG-12"),
        (
            "Provided schema doesn't match to the schema for existing state",
            "Provided key schema does not match existing state key schema",
            "Provided value schema does not match existing state value schema",
            "StateSchemaNotCompatible",
            "StateStoreKeySchemaNotCompatible",
            "StateStoreValueSchemaNotCompatible",
            "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
            "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",
            "query without schema validation, please set spark.sql.streaming.stateStore.stateSchemaCheck",
            "query without schema validation, set spark.sql.streaming.stateStore.stateSchemaCheck",
        ),
        near=(
            Near(_DEDUPLICATION, ("CHG-15",)),
            Near(("GroupsWithState", "groupState"), ("CHG-05", "CHG-12")),
        ),
    ),
    ErrorText(
        "state-row-invalid",
        ("CHG-05", "STATE-02", "VER-02"),
        (
            "The streaming query failed by state format invalidation",
            "The streaming query failed to validate written state for",
            "STATE_STORE_KEY_ROW_FORMAT_VALIDATION_FAILURE",
            "STATE_STORE_VALUE_ROW_FORMAT_VALIDATION_FAILURE",
            "InvalidUnsafeRowException",
        ),
    ),
    ErrorText(
        "operators-changed",
        ("CHG-07",),
        (
            "Stateful operators in the metadata: [<operators>]; Stateful operators in current batch: [<current>]",
            "Streaming stateful operator name does not match with the operator in state metadata",
            "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA",
        ),
    ),
    ErrorText(
        "state-directory-missing",
        ("CHG-07", "STATE-03"),
        (
            "Cannot restart streaming query with stateful operators because the state directory is empty or missing",
            "STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY",
        ),
    ),
    ErrorText(
        "partition-count-kept",
        ("CHG-08",),
        (f"Updating the value of conf 'spark.sql.shuffle.partitions{_OVERRIDDEN}",),
        level=Level.NOTE,
    ),
    ErrorText(
        "repartition-refused",
        ("CHG-08",),
        ("STATE_REPARTITION_INVALID_CHECKPOINT", "STREAMING_UNFINISHED_REPARTITION_DETECTED"),
    ),
    ErrorText(
        "provider-kept",
        ("CHG-09",),
        (f"Updating the value of conf 'spark.sql.streaming.stateStore.providerClass{_OVERRIDDEN}",),
        level=Level.NOTE,
    ),
    ErrorText("provider-too-simple", ("CHG-09",), ("STATE_STORE_MULTIPLE_COLUMN_FAMILIES",)),
    ErrorText(
        "watermark-policy-kept",
        ("CHG-10",),
        (f"Updating the value of conf 'spark.sql.streaming.multipleWatermarkPolicy{_OVERRIDDEN}",),
        level=Level.NOTE,
    ),
    ErrorText("watermark-policy-unknown", ("CHG-10",), ("Could not recognize watermark policy '<name>'",)),
    ErrorText(
        "state-format-kept",
        ("CHG-11",),
        tuple(
            f"Updating the value of conf 'spark.sql.streaming.{operator}.stateFormatVersion{_OVERRIDDEN}"
            for operator in ("join", "aggregation", "flatMapGroupsWithState")
        ),
        level=Level.NOTE,
    ),
    ErrorText(
        "join-state-format-old",
        ("CHG-11",),
        (
            "join with state format version <version> - correctness issue is discovered",
            "STREAM_STREAM_JOIN_INCOMPATIBLE_STATE_STORE_CONFIGS",
            "State format version must be less than or equal to <version>",
        ),
    ),
    ErrorText(
        "state-object-unreadable",
        ("CHG-12",),
        (
            "java.io.InvalidClassException: <name>; local class incompatible",
            "com.esotericsoftware.kryo.KryoException",
        ),
        certainty=Certainty.LIKELY,
        needs=_DESERIALIZATION_FRAMES,
    ),
    ErrorText(
        "state-variable-changed",
        ("CHG-13",),
        (
            "STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE",
            "STATE_STORE_INVALID_CONFIG_AFTER_RESTART",
            "STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION",
            "STATE_STORE_VALUE_SCHEMA_EVOLUTION_THRESHOLD_EXCEEDED",
            "STATE_STORE_STATE_SCHEMA_FILES_THRESHOLD_EXCEEDED",
            "TRANSFORM_WITH_STATE_SCHEMA_MUST_BE_NULLABLE",
            "Incompatible schema transformation with column family=<name>",
            "Cannot change <name> from <before> to <after> between restarts",
            "Cannot change <name> to <after> between query restarts",
        ),
    ),
    ErrorText(
        # State of Python's is the rarer reason: workers and driver differ from the first start on.
        "python-version-differs",
        ("APP-08", "CHG-14"),
        ("Python in worker has different version", "PYTHON_VERSION_MISMATCH"),
    ),
    ErrorText("source-evolution-refused", ("CHG-17",), ("STREAMING_QUERY_EVOLUTION_ERROR",)),
    ErrorText(
        "rate-source-changed",
        ("CHG-18",),
        (
            "The previous run contained <recorded> partitions, but <requested> partitions are currently configured",
            "MALFORMED_STATE_IN_RATE_PER_MICRO_BATCH_SOURCE",
        ),
    ),
)
