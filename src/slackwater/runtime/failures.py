"""Tells a failure that a restart may mend from one that it will not, and a failure's innermost cause in one line."""

from __future__ import annotations

import re

from slackwater.errors import SlackwaterError

TRANSIENT = re.compile(
    r"java\.net\.(ConnectException|SocketException|SocketTimeoutException|UnknownHostException|NoRouteToHostException)"
    r"|java\.io\.InterruptedIOException"
    r"|org\.apache\.kafka\.common\.errors\.(TimeoutException|DisconnectException|NetworkException"
    r"|NotLeaderOrFollowerException|LeaderNotAvailableException|CoordinatorNotAvailableException|BrokerNotAvailableException)"
    r"|FetchFailedException|ExecutorLostFailure|RpcTimeoutException"
    r"|SlowDown|503 Service Unavailable|RequestTimeout"
    r"|java\.sql\.SQLTransientException"
    r"|\bConnection(Refused|Reset|Aborted)Error\b"
    r"|Connection (reset|refused)"
)
"""Errors of networks, brokers and lost executors; anything else is taken for permanent, so it fails at once."""

TRANSIENT_CODES = frozenset({"ledger-unreachable"})
"""Our own errors that pass: a database that was locked or away for a moment."""

WRAPPERS = (
    "Job aborted",
    "Query [",
    "[STREAM_FAILED]",
    "Writing job aborted",
    "org.apache.spark.SparkException: Job aborted",
)
CAUSE = re.compile(r"^\s*(?:Caused by: )?(?P<error>[\w.$]+(?:Exception|Error)): (?P<message>.+)$", re.MULTILINE)

QUERY_DUMP = "=== Streaming Query ==="
"""Spark appends the query's plan to the message; a literal of the user's in there is no cause of anything."""


def is_transient(error: BaseException) -> bool:
    """Whether trying again, unchanged, has a chance."""
    if isinstance(error, SlackwaterError) and error.code in TRANSIENT_CODES:
        return True
    return isinstance(error, ConnectionError) or TRANSIENT.search(_text(error)) is not None


def reason_of(error: BaseException) -> str:
    """The innermost cause in one line: what wraps it says only that something failed."""
    causes = [
        (match["error"], match["message"].strip())
        for match in CAUSE.finditer(_text(error))
        if not match["message"].lstrip().startswith(WRAPPERS)
    ]
    if causes:
        return _innermost(*causes[-1])
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _innermost(error: str, message: str) -> str:
    # An ExecutionException's message is the whole text of what it wraps.
    while wrapped := CAUSE.match(message):
        error, message = wrapped["error"], wrapped["message"].strip()
    return f"{error.rsplit('.', 1)[-1]}: {message}"


def _text(error: BaseException) -> str:
    """What the error and all its causes say, outermost first. PySpark keeps the JVM's causes in ``_cause``."""
    texts: list[str] = []
    seen: set[int] = set()
    cause: object = error
    while isinstance(cause, BaseException) and id(cause) not in seen:
        seen.add(id(cause))
        texts.append(f"{str(cause).partition(QUERY_DUMP)[0]}\n{getattr(cause, '_stackTrace', '') or ''}")
        cause = getattr(cause, "_cause", None) or cause.__cause__
    return "\n".join(texts)
