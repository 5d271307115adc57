"""Checkpoints of another Spark version, and jars for another one (VER-*)."""

from __future__ import annotations

from slackwater.diagnose.errors.common.symptom import Certainty, ErrorText, Level

_STREAMING = ("StreamExecution", "DataStreamReader", "DataStreamWriter", "readStream", "writeStream", "spark.sql.kafka")

GROUP = (
    ErrorText(
        "log-version-unsupported",
        ("VER-01",),
        (
            "maximum supported log version is v<expected>, but encountered v<version>",
            "only supported log version is v<expected>, but encountered v<version>",
            "INVALID_LOG_VERSION",
            "UnsupportedLogVersion",
        ),
    ),
    ErrorText(
        "setting-not-recorded",
        ("VER-02",),
        ("Conf '<conf>' was not found in the offset log, using",),
        level=Level.NOTE,
    ),
    ErrorText("sst-of-newer-rocksdb", ("VER-03",), ("unknown checksum type <version> from footer of",)),
    ErrorText(
        "source-not-found",
        ("VER-04",),
        (
            "Failed to find data source: <name>",
            "DATA_SOURCE_NOT_FOUND",
        ),
    ),
    ErrorText(
        "spark-class-missing",
        ("VER-04",),
        (
            "NoClassDefFoundError: org/apache/spark/",
            "NoClassDefFoundError: org/apache/kafka/",
            "NoClassDefFoundError: kafka/",
            "NoClassDefFoundError: Could not initialize class org.apache.spark",
            "ClassNotFoundException: org.apache.spark.sql.kafka010",
            "ClassNotFoundException: org.apache.kafka",
            "java.lang.NoSuchMethodError: <any>org.apache.spark",
            "java.lang.NoSuchMethodError: <any>org.apache.kafka",
            "java.lang.AbstractMethodError: <any>org.apache.spark",
            "java.lang.IncompatibleClassChangeError: <any>org.apache.spark",
            "java.io.InvalidClassException: org.apache.spark<any>; local class incompatible",
        ),
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "class-of-other-jar",
        ("VER-04",),
        (
            "cannot be cast to kafkashaded.",
            "cannot be cast to org.apache.kafka",
            "cannot be cast to class org.apache.kafka",
            "cannot be cast to class org.apache.spark",
            "ClassCastException: cannot assign instance of",
            "java.lang.UnsupportedClassVersionError",
            "has been compiled by a more recent version of the Java Runtime",
            "java.util.ServiceConfigurationError",
            "ClassNotFoundException: Class org.apache.hadoop",
            "No FileSystem for scheme",
            "UNSUPPORTED_FILE_SYSTEM",
            "Incompatible Jackson version",
            "configuration <any>: Class <any> could not be found",
            "Invalid value <any> for configuration <any> Class <any> could not be found",
            "unable to find LoginModule class",
        ),
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "other-scala",
        ("VER-04",),
        ("java.lang.NoSuchMethodError: scala.", "java.lang.NoSuchMethodError: 'scala.", "NoClassDefFoundError: scala/"),
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "connector-of-other-spark",
        ("VER-04",),
        (
            "java.lang.NoSuchMethodError",
            "java.lang.AbstractMethodError",
            "java.lang.NoClassDefFoundError",
            # Its message alone: the name of the class, with slashes.
            "terminated with exception: org/",
            "terminated with exception: com/",
            "terminated with exception: scala/",
            "java.lang.IncompatibleClassChangeError",
        ),
        certainty=Certainty.LIKELY,
        needs=_STREAMING,
    ),
)
