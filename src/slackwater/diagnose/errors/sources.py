"""Sources that only their own connector reads: table formats, message services, change streams (SRC-*)."""

from __future__ import annotations

from slackwater.diagnose.errors.common.symptom import Certainty, ErrorText, Level, Near

GROUP = (
    ErrorText(
        "source-snapshot-expired",
        ("SRC-01",),
        (
            "Cannot load current offset at snapshot <version>, the snapshot was expired or removed",
            "Cannot find next snapshot: as Snapshot <version> expired",
            'org.apache.iceberg.Snapshot.operation()" because "snapshot" is null',
            "The snapshot with id <version> has expired",
            "org.apache.iceberg.exceptions.NoSuchSnapshotException",
            "HoodieIncrementalPathNotFoundException",
        ),
    ),
    ErrorText(
        # What Iceberg says where it does not check that a snapshot is still there.
        "source-snapshot-null",
        ("SRC-01",),
        ("java.lang.NullPointerException",),
        certainty=Certainty.LIKELY,
        needs=("iceberg.spark.source.SparkMicroBatchStream",),
    ),
    ErrorText(
        "source-position-expired",
        ("SRC-01",),
        ("request seqNo <requested> is less than the received seqNo <found>. The earliest seqNo is <earliest>",),
        below=("requested", "earliest"),
    ),
    ErrorText(
        # The hub has not said which event is the earliest.
        "source-position-skipped",
        ("SRC-01", "SRC-06"),
        ("request seqNo <requested> is less than the received seqNo <found>. The earliest seqNo is 0 and the last",),
    ),
    ErrorText(
        # The event still exists: another receiver of the consumer group has moved on, and this one got the next event.
        "another-reader-took-the-event",
        ("SRC-06", "SHARE-01"),
        ("request seqNo <requested> is less than the received seqNo <found>. The earliest seqNo is <earliest>",),
        certainty=Certainty.LIKELY,
        below=("earliest", "requested"),
    ),
    ErrorText(
        "source-positions-aged-out",
        ("SRC-01",),
        (
            "Shard <id> in stream <name> under account <any> does not exist",
            "Resume of change stream was not possible, as the resume point may no longer be in the oplog",
            "ChangeStreamHistoryLost",
        ),
    ),
    ErrorText(
        "source-data-lost",
        ("SRC-01",),
        ("Some data may have been lost because they are not available in <any> any more",),
        level=Level.WRAPPER,
        certainty=Certainty.POSSIBLE,
    ),
    ErrorText(
        "source-positions-not-kept",
        ("SRC-01",),
        ("Some events may have expired and been missed", "Offsets committed out of order: <any> followed by"),
    ),
    ErrorText(
        "source-snapshot-not-appended",
        ("SRC-02",),
        (
            "Cannot process overwrite snapshot: <version>",
            "Cannot process delete snapshot: <version>",
            "Cannot process overwrite snapshot",
            "Cannot process delete snapshot",
            "Cannot process unknown snapshot operation: <name>",
        ),
    ),
    ErrorText(
        "connector-metadata-missing",
        ("SRC-03",),
        (
            "<path>/shard-commit/<batch> does not exist",
            "Unable to fetch committed metadata from previous batch id <batch>",
            "HdfsUtils.readChangeFeedToken",
            "Gave up after <any> retries while fetching MetaData",
        ),
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "source-schema-evolved",
        ("SRC-04",),
        (
            "UNKNOWN_FIELD_EXCEPTION",
            "NEW_FIELDS_IN_RECORD",
            "UnknownFieldException",
            "Encountered unknown field(s) during parsing",
        ),
    ),
    ErrorText(
        # Around what is wrong with the options, or with the brokers.
        "kafka-client-not-made",
        ("SRC-05", "APP-09"),
        (
            "Failed to construct kafka consumer",
            "Failed to construct kafka producer",
            "Failed to create new KafkaAdminClient",
        ),
        level=Level.WRAPPER,
        certainty=Certainty.LIKELY,
        near=(
            Near(
                (
                    "IllegalArgumentException",
                    "ConfigException",
                    "jaas.conf",
                    "JAAS",
                    "ssl.truststore",
                    "FileNotFound",
                    "NoSuchFile",
                ),
                ("APP-09",),
            ),
        ),
    ),
    ErrorText(
        "cloud-service-failed",
        ("SRC-05",),
        (
            "(Service: AmazonKinesis; Status Code: <any>",
            "(Service: Kinesis, Status Code: <any>",
            "(Service: AmazonDynamoDBv2; Status Code: <any>",
            "(Service: DynamoDb, Status Code: <any>",
            "(Service: AWSGlue; Status Code: <any>",
            "(Service: Glue, Status Code: <any>",
            "(Service: Sts, Status Code: <any>",
            "(Service: AWSSecurityTokenService; Status Code: <any>",
            "(Service: AmazonSQS; Status Code: <any>",
            "(Service: Sqs, Status Code: <any>",
        ),
        level=Level.NAMED,
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        # Frames of connectors that hide the cause; what is known of the exception itself comes first.
        "connector-of-service-failed",
        ("SRC-05",),
        (
            "at org.apache.spark.sql.kinesis.",
            "at org.apache.spark.sql.connector.kinesis.",
            "at org.apache.spark.eventhubs.",
            "at org.apache.spark.sql.eventhubs.",
            "at org.apache.spark.sql.pulsar.",
            "at org.apache.spark.sql.kafka010.",
            "at com.mongodb.spark.",
            "at com.datastax.spark.",
            "at org.elasticsearch.spark.",
            "at com.azure.cosmos.spark.",
            "at com.microsoft.azure.cosmosdb.spark.",
            "at com.clickhouse.",
            "mysql.binlog.BinLogSocket",
            "at com.google.cloud.spark.",
            "at net.snowflake.spark.",
        ),
        level=Level.GENERAL,
        certainty=Certainty.POSSIBLE,
    ),
    ErrorText(
        "service-unreachable",
        ("SRC-05",),
        (
            "Timed out waiting for a node assignment",
            "Unable to instantiate <any>MetaStoreClient",
            "expired before the position for partition",
            "not present in metadata after",
            "Failed to update metadata after",
            "Timeout expired while fetching topic metadata",
            "No resolvable bootstrap urls given in bootstrap.servers",
            "SSL handshake failed",
            "azure.servicebus.TimeoutException",
            "azure.eventhubs.TimeoutException",
            "Opening MessagingFactory timed out",
            "Communications link failure",
            "PSQLException: Connection to <any> refused",
            "PSQLException: The connection attempt failed",
            "SQLTransientConnectionException",
            "MongoTimeoutException",
            "NoNodeAvailableException",
            "EsHadoopNoNodesLeftException",
            "ProvisionedThroughputExceededException",
        ),
        certainty=Certainty.LIKELY,
    ),
)
