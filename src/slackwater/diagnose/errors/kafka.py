"""Kafka topics whose offsets, partitions or options do not fit the checkpoint (KAFKA-*)."""

from __future__ import annotations

from slackwater.diagnose.errors.common.symptom import Certainty, ErrorText, Level, Near

GROUP = (
    ErrorText(
        "offset-not-available",
        ("KAFKA-01", "KAFKA-02"),
        (
            "Cannot fetch offset <offset> (GroupId: <group>, TopicPartition: <topic_partition>)",
            "Could not read records in offset [<start>, <end>) for topic partition <topic_partition> with",
            "KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE",
        ),
    ),
    ErrorText(
        "start-offset-reset",
        ("KAFKA-01", "KAFKA-02"),
        (
            "Starting offset for <topic_partition> was <offset> but consumer reset to <found_offset>",
            "KAFKA_DATA_LOSS.START_OFFSET_RESET",
        ),
    ),
    ErrorText(
        "offsets-out-of-range",
        ("KAFKA-01", "KAFKA-02"),
        (
            "Offsets out of range with no configured reset policy for partitions: {<topic_partition>=<offset>",
            "OffsetOutOfRangeException: Fetch position <any> is out of range for partition <topic_partition>",
            "kafka.clients.consumer.OffsetOutOfRangeException",
            "Offsets not available on leader: OffsetRange(",
        ),
    ),
    ErrorText(
        "records-not-fetched",
        ("KAFKA-01", "KAFKA-11"),
        (
            "Cannot fetch records in [<start>, <end>)",
            "Tried to fetch <requested> but the returned record offset was <found>",
        ),
    ),
    ErrorText(
        "offsets-with-gaps",
        ("KAFKA-11",),
        ("Got wrong record for <any> even after seeking to offset", "Failed to get records for compacted"),
    ),
    ErrorText(
        "offset-went-back",
        ("KAFKA-02", "KAFKA-14"),
        (
            "Partition <topic_partition>'s offset was changed from <offset> to <found_offset>",
            "Partition <topic_partition> offset was changed from <offset> to <found_offset>",
            "Beginning offset <offset> is after the ending offset <found_offset> for topic",
            "offset was changed from <offset> to <found_offset>",
            "KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED",
        ),
    ),
    ErrorText(
        "offsets-incorrect",
        ("KAFKA-02",),
        ("Found incorrect offsets in some partitions (partition, previous offset, fetched offset): <partitions>",),
        level=Level.NOTE,
    ),
    ErrorText(
        "partitions-gone-with-group-id",
        ("KAFKA-10", "KAFKA-04"),
        (
            "KAFKA_DATA_LOSS.PARTITIONS_DELETED_AND_GROUP_ID_CONFIG_PRESENT",
            "are gone. Kafka option 'kafka.group.id' has been set on this query",
        ),
    ),
    ErrorText(
        "partitions-gone",
        ("KAFKA-04", "KAFKA-06", "KAFKA-02"),
        (
            "Partitions <partitions> have been deleted",
            "are gone. Some data may have been missed",
            "KAFKA_DATA_LOSS.PARTITIONS_DELETED]",
        ),
        near=(Near(("has been set on this query", "GROUP_ID_CONFIG_PRESENT"), ("KAFKA-10",)),),
    ),
    ErrorText(
        # The checkpoint has positions of a topic that is not read now, or lacks those of one that is.
        "partition-not-in-positions",
        ("KAFKA-06", "KAFKA-04"),
        ("NoSuchElementException: key not found: [", 'NoSuchElementException: key not found: {"ehName'),
        certainty=Certainty.LIKELY,
        needs=("KafkaSource", "kafka010", "EventHubs", "eventhubs"),
    ),
    ErrorText(
        "topic-unknown",
        ("KAFKA-04",),
        ("UnknownTopicOrPartitionException: This server does not host this topic-partition",),
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "added-partition-not-from-zero",
        ("KAFKA-05",),
        (
            "Added partition <topic_partition> starts from <start> instead of 0",
            "KAFKA_DATA_LOSS.ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO",
        ),
    ),
    ErrorText(
        "added-partition-not-found",
        ("KAFKA-05",),
        (
            "Cannot find earliest offsets of <partitions>. Some data may have been missed",
            "Cannot find initial offsets for partitions <partitions>. They may have been deleted",
            "KAFKA_DATA_LOSS.INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS",
        ),
    ),
    ErrorText(
        "starting-offsets-incomplete",
        ("KAFKA-08",),
        (
            "If startingOffsets contains specific offsets, you must specify all TopicPartitions",
            "Partitions specified for Kafka start offsets don't match what are assigned",
            "Partitions specified for Kafka timestamp based <any> offsets don't match what are assigned",
            "KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED",
            "No offset matched from request of topic-partition <topic_partition>",
        ),
    ),
    ErrorText(
        "group-refused",
        ("KAFKA-10",),
        ("GroupAuthorizationException: Not authorized to access group: <group>",),
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "group-set",
        ("KAFKA-10",),
        ("Kafka option 'group.id' is not supported as user-specified consumer groups are not used to track offsets",),
    ),
    ErrorText(
        "partitions-differ-from-offsets",
        ("KAFKA-04", "KAFKA-12"),
        (
            "MISMATCHED_TOPIC_PARTITIONS_BETWEEN_START_OFFSET_AND_END_OFFSET",
            "specified start offset and end offset should have the same topic-partitions",
        ),
    ),
    ErrorText(
        "start-after-end",
        ("APP-09", "KAFKA-02"),
        (
            "START_OFFSET_GREATER_THAN_END_OFFSET",
            "The resolved start offset <any> is greater than the resolved end offset",
            "The specified start <any> is greater than the end <any> for topic",
        ),
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "record-timestamp-malformed",
        ("APP-05",),
        ("KAFKA_MALFORMED_RECORD_TIMESTAMP", "that overflows when converting to Spark's microsecond-precision"),
    ),
    ErrorText(
        "topic-changed-during-available-now",
        ("KAFKA-12", "KAFKA-04", "KAFKA-02"),
        (
            "MISMATCHED_TOPIC_PARTITIONS_BETWEEN_END_OFFSET_AND_PREFETCHED",
            "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_PREFETCHED",
            "Some of partitions in Kafka topic(s) have been lost during running query with Trigger.AvailableNow",
            "Some of partitions in Kafka topic(s) report available offset which is less than end offset",
            "should provide the same topic partitions in pre-fetched offset to end offset",
            "end offset should have lower or equal offset per each topic partition than pre-fetched offset",
            "LOST_TOPIC_PARTITIONS_IN_END_OFFSET_WITH_TRIGGER_AVAILABLENOW",
            "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_LATEST_WITH_TRIGGER_AVAILABLENOW",
        ),
    ),
    ErrorText(
        "topic-data-lost",
        ("KAFKA-01", "KAFKA-02", "KAFKA-04"),
        ("Some data may have been lost because they are not available in Kafka any more",),
        level=Level.WRAPPER,
        near=(
            Near(("offset was changed from",), ("KAFKA-02",)),
            Near(("are gone.", "have been deleted"), ("KAFKA-04",)),
        ),
    ),
    ErrorText(
        "kafka-refused-an-earlier-record",
        ("SINK-09", "SRC-05"),
        ("at least one previous transactional or idempotent request has failed",),
        level=Level.WRAPPER,
        certainty=Certainty.LIKELY,
    ),
)
