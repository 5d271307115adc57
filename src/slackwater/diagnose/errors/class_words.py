"""Kinds of failures by the last words of the class of an exception, whoever wrote it: ``*ConflictException``.

A class whose full name is known comes first. Words that say little are compared after those of the message.
"""

from __future__ import annotations

from slackwater.diagnose.errors.common.stores import PACKAGES
from slackwater.diagnose.errors.common.symptom import Certainty, ErrorText, Level, Near

_OF_STORE = (Near(PACKAGES, ("STORE-08",)),)


def _ends(
    symptom: str, codes: tuple[str, ...], certainty: Certainty, words: str, near: tuple[Near, ...] = ()
) -> ErrorText:
    """``words``: last words of classes; without ``Error`` or ``Exception`` at the end, both are meant."""
    names = tuple(
        f"*{word}{end}"
        for word in words.split()
        for end in (("",) if word.endswith(("Exception", "Error", "Failure")) else ("Exception", "Error"))
    )
    level = Level.CATCH_ALL if certainty is Certainty.POSSIBLE else Level.GENERAL
    return ErrorText(symptom, codes, names=names, level=level, certainty=certainty, near=near)


GROUP = (
    _ends(
        "some-conflict",
        ("SINK-07",),
        Certainty.LIKELY,
        "Conflict ConcurrentModification Deadlock LockTimeout Lock Locked OptimisticLock CommitConflict CommitFailed"
        " TransactionConflict TransactionAborted Rollback AlreadyExists AlreadyExist StaleState VersionConflict",
    ),
    _ends(
        "some-service-failed",
        ("SRC-05",),
        Certainty.LIKELY,
        "Timeout TimedOut Unavailable Unreachable Throttling Throttled TooManyRequests ThroughputExceeded"
        " Authentication"
        " Authorization Unauthorized Connection Connect Disconnected Credentials SSLException Busy Overload Overloaded"
        " NotAvailable ConnectionFailed ConnectionFailure ConnectionClosed ConnectionLost Network Socket Communication"
        " Communications RetriesExhausted RetryExhausted LimitExceeded RateLimit RateLimited"
        " RateLimitExceeded SessionExpired"
        " LoginException Handshake Certificate UnknownHost ServiceException InternalServer ServerException Backpressure"
        " CircuitBreaking RejectedExecution NoBrokersAvailable NoNodes NodeUnavailable TransientException"
        " HttpException",
        near=_OF_STORE,
    ),
    _ends(
        "some-record-unreadable",
        ("APP-05",),
        Certainty.POSSIBLE,
        "Parse Parsing Parser Decoding Decode Deserialization MalformedInput MalformedRecord MalformedException"
        " JsonMapping JsonProcessing JsonSyntax Corrupt Corrupted Corruption Encoding InvalidData"
        " InvalidRecord Unmarshal"
        " FormatException BadRecord Avro AvroRuntime InvalidProtocolBuffer InvalidAvro ParquetDecoding",
    ),
    _ends(
        "some-option-refused",
        ("APP-09",),
        Certainty.POSSIBLE,
        "InvalidOption Configuration Config InvalidConfig InvalidConfiguration Property"
        " Option Parameter InvalidParameter MissingParameter ParamValidation InvalidArgument MissingProperty"
        " InvalidUri URISyntax",
    ),
    _ends(
        "some-access-refused",
        ("STORE-05",),
        Certainty.POSSIBLE,
        "AccessDenied Permission Forbidden QuotaExceeded PermissionDenied AccessControl Security"
        " TokenExpired ExpiredToken InvalidToken NotAuthorized DiskFull NoSpace StorageFull",
    ),
    _ends(
        "some-memory-missing", ("APP-02",), Certainty.LIKELY, "OutOfMemory MemoryError MemoryLimit MemoryLimitExceeded"
    ),
    ErrorText(
        "some-table-unknown",
        ("APP-06",),
        ("detailMessage = unknown table", "Unknown table '", "no such table: ", "errCode = 7, detailMessage = unknown"),
        level=Level.GENERAL,
        certainty=Certainty.LIKELY,
    ),
    _ends(
        "some-name-unknown",
        ("APP-06",),
        Certainty.POSSIBLE,
        "TableNotFound TopicNotFound DatabaseNotFound NotFound NotExist NotExists DoesNotExist NoSuchTable"
        " NoSuchColumn NoSuchTopic UnknownTable UnknownColumn UnknownTopic UndefinedTable UndefinedColumn",
    ),
    _ends(
        "some-row-refused",
        ("SINK-08",),
        Certainty.POSSIBLE,
        "Schema SchemaMismatch SchemaValidation SchemaEvolution SchemaCompatibility IncompatibleSchema"
        " Mismatch TypeMismatch"
        " InvalidType ConstraintViolation Constraint IntegrityConstraintViolation UniqueViolation"
        " NotNullViolation DuplicateKey"
        " DataTooLong Truncation StringDataRightTruncation NumericValueOutOfRange OutOfRange Conversion Validation",
    ),
    _ends(
        "some-statement-refused",
        ("APP-04",),
        Certainty.POSSIBLE,
        "Syntax SqlSyntax Analysis NotSupported Unsupported NotImplementedException UnsupportedFeature"
        " InvalidQuery QueryException",
    ),
    _ends(
        "some-write-failed",
        ("SINK-09",),
        Certainty.POSSIBLE,
        "Write Writer WriteFailed Sink Bulk BulkWrite BatchWrite Insert Upsert Upload StreamLoad Flush"
        " Ingestion Ingest Produce"
        " Producer Publish CommitException SinkWriter",
    ),
    _ends(
        "some-read-failed",
        ("SRC-05",),
        Certainty.POSSIBLE,
        "ReadException Reader ReadFailed Source Consumer ConsumerFailed Fetch FetchFailed Receiver Poll Subscribe",
    ),
    _ends("some-defect", ("VER-06",), Certainty.POSSIBLE, "InternalError InternalException Bug Invariant Assertion"),
)
