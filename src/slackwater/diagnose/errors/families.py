"""Families of messages that several libraries share: exit codes, statuses of HTTP and gRPC, warnings of Kafka's client.

They are less certain than a message of the library that failed, and come after it.
"""

from __future__ import annotations

from slackwater.diagnose.errors.common.stores import PACKAGES
from slackwater.diagnose.errors.common.symptom import Certainty, ErrorText, Level, Near

_STORE = (Near(PACKAGES, ("STORE-08",)),)

_IN_SPARK = (
    *(
        f"java.{name}{message}\nat org.apache.spark.sql.{package}."
        for name in ("lang.NullPointerException", "util.NoSuchElementException", "lang.IndexOutOfBoundsException")
        for message in ("", ": <any>")
        for package in ("execution", "kafka010", "streaming", "catalyst", "connector")
    ),
    "scala.MatchError: <any>\nat org.apache.spark.sql.",
    "java.lang.AssertionError: <any>\nat org.apache.spark.sql.",
    "Cannot evaluate expression: <any>\nat org.apache.spark.sql.catalyst.",
    "Cannot generate code for expression: ",
)
"""Exceptions of a defect, thrown by Spark's own code: what is printed below them is not their cause."""

GROUP = (
    ErrorText(
        "killed-for-memory",
        ("APP-02", "APP-03"),
        (
            "invoked oom-killer",
            "Out of memory: Kill process",
            "Out of memory: Killed process",
            "Memory cgroup out of memory",
            "Cannot allocate memory",
            "Native memory allocation (mmap) failed",
            "There is insufficient memory for the Java Runtime",
            "MemoryError: ",
            "std::bad_alloc",
        ),
        names=("EXIT 137", "EXIT 52"),
        level=Level.WRAPPER,
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        # Files of the executor's own disks are removed when it exits, mostly for its memory.
        "shuffle-file-missing",
        ("APP-02", "APP-03"),
        (
            "NoSuchFileException: <any>/blockmgr-<any>/shuffle_",
            "FileNotFoundException: <any>/blockmgr-<any>/shuffle_",
            "Missing an output location for shuffle",
        ),
        level=Level.WRAPPER,
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "defect-in-own-frames",
        ("VER-06",),
        _IN_SPARK,
        level=Level.GENERAL,
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "connector-of-older-spark",
        ("VER-04",),
        ("did not have isStreaming=true",),
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "target-file-exists",
        ("STORE-03", "SHARE-01"),
        names=("FileAlreadyExistsException", "PathExistsException"),
        level=Level.GENERAL,
        certainty=Certainty.POSSIBLE,
    ),
    ErrorText(
        "kafka-client-warns",
        ("SRC-05",),
        (
            "LEADER_NOT_AVAILABLE",
            "BROKER_NOT_AVAILABLE",
            "NOT_LEADER_OR_FOLLOWER",
            "COORDINATOR_NOT_AVAILABLE",
            "Broker may not be available",
            "Bootstrap broker <any> disconnected",
            "Couldn't resolve server <any> from bootstrap.servers",
            "TOPIC_AUTHORIZATION_FAILED",
            "CLUSTER_AUTHORIZATION_FAILED",
            "failed authentication due to",
        ),
        level=Level.GENERAL,
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "kafka-poll-unanswered",
        ("SRC-05",),
        (
            "Failed to get records for <any> after polling for",
            "Cannot fetch record for offset <any> in <any> milliseconds",
        ),
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "kafka-client-misses-topic",
        ("KAFKA-04",),
        ("UNKNOWN_TOPIC_OR_PARTITION",),
        level=Level.GENERAL,
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "service-status",
        ("SRC-05",),
        (
            "502 Bad Gateway",
            "503 Service Unavailable",
            "504 Gateway Time",
            "500 Internal Server Error",
            "429 Too Many Requests",
            "UNAVAILABLE: io exception",
            "DEADLINE_EXCEEDED",
            "RESOURCE_EXHAUSTED",
            "Read timed out",
            "connect timed out",
            "Connection timed out",
            "Connection refused",
            "UNAUTHENTICATED: ",
            "401 Unauthorized",
        ),
        level=Level.GENERAL,
        certainty=Certainty.POSSIBLE,
        near=_STORE,
    ),
    ErrorText(
        "service-refuses-access",
        ("STORE-05", "SRC-05"),
        ("403 Forbidden", "PERMISSION_DENIED", "does not have storage.objects.", "Status Code: 403"),
        level=Level.GENERAL,
        certainty=Certainty.POSSIBLE,
    ),
    ErrorText(
        "schema-registry-refuses",
        ("APP-05", "SRC-05"),
        ("Could not get schema for id", "Schema not found; error code: 40403", "Subject not found.; error code: 40401"),
        names=("RestClientException",),
        level=Level.NAMED,
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "table-changed-meanwhile",
        ("SINK-07",),
        (
            "Found conflicting files that can contain",
            "Cannot commit, missing data files",
            "Missing required files to delete",
            "Found new conflicting delete",
            "Cannot commit, found new delete for",
        ),
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "table-refuses-rows",
        ("SINK-08",),
        (
            "Cannot write incompatible data to table",
            "Cannot write incompatible dataset to table",
            "Cannot find data for the output column",
            "INCOMPATIBLE_DATA_FOR_TABLE",
        ),
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "rows-not-clustered",
        ("APP-04",),
        (
            "Incoming records violate the writer assumption that records are clustered",
            "Already closed files for partition",
        ),
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "driver-or-class-absent",
        ("VER-04",),
        (
            "No suitable driver",
            "unresolved dependency: ",
            "UNRESOLVED DEPENDENCIES",
            "Could not find artifact ",
            "does not exist in the JVM",
            "could not be instantiated",
            "Constructor failed for class <name>",
        ),
        level=Level.NAMED,
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "option-absent",
        ("APP-09",),
        (
            "Option '<name>' must be specified",
            "must be specified for configuring Kafka",
            "One of the following options must be specified for Kafka",
            'Required configuration "<name>" which has no default value',
            "Could not find a 'KafkaClient' entry in the JAAS",
            "No LoginModule found for",
            "No serviceName defined in either JAAS or Kafka config",
            "Login module not specified in JAAS config",
            "Login module control flag not specified",
            "JAAS config entry not terminated by semi-colon",
            "JAAS configuration <any> is not valid",
            "Unexpected SASL mechanism",
            "Missing required configuration ",
            "is used to write into a Delta table on a non-HDFS storage system",
            "DELTA_INCORRECT_LOG_STORE_IMPLEMENTATION",
            "is not supported temporarily",
            "requires the SparkSession to be configured with the",
            "DELTA_CONFIGURE_SPARK_SESSION_WITH_EXTENSION_AND_CATALOG",
            "'path' is not specified",
            "'topic' option or <any>'topic' attribute",
            "topic option required when no 'topic' attribute is present",
            "Kafka option '<name>' is not supported",
            "Required attribute 'value' not found",
            "Failed to load SSL keystore",
            "Invalid value <any> for configuration",
            "is missing the following required option",
        ),
        level=Level.NAMED,
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "class-of-other-version",
        ("VER-04",),
        ("Method <any> is abstract",),
        level=Level.NAMED,
        certainty=Certainty.LIKELY,
    ),
)
