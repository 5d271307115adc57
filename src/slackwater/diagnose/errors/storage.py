"""Storage of checkpoints: renames, permissions, space (STORE-*)."""

from __future__ import annotations

from slackwater.diagnose.errors.common.symptom import Certainty, ErrorText, Level, Near

_CHECKPOINT = ("CheckpointFileManager", "HDFSMetadataLog", "StateStore", "StreamExecution", "StreamMetadata")

GROUP = (
    ErrorText(
        "rename-not-atomic",
        ("STORE-01",),
        ("Could not use FileContext API for managing Structured Streaming checkpoint files at <path>",),
        level=Level.NOTE,
    ),
    ErrorText(
        "checkpoint-on-local-disk",
        ("STORE-06",),
        ("CheckpointFileManager: Writing atomically to file:",),
        level=Level.NOTE,
        certainty=Certainty.POSSIBLE,
    ),
    ErrorText(
        "no-file-context",
        ("STORE-01",),
        ("No AbstractFileSystem configured for scheme", "No AbstractFileSystem for scheme"),
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "wrong-file-system",
        ("STORE-01", "STORE-06"),
        ("Wrong FS: <path>, expected: <target>",),
        needs=_CHECKPOINT,
    ),
    ErrorText("checkpoint-manager-not-loaded", ("STORE-01",), ("CANNOT_LOAD_CHECKPOINT_FILE_MANAGER",)),
    ErrorText(
        "renamed-file-absent",
        ("STORE-02",),
        ("Renamed temp file <path> to <target>. But <any> does not exist",),
    ),
    ErrorText(
        "rename-conflict",
        ("STORE-03", "SHARE-01"),
        (
            "Failed to rename temp file <path> to <target> as FileSystem.rename returned false",
            "Failed to rename <path> to <target> as destination already exists",
            "Failed to rename as <path> was not found",
            "FAILED_RENAME_TEMP_FILE",
            "FAILED_RENAME_PATH",
            "RENAME_SRC_PATH_NOT_FOUND",
        ),
    ),
    ErrorText(
        "rename-failed",
        ("STORE-03", "SHARE-01"),
        ("Failed to rename <path> to <target>", "rename from <path> to <target> failed"),
        needs=_CHECKPOINT,
    ),
    ErrorText(
        "checkpoint-file-exists",
        ("STORE-03", "SHARE-01"),
        ("FileAlreadyExistsException: <any>rename destination <path> already exists", "FileAlreadyExistsException"),
        needs=_CHECKPOINT,
    ),
    ErrorText(
        "log-not-written",
        ("STORE-05", "STORE-03"),
        ("STREAMING_CHECKPOINT_LOG_WRITE_FAILURE",),
    ),
    ErrorText(
        "storage-refused",
        ("STORE-05",),
        (
            "AccessControlException: Permission denied",
            "Permission denied: user=",
            "DSQuotaExceededException",
            "NSQuotaExceededException",
            "java.nio.file.AccessDeniedException: <path>",
            "AuthorizationPermissionMismatch",
            "This request is not authorized to perform this operation",
            "(Service: Amazon S3; Status Code: 403",
            "ExpiredToken",
            "The provided token has expired",
            "Unable to load AWS credentials",
            "NoAuthWithAWSException",
            "InvalidAccessKeyId",
            "SignatureDoesNotMatch",
            "GSSException: No valid credentials provided",
            "token (HDFS_DELEGATION_TOKEN <any>can't be found in cache",
            "No space left on device",
            "Disk quota exceeded",
            "No space available in any of the local directories",
            "Could not find any valid local directory for",
        ),
        certainty=Certainty.LIKELY,
        # Spark names a directory so that it creates for a query without a checkpoint location.
        near=(Near(("/temporary-",), ("LOG-16",)),),
    ),
    ErrorText(
        "directory-not-created",
        ("STORE-05", "STORE-06"),
        ("mkdir of <path> failed", "Mkdirs failed to create <path>"),
        needs=_CHECKPOINT,
    ),
    ErrorText(
        "state-not-written",
        ("STORE-05", "STORE-03", "SHARE-01"),
        (
            "CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT",
            "Error committing version <version> into",
            "Error committing version",
        ),
        level=Level.WRAPPER,
        near=(Near(("Failed to rename", "FileAlreadyExists"), ("STORE-03", "SHARE-01")),),
    ),
    ErrorText(
        "store-unavailable",
        ("STORE-08",),
        (
            "(Service: Amazon S3; Status Code: 50",
            "(Service: S3, Status Code: 50",
            "Slow Down (Service: Amazon S3",
            "SlowDown",
            "Please reduce your request rate",
            "is not supported in state standby",
            "Name node is in safe mode",
            "SafeModeException",
            "Unable to execute HTTP request",
            "RemoteFileChangedException",
            "Server Busy",
            "OperationTimedOut",
            "java.nio.channels.ClosedChannelException",
            "Filesystem closed",
            "All datanodes <any>are bad",
            "could only be replicated to 0 nodes",
            "could only be written to 0 of the",
        ),
        certainty=Certainty.LIKELY,
        near=(Near(("Failed to send RPC", "spark.network.client", "shuffle."), ("APP-03",)),),
    ),
)
