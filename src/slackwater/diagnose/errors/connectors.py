"""Messages of connectors that Spark does not ship: table formats, search engines, key-value and graph databases.

Most connectors have one class of exception for all failures, so that only the message says which it was.
"""

from __future__ import annotations

from slackwater.diagnose.errors.common.symptom import Certainty, ErrorText, Level

_LIKELY = Certainty.LIKELY

GROUP = (
    ErrorText(
        "hudi-rows-do-not-fit",
        ("SINK-08",),
        (
            "recordKey value: <any> for field",
            "recordKey values: <any> for fields",
            "Unable to find field <any> in the schema",
            "not found in record. Acceptable fields were",
            "Failed to upsert schema validation",
            "Incoming batch schema is not compatible with the table",
            "Failed upsert schema compatibility check",
            "Failed insert schema compatibility check",
            "Expected instance of <any> converter but got",
        ),
        names=("HoodieKeyException", "MissingSchemaFieldException", "SchemaCompatibilityException"),
        certainty=_LIKELY,
    ),
    ErrorText(
        "hudi-setting-differs-from-table",
        ("APP-09",),
        (
            "Config conflict(key",
            "should be specified at the time of writing",
            "hoodie.datasource.write.recordkey.field<any>not",
            "hoodie table with name <any> already exists",
            # Avro's words for a field that an option names, and the records do not have.
            "Not a valid schema field: ",
        ),
        certainty=_LIKELY,
    ),
    ErrorText(
        "hudi-other-writer",
        ("SINK-07",),
        (
            "Heartbeat for instant <any> has expired",
            "Cannot resolve conflicts",
            "Unable to acquire lock",
            "Found commits after time",
            "Failed to rollback",
        ),
        names=("HoodieLockException", "HoodieHeartbeatException", "HoodieRollbackException"),
        certainty=_LIKELY,
    ),
    ErrorText(
        # The server runs in the driver, and executors ask it: no service of others has failed.
        "hudi-own-server-gone",
        ("VER-06", "SRC-05"),
        ("HoodieRemoteException: Connect to localhost",),
        names=("HoodieRemoteException",),
        certainty=_LIKELY,
    ),
    ErrorText(
        "connector-defect-known",
        ("VER-06",),
        (
            "does not have a open stream. Cannot get the bytes written",
            "Cannot read file group: file slice",
            "Metadata table's deletePartitions",
            # The connector does not convert the offset that Spark has read from its log.
            "SerializedOffset cannot be cast to <any>Offset",
            "SerializedOffset cannot be cast to class <any>Offset",
        ),
        names=("HoodieMetadataException", "HoodieCorruptedDataException", "HoodieValidationException"),
        certainty=_LIKELY,
    ),
    ErrorText(
        "hudi-write-failed",
        ("SINK-09", "SINK-08"),
        ("Error upserting bucketType", "failed and rolled-back !", "Failed to upsert for commit time"),
        level=Level.WRAPPER,
        certainty=_LIKELY,
    ),
    ErrorText(
        # A cleaner or VACUUM runs while a slower reader still needs the files.
        "files-of-table-cleaned",
        ("SRC-01", "FSRC-03"),
        (
            "No such file or directory: <any>_<any>.parquet\nIt is possible the underlying files",
            "NoSuchFileException: <any>.hoodie/",
            "No such file or directory <any>.hoodie/",
            "No such file or directory: <any>.hoodie/",
        ),
        certainty=_LIKELY,
    ),
    ErrorText(
        "iceberg-catalog-not-made",
        ("VER-04", "APP-09"),
        (
            "Cannot find catalog plugin class",
            "Cannot initialize Catalog implementation",
            "Cannot initialize FileIO",
            "Cannot find constructor for interface",
            "Cannot initialize LocationProvider",
        ),
        level=Level.NAMED,
        certainty=_LIKELY,
    ),
    ErrorText(
        "iceberg-catalog-unset",
        ("APP-09",),
        (
            "Cannot instantiate hadoop catalog. No location provided",
            "warehouse path must be set",
            "Cannot initialize HadoopCatalog because warehousePath",
            "is not a valid identifier for catalog",
            "Cannot create catalog <any>, both type and catalog-impl",
            "Catalog '<name>' plugin class not found",
            "plugin class not found: spark.sql.catalog.",
            "CATALOG_NOT_FOUND",
        ),
        certainty=_LIKELY,
    ),
    ErrorText(
        "iceberg-metadata-file-missing",
        ("APP-06", "STORE-04"),
        ("Failed to open input stream for file", "Location does not exist: <path>"),
        level=Level.NAMED,
        certainty=_LIKELY,
    ),
    ErrorText(
        "search-engine-unreachable",
        ("SRC-05",),
        (
            "Cannot detect ES version - typically this happens if",
            "Connection error (check network and/or proxy settings)",
            "no other nodes left - aborting",
            "Cannot detect OpenSearch version",
            "No data nodes with HTTP-enabled available",
            "es_rejected_execution_exception",
            "cluster_block_exception",
            "security_exception: ",
        ),
        certainty=_LIKELY,
    ),
    ErrorText(
        "search-engine-refuses-index",
        ("SINK-09",),
        (
            "Cannot determine write shards for",
            "Could not write all entries",
            "index_not_found_exception",
            "invalid_index_name_exception",
            "validation_exception: ",
            "circuit_breaking_exception",
            "version_conflict_engine_exception",
        ),
        certainty=_LIKELY,
    ),
    ErrorText(
        "search-engine-refuses-document",
        ("SINK-08",),
        (
            "mapper_parsing_exception",
            "strict_dynamic_mapping_exception",
            "document_parsing_exception",
            "illegal_argument_exception: Limit of total fields",
            "failed to parse field",
        ),
        certainty=_LIKELY,
    ),
    ErrorText(
        "database-of-service-unavailable",
        ("SRC-05",),
        (
            "Failed to open native connection to Cassandra",
            "Could not reach any contact point",
            "All host(s) tried for query failed",
            "consistency <any> (<any> required but only",
            "during write query at consistency",
            "during read query at consistency",
            "Database '<name>' is unavailable",
            "Unable to acquire connection from the pool within",
            "Timed out after <any> while waiting to connect",
            "Timed out after <any> ms while waiting for a server",
            "Request rate is large",
            "RequestRateTooLarge",
            "code: 279, All connection tries failed",
        ),
        names=(
            *("neo4j.driver.exceptions.TransientException", "SessionExpiredException", "WriteFailureException"),
            *("ReadFailureException", "OverloadedException", "BusyPoolException", "MongoNotPrimaryException"),
            *("MongoNodeIsRecoveringException", "MongoServerUnavailableException", "RequestTimeoutException"),
        ),
        certainty=_LIKELY,
    ),
    ErrorText(
        "database-of-service-refuses-row",
        ("SINK-08",),
        (
            "E11000 duplicate key error",
            "Invalid null value in condition for column",
            "Missing mandatory PRIMARY KEY part",
            "Attribute name doesn't match any column",
            "Columns not found in table",
            "Some primary key columns are missing",
            "Provided Schema does not match Table",
            "already exists with label",
            "TYPE_MISMATCH in ",
        ),
        names=("TypeConversionException", "InvalidQueryException", "BsonMaximumSizeExceededException"),
        certainty=_LIKELY,
    ),
    ErrorText(
        "database-of-service-refuses-statement",
        ("APP-04", "SINK-09"),
        ("Neo.ClientError.Statement.", "code: 62, ", "DB::Exception: Syntax error"),
        names=("neo4j.driver.exceptions.ClientException",),
        level=Level.NAMED,
        certainty=_LIKELY,
    ),
    ErrorText(
        "stream-producer-process-gone",
        ("APP-03",),
        ("The child process has been shutdown and can no longer accept messages",),
        names=("DaemonException",),
        certainty=_LIKELY,
    ),
    ErrorText(
        # Kinesis, Event Hubs and Pulsar readers compare what they have recorded with the offsets of Spark.
        "connector-record-does-not-fit",
        ("SRC-03", "VER-06"),
        (
            "AssertionError: assertion failed\nat scala.Predef$.assert(<any>\nat org.apache.spark.sql.connector.",
            "AssertionError: assertion failed\nat scala.Predef$.assert(<any>\nat org.apache.spark.sql.kinesis.",
            "error at assert(prevBatchId <= currBatchId)",
        ),
        certainty=_LIKELY,
    ),
)
