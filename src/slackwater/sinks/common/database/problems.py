"""Translates database drivers' exceptions: cause, use of a restart, next step.

PostgreSQL's codes are from its manual, appendix A.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError

from slackwater.core.errors import PipelineError, StreamFailed
from slackwater.sinks.common.problem import TASK_ERROR, Problem, unreadable

LOOK_UP = "the server's log has the statement that failed; correct the cause, then run the pipeline again"
LOGIN = re.compile(
    r"password authentication failed|no password supplied|no pg_hba\.conf entry|authentication failed"
    r"|(role|database) \"[^\"]*\" does not exist|Access denied for user",
    re.IGNORECASE,
)
UNREACHABLE = re.compile(
    r"could not translate host name|Name or service not known|name resolution"
    r"|Connection refused|could not connect|connection failed|timeout expired"
    r"|server closed the connection|connection .*(lost|reset|closed)|the database system is (starting up|shutting down)"
    r"|terminating connection|Network is unreachable|No such file or directory|No route to host|'idna' codec failed",
    re.IGNORECASE,
)
NO_DRIVER = re.compile(r"No suitable driver|ClassNotFoundException")
_NOT_NAMING = (
    "LINE ",
    "^",
    "[SQL",
    "(Background",
    "File ",
    "at ",
    "... ",
    "Suppressed:",
    "An error occurred while calling",
)
"""Line starts in messages and stacks that do not name the cause: statements, Python and Java frames."""
SQLSTATE = re.compile(r"SQLSTATE: ?([0-9A-Z]{5})")

_UNREACHABLE = Problem(
    "sink-unreachable",
    "The database of the sink cannot be reached",
    "check that the server runs and that the host and port in the sink's url are right",
)
_LOGIN = Problem(
    "sink-login",
    "The database of the sink refuses the login",
    'give the password by PGPASSWORD, ~/.pgpass or password="env:NAME", and check the user and the database in the url',
)
_NO_DRIVER = Problem(
    "sink-driver",
    "Spark has no JDBC driver for the url of the sink",
    'name its class, sinks.jdbc(..., driver="com.example.Driver"), and its jar: --conf spark.jars=FILE',
)
# The first entry with which a state starts counts, so that single states come before their class.
_BY_STATE: tuple[tuple[str, Problem], ...] = (
    ("08", _UNREACHABLE),
    # 57P04: the database was dropped. The others: the server shuts down, crashes, or does not accept connections.
    ("57P04", _LOGIN),
    ("57P0", _UNREACHABLE),
    ("28", _LOGIN),
    ("3D000", _LOGIN),
    (
        "22021",
        Problem(
            "sink-zero-byte",
            "A string contains a zero byte, which PostgreSQL cannot store",
            "remove it in the query: F.regexp_replace(column, '\\\\x00', '')",
        ),
    ),
    (
        "22P05",
        Problem(
            "sink-zero-byte",
            "A string in a struct, map or array contains a zero byte, which PostgreSQL cannot store",
            "remove it in the query: F.regexp_replace(column, '\\\\x00', '')",
        ),
    ),
    ("22", Problem("sink-value", "A value does not fit its column", "change the column's type or the query")),
    (
        "23",
        Problem(
            "sink-constraint",
            "A row violates a constraint of the table",
            "correct the rows or the constraint; keys=(...) updates rows whose key exists",
        ),
    ),
    (
        "21000",
        Problem(
            "sink-keys-repeated",
            "One batch has several rows with the same key: which of them to keep is unknown",
            "make the keys unique in the query, or name all columns that identify a row in keys=(...)",
        ),
    ),
    ("42501", Problem("sink-privilege", "The user of the sink lacks a privilege", "GRANT it to the user in the url")),
    ("25006", Problem("sink-privilege", "The database is read-only", "use the address of the primary server")),
    (
        "42",
        Problem(
            "sink-table-changed",
            "The table is not as it was when the query started",
            "put the column or table back, or change the query, and run the stream again",
        ),
    ),
    ("53", Problem("sink-resources", "The database server lacks a resource", "free disk, memory or connections")),
    ("40", Problem("sink-busy", "The database could not run the transaction concurrently with others")),
    (
        "55P03",
        Problem(
            "sink-busy",
            "A transaction of another session holds a lock",
            "end that session, such as a driver that was paused: SELECT pid, state, query FROM pg_stat_activity WHERE "
            "xact_start IS NOT NULL shows it, SELECT pg_terminate_backend(PID) ends it",
        ),
    ),
)


def problem_of(error: BaseException) -> Problem:
    """The problem of an exception, which Spark may quote from a task."""
    original = getattr(error, "orig", None) or error
    text = str(original)
    own = TASK_ERROR.search(text)
    if own is not None:
        listed = (each for _, each in _BY_STATE if each.code == own["code"])
        return _with_text(next(listed, Problem(own["code"], "A task of the sink failed")), own["text"])
    state = getattr(original, "sqlstate", None) or next(iter(SQLSTATE.findall(text)), None)
    by_state = (each for start, each in _BY_STATE if state and state.startswith(start))
    known: Problem | None = next(by_state, None)
    if known is None and NO_DRIVER.search(text):
        known = _NO_DRIVER
    if known is None and LOGIN.search(text):
        known = _LOGIN
    if known is None and (UNREACHABLE.search(text) or getattr(error, "connection_invalidated", False)):
        known = _UNREACHABLE
    return _with_text(
        known or Problem("sink-failed", "The database of the sink reports an error", LOOK_UP), _line(text)
    )


@contextmanager
def reading(where: str) -> Iterator[None]:
    try:
        yield
    except (DBAPIError, UnicodeError) as error:
        raise problem_of(error).unreadable(where) from error
    except StreamFailed as error:
        raise unreadable(error) from error


@contextmanager
def writing(where: str) -> Iterator[None]:
    try:
        yield
    except (DBAPIError, UnicodeError) as error:
        raise problem_of(error).failed(where) from error


def _with_text(problem: Problem, text: str) -> Problem:
    return Problem(problem.code, problem.message, problem.hint, text)


def _line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    kept = [line for line in lines if not line.startswith(_NOT_NAMING)]
    return " ".join(kept)[:500]


def no_streaming_source(of: str, location: str | None) -> PipelineError:
    return PipelineError(
        "output-unreadable",
        f"A stream cannot read a table{of}: Spark has no streaming source for it",
        where=location,
        hint="read it as a static DataFrame: spark.read.jdbc(...)",
    )
