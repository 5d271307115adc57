"""Classifies a failed query: whether a restart may help, the failure and its cause, and its line in the user's code.

Spark reports most failures by an error condition (``getErrorClass`` in 3.5, ``getCondition`` since 4.0), bracketed in
messages; older checks are assertions with fixed sentences. Both are matched in all messages of the exception chain,
because PySpark keeps only messages of JVM causes. Sentences are from Spark 3.5 to 4.3.
"""

import re
import sysconfig
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from slackwater.core.errors import SlackwaterError
from slackwater.core.masking import mask
from slackwater.sinks.common.registry import transient_codes
from slackwater.sources import kinds

FailureKind = Literal["transient", "permanent"]
FailureCode = Literal[
    "state-damaged", "state-schema", "state-missing", "operator-changed", "source-added", "source-removed",
    "source-changed", "data-loss", "user-function", "query-refused", "store-unreachable", "sink", "unknown",
]  # fmt: skip

TRANSIENT = re.compile(
    r"java\.net\.(ConnectException|SocketException|SocketTimeoutException|UnknownHostException|NoRouteToHostException)"
    r"|java\.io\.InterruptedIOException"
    r"|FetchFailedException|ExecutorLostFailure|RpcTimeoutException"
    r"|SlowDown|503 Service Unavailable|HTTP Error (429|502|503|504)\b|RequestTimeout"
    r"|java\.sql\.SQLTransientException"
    r"|\bConnection(Refused|Reset|Aborted)Error\b"
    r"|^(socket\.)?(TimeoutError|timeout): "
    r"|Connection (reset|refused)|Temporary failure in name resolution",
    re.MULTILINE,
)
"""Errors of networks and lost executors; kinds of sources add their clients' errors (``transient_errors``).

Any other failure is permanent, so the stream fails at once.
"""

TRANSIENT_CODES = frozenset({
    "ledger-unreachable", "sink-unreachable", "sink-resources", "sink-busy", "sink-staged-lost", "output-unreachable",
    "output-resources", "output-busy",
})  # fmt: skip
"""Slackwater's transient errors: a database that was locked, full or unreachable. Kinds of sinks add more."""

SPARK_ERRORS: tuple[type[Exception], ...] = (Py4JError, PySparkException, OSError)
"""The exceptions of a call that Spark refuses, whose API differs, or whose JVM has exited."""
KNOWN_ERRORS: tuple[type[Exception], ...] = (SlackwaterError, *SPARK_ERRORS)
UNREADABLE: tuple[type[Exception], ...] = (LookupError, ValueError, TypeError, AttributeError, *KNOWN_ERRORS)
"""The exceptions where something that is recorded, or Spark's internals, may have a different form."""

TRANSIENT_TYPES = (ConnectionError, TimeoutError)

WRAPPERS = (
    "Job aborted",
    "Query [",
    "[STREAM_FAILED]",
    "Writing job aborted",
    "org.apache.spark.SparkException: Job aborted",
    "Exception thrown in awaitResult",
)
CAUSE = re.compile(
    r"^\s*(?:Caused by: |: )?"
    r"(?P<error>[\w.$]+(?:Exception|Error)|(?:\w+\.){2,}[\w$]+(?=: \[[A-Z][A-Z0-9_.]+]))"
    r": (?P<message>.+)$",
    re.MULTILINE,
)
"""A line with an exception's class; classes with other endings have an error condition in their messages."""

QUERY_DUMP = "=== Streaming Query ==="
"""Spark appends the query's plan to the message; a literal in the plan is not a cause."""

PYTHON_FAILED = re.compile(r"\bPythonException: |raised by the Python Proxy|FOREACH(_BATCH)?_USER_FUNCTION_ERROR")
OURS_IN_BATCH = re.compile(r"\bBatchFailed: \[(?P<code>[a-z0-9-]+)\] (?P<reason>.+)")
"""An error of a sink's own batch function, with its code; it passes through the JVM as text (``BatchFailed``)."""
SOURCE_COUNT = re.compile(r"There are \[(\d+)] sources in the checkpoint offsets and now there are \[(\d+)] sources")
NOTHING = re.compile(r"(?!)")
"""Matches no message: only kinds of sources know such an error."""
CODES: tuple[tuple[FailureCode, re.Pattern[str]], ...] = (
    ("state-damaged", re.compile(r"\[CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED|Checksum error: \S*/state/\d+/\d+/")),
    (
        "state-schema",
        re.compile(
            r"\[STATE_STORE_\w*(SCHEMA|ROW_FORMAT_VALIDATION|INVALID_VARIABLE_TYPE_CHANGE|INVALID_CONFIG_AFTER_RESTART)"
            r"|\[TRANSFORM_WITH_STATE_SCHEMA|StateSchemaNotCompatible|InvalidUnsafeRowException"
        ),
    ),
    ("operator-changed", re.compile(r"\[STREAMING_STATEFUL_OPERATOR_(NOT_MATCH|MISSING_STATE)")),
    (
        "state-missing",
        re.compile(r"\[CANNOT_LOAD_STATE_STORE|Error reading (delta|snapshot|streaming state) file\b.* does not exist"),
    ),
    ("data-loss", NOTHING),
    (
        "source-changed",
        re.compile(
            r'\[STREAMING_SOURCE|Invalid conversion from offset of|NumberFormatException: For input string: "\{'
        ),
    ),
    (
        "query-refused",
        re.compile(r"AnalysisException|\[STREAMING_OUTPUT_MODE|\[UNSUPPORTED_STREAMING|\[UNRESOLVED_COLUMN"),
    ),
)
"""The patterns of failures; the first match decides. Kinds of sources add to them (``failures``).

``state-missing`` is also reported for an added operator by Spark before 4.3.
"""

REFUSED_QUERIES = ("query-refused", "query-start", "watermark-missing", "global-watermark")

FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)', re.MULTILINE)
TRACEBACK_HEADING = "Traceback (most recent call last):"
TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n(?P<frames>(?:[ \t]+.*\n)+)(?P<error>\S.*)")
CALLED_FROM = re.compile(r"was called from\n(?P<file>/[^\n:]+):(?P<line>\d+)")
OUR_PACKAGE = str(Path(__file__).parents[2])
OUR_SINKS = f'File "{OUR_PACKAGE}/sinks/'
COMPILED = (".pxi", ".pyx")
"""Sources of compiled modules, such as pyarrow: the paths in their frames are from the build machine."""
NOT_THE_USERS = (
    *(sysconfig.get_path("stdlib"), "<", "/pyspark/", "/py4j/", "pyspark.zip", "site-packages", OUR_PACKAGE),
    *COMPILED,
)


class RunFailure(NamedTuple):
    """``place`` is ``file:line`` in the user's code, if known.

    ``traceback`` is the user function's, with frames of the user's code only.
    """

    kind: FailureKind
    code: FailureCode
    reason: str
    place: str | None = None
    traceback: str | None = None


def classify(error: BaseException) -> RunFailure:
    messages = _messages(error)
    transient = is_transient(error)
    traceback = None
    for trace in reversed(list(TRACEBACK.finditer(messages))):
        starts = [match.start() for match in FRAME.finditer(trace["frames"])]
        frames = [trace["frames"][start:end] for start, end in pairwise([*starts, len(trace["frames"])])]
        own = [frame for frame in frames if not any(part in frame.partition(",")[0] for part in NOT_THE_USERS)]
        if own:
            traceback = "\n".join([TRACEBACK_HEADING, "".join(own) + trace["error"]])
            break
    return RunFailure(
        "transient" if transient else "permanent",
        _code(error, messages, transient=transient),
        reason_of(error),
        _place(messages),
        traceback,
    )


def is_transient(error: BaseException) -> bool:
    messages = _messages(error)
    # The sink's own code decides: its message quotes that of a database, which may contain any words.
    if ours := OURS_IN_BATCH.search(messages):
        return _is_transient_code(ours["code"])
    codes = (cause.code for cause in _chain(error) if isinstance(cause, SlackwaterError))
    if any(map(_is_transient_code, codes)) or any(isinstance(cause, TRANSIENT_TYPES) for cause in _chain(error)):
        return True
    patterns = (TRANSIENT, *(kind.transient_errors for kind in kinds() if kind.transient_errors is not None))
    return any(pattern.search(messages) for pattern in patterns)


def reason_of(error: BaseException) -> str:
    """The innermost cause in a line, or Slackwater's own error with its code; secrets are masked."""
    if isinstance(error, SlackwaterError):
        return f"{error.code}: {error}"
    if ours := OURS_IN_BATCH.search(_messages(error)):
        return mask(f"{ours['code']}: {ours['reason']}")
    causes = [
        (match["error"], match["message"].strip())
        for match in CAUSE.finditer(_messages(error))
        if not match["message"].lstrip().startswith(WRAPPERS)
    ]
    if causes and causes[-1][1].startswith(TRACEBACK_HEADING):
        # The error below it has a name that does not end as those of Java do.
        causes += [trace["error"].partition(": ")[::2] for trace in TRACEBACK.finditer(_messages(error))]
    if causes:
        name, message = causes[-1]
        # An ExecutionException's message is the whole message of what it wraps.
        while wrapped := CAUSE.match(message):
            name, message = wrapped["error"], wrapped["message"].strip()
        return mask(f"{name.rsplit('.', 1)[-1]}: {message}")
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return mask(lines[0]) if lines else type(error).__name__


def _code(error: BaseException, messages: str, *, transient: bool) -> FailureCode:
    if OURS_IN_BATCH.search(messages):
        return "sink"
    if PYTHON_FAILED.search(messages) and (OUR_SINKS not in messages or _place(messages)):
        # Before all others: the message of the user's exception may contain anything. A sink's batch function is ours.
        return "user-function"
    if isinstance(error, SlackwaterError) and error.code in REFUSED_QUERIES:
        return "query-refused"
    if isinstance(error, SlackwaterError) and error.code == "store-unreadable":
        return "store-unreachable"
    if counts := SOURCE_COUNT.search(messages):
        return "source-added" if int(counts[2]) > int(counts[1]) else "source-removed"
    for code, pattern in CODES:
        of_sources = [one for kind in kinds() for of_code, one in kind.failures if of_code == code]
        if any(one.search(messages) for one in (pattern, *of_sources)):
            return code
    return "store-unreachable" if transient else "unknown"


def _is_transient_code(code: str) -> bool:
    return code in TRANSIENT_CODES or code in transient_codes()


def _place(messages: str) -> str | None:
    # The frames are those of a sink's batch function, and not of the user's code.
    if OURS_IN_BATCH.search(messages):
        return None
    found = [*FRAME.finditer(messages), *CALLED_FROM.finditer(messages)]
    own = [match for match in found if not any(part in match["file"] for part in NOT_THE_USERS)]
    return f"{own[-1]['file']}:{own[-1]['line']}" if own else None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exceptions of the chain, outermost first. PySpark keeps JVM causes in ``_cause``."""
    seen: set[int] = set()
    pending: list[object] = [error]
    while pending:
        cause = pending.pop(0)
        if not isinstance(cause, BaseException) or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        # ``raise ... from None`` declares that the context is no cause.
        context = None if cause.__suppress_context__ else cause.__context__
        pending += [getattr(cause, "_cause", None), cause.__cause__, context]


def _messages(error: BaseException) -> str:
    return "\n".join(
        f"{str(cause).partition(QUERY_DUMP)[0]}\n{getattr(cause, '_stackTrace', '') or ''}" for cause in _chain(error)
    )
