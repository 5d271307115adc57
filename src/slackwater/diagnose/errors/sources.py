"""Sources that only their own connector reads: table formats, message services, change streams (SRC-*)."""

from __future__ import annotations

from slackwater.diagnose.errors.common.symptom import Certainty, ErrorText

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
        "source-positions-aged-out",
        ("SRC-01",),
        (
            "request seqNo <requested> is less than the received seqNo <found>. The earliest seqNo is <earliest>",
            "Shard <id> in stream <name> under account <any> does not exist",
            "Resume of change stream was not possible, as the resume point may no longer be in the oplog",
            "ChangeStreamHistoryLost",
        ),
    ),
    ErrorText(
        "source-data-lost",
        ("SRC-01",),
        ("Some data may have been lost because they are not available in Pulsar any more",),
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
            "Gave up after <any> retries while fetching MetaData",
        ),
        certainty=Certainty.LIKELY,
    ),
)
