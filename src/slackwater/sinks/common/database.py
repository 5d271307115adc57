"""Addresses of SQL databases, and errors of their drivers.

Recorded addresses have no password, at most a reference; passwords may leave this package only to a driver.
PostgreSQL's error codes are from its manual, appendix A.
"""

import itertools
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

from sqlalchemy import Engine, create_engine, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from slackwater.core.errors import EnvironmentMissing, PipelineError, StreamFailed
from slackwater.core.masking import is_secret_name, mask
from slackwater.core.sink import Identity
from slackwater.sinks.common.problem import (
    TASK_ERROR,
    Problem,
    malformed_identity,
    password_reference,
    read_password,
    unreadable,
)

CONNECT_TIMEOUT_S = 10
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+_]*)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?:\?(?P<query>.*))?")
_FIELD = re.compile(r"[\w.\-]+(?=\s*=)")
"""Field names in a parameter, such as an ODBC string: ``UID=me;PWD={...}``."""
_WITH_PORT = re.compile(r"(?<=[^:]):\d+$|\]:\d+$")
_POSTGRESQL = frozenset({"postgresql", "postgres"})
_KNOWN: dict[str, str] = {}
"""Passwords from URLs in the running program, by URL without them. Not recorded."""


@dataclass(frozen=True, slots=True)
class Address:
    """A database address. ``password`` is a reference: ``env:NAME`` or ``file:PATH``."""

    url: str
    password: str | None = None

    @property
    def is_postgresql(self) -> bool:
        return self.url.partition(":")[0] in _POSTGRESQL

    @property
    def location(self) -> str:
        parts = _parts(self.url)
        hosts = parts["authority"].rpartition("@")[2].lower()
        if not self.is_postgresql:
            return f"{parts['scheme'].partition('+')[0]}://{hosts}{parts['path']}"
        options = {unquote(key): unquote(value) for key, value in _parameters(parts["query"] or "") if value}
        database = unquote(parts["path"].lstrip("/")) or options.get("dbname", "")
        hosts, port = (hosts, "") if hosts else (options.get("host", ""), options.get("port"))
        hosts = ",".join(
            # A host that starts with a slash is the directory of a socket.
            host if host.startswith("/") or _WITH_PORT.search(host) else f"{host}:{port or 5432}"
            for host in hosts.split(",")
            if host
        )
        service = f"?service={options['service']}" if "service" in options else ""
        return f"postgresql://{hosts}/{database}{service}"

    def exists(self) -> bool:
        """Return whether the database may exist; opening a missing SQLite file would create it."""
        path = _parts(self.url)["path"].removeprefix("/") if self.url.startswith("sqlite") else ""
        return not path.startswith("/") or Path(path).exists()

    def identity(self, url: str = "url") -> dict[str, str]:
        return {url: self.url} | ({"password": self.password} if self.password else {})

    def secret(self) -> str | None:
        """The password. ``None``: the driver must find it. Raises StreamFailed (``sink-password-missing``)."""
        if self.password is None:
            return _KNOWN.get(self.url)
        return read_password(self.password, self.location)

    def conninfo(self) -> str:
        psycopg = _psycopg()
        secret = self.secret()
        try:
            given = psycopg.conninfo.conninfo_to_dict(self.url)
            more: dict[str, Any] = {} if secret is None else {"password": secret}
            # libpq waits without a limit by default.
            if "connect_timeout" not in given:
                more["connect_timeout"] = CONNECT_TIMEOUT_S
            conninfo: str = psycopg.conninfo.make_conninfo(self.url, **more)
        except (psycopg.ProgrammingError, UnicodeError) as error:
            raise PipelineError(
                "sink-url", "The address of the database cannot be used", where=self.location, found=str(error)
            ) from error
        return conninfo

    def engine(self) -> Engine:
        """An engine that keeps no connections open. Raises EnvironmentMissing without the driver."""
        try:
            if self.is_postgresql:
                # libpq parses the address: SQLAlchemy reads some URLs differently, such as a ``+`` in a value.
                connect, conninfo = _psycopg().connect, self.conninfo()
                return create_engine("postgresql+psycopg://", creator=lambda: connect(conninfo), poolclass=NullPool)
            url, secret = make_url(self.url), self.secret()
            return create_engine(url.set(password=secret) if secret else url, poolclass=NullPool)
        except ModuleNotFoundError as error:
            packages = "'psycopg[binary]' adbc-driver-postgresql" if self.is_postgresql else error.name or "DRIVER"
            raise EnvironmentMissing(
                "extra-missing", f"The driver for {self.location} is missing", hint=f"pip install {packages}"
            ) from error


def address_of(url: object, password: object = None) -> Address:
    """The address in ``url``, whose password is kept only in this process.

    Raises PipelineError (``sink-url``, ``sink-password``), without quoting secrets.
    """
    match = _URL.fullmatch(url) if isinstance(url, str) else None
    if match is None or "@" in match["path"] or (not match["authority"] and not match["path"] and not match["query"]):
        raise PipelineError(
            "sink-url",
            "The address of a database cannot be used",
            expected="a URL such as postgresql://user@host:5432/database, with / and @ in a password as %2F and %40",
            found=f"a string with the scheme {match['scheme']}" if match else type(url).__name__,
        )
    bare, secret = _without_password(match)
    for name, value in parse_qsl(_parts(bare)["query"] or "", keep_blank_values=True):
        names = (name, *_FIELD.findall(value))
        if any(map(is_secret_name, names)) or mask(value) != value:
            raise PipelineError(
                "sink-url",
                "The address of a database has a secret among its parameters, and would be recorded",
                where=bare.partition("?")[0],
                expected='the user in the address, and password="env:NAME"',
                found=f"a secret in parameter {name}",
                hint='remove it, and give the sink password="env:NAME"; an address with odbc_connect as '
                "mssql+pyodbc://USER@HOST/DATABASE?driver=NAME",
            )
    reference = password_reference(password, "leave it out to use PGPASSWORD, ~/.pgpass or a service file")
    if secret is not None and reference is not None:
        raise PipelineError(
            "sink-password", "The password of the sink is given twice", where=bare, hint="remove one of them"
        )
    if secret is not None:
        _KNOWN[bare] = secret
    return Address(bare, reference)


def require_table(kind: str, identity: Identity) -> None:
    if not identity.get("url") or not identity.get("table"):
        expected = f'{{"kind": "{kind}", "url": ..., "table": ...}}'
        raise malformed_identity(identity, "has no url or no table", expected)


def address_in(identity: Identity, url: str = "url") -> Address:
    return Address(identity[url], identity.get("password"))


def _psycopg() -> Any:
    import psycopg  # noqa: PLC0415 - an extra, which databases of other kinds do not need

    return psycopg


def _without_password(match: re.Match[str]) -> tuple[str, str | None]:
    scheme, authority, path = match["scheme"].lower(), match["authority"], match["path"]
    is_postgresql = scheme.partition("+")[0] in _POSTGRESQL
    if is_postgresql:
        scheme = "postgresql"
    if scheme.startswith("sqlite") and path not in {"", "/", "/:memory:"}:
        path = "/" + os.path.abspath(path[1:])  # noqa: PTH100 - symlinks stay as the user wrote them
    user, at, hosts = authority.rpartition("@")
    name, colon, in_user = user.partition(":")
    query = match["query"] or ""
    if is_postgresql:
        # libpq does not take ``+`` as a space.
        pairs = [
            (unquote(key), unquote(value), f"{_encoded(key)}={_encoded(value)}") for key, value in _parameters(query)
        ]
    else:
        form = parse_qsl(query, keep_blank_values=True)
        pairs = [(key, value, urlencode([(key, value)], safe="/:,")) for key, value in form]
    kept = "&".join(shown for key, _, shown in pairs if key.lower() != "password")
    bare = f"{scheme}://{name}{at}{hosts}{path}" + (f"?{kept}" if kept else "")
    found = unquote(in_user) if colon else None
    return bare, next((value for key, value, _ in pairs if key.lower() == "password"), found)


def _parameters(query: str) -> Iterator[tuple[str, str]]:
    for one in filter(None, query.split("&")):
        name, _, value = one.partition("=")
        yield name, value


def _encoded(text: str) -> str:
    return "+".join(quote(unquote(part), safe="/:,") for part in text.split("+"))


def _parts(url: str) -> re.Match[str]:
    match = _URL.fullmatch(url)
    if match is None:
        raise PipelineError("sink-url", "The recorded address of a database cannot be parsed", found=url)
    return match


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
            "One batch has several rows with the same key: the row to keep is unknown",
            "make the keys unique in the query, or name all columns that identify a row in keys=(...)",
        ),
    ),
    ("42501", Problem("sink-privilege", "The user of the sink lacks a privilege", "GRANT it to the user in the url")),
    ("25006", Problem("sink-privilege", "The database is read-only", "use the address of the primary server")),
    (
        "42",
        Problem(
            "sink-table-changed",
            "The table has changed since the query started",
            "restore the column or table, or change the query, and run the stream again",
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


_BY_TEXT = ((NO_DRIVER, _NO_DRIVER), (LOGIN, _LOGIN), (UNREACHABLE, _UNREACHABLE))


def problem_of(error: BaseException) -> Problem:
    """The problem of an exception, which Spark may quote from a task."""
    original = getattr(error, "orig", None) or error
    text = str(original)
    own = TASK_ERROR.search(text)
    if own is not None:
        listed = (each for _, each in _BY_STATE if each.code == own["code"])
        return replace(next(listed, Problem(own["code"], "A task of the sink failed")), found=own["text"])
    state = getattr(original, "sqlstate", None) or next(iter(SQLSTATE.findall(text)), None)
    by_state = (each for start, each in _BY_STATE if state and state.startswith(start))
    by_text = (each for pattern, each in _BY_TEXT if pattern.search(text))
    lost = [_UNREACHABLE] if getattr(error, "connection_invalidated", False) else []
    known = next(itertools.chain(by_state, by_text, lost), None)
    lines = (line.strip() for line in text.splitlines())
    found = " ".join(line for line in lines if line and not line.startswith(_NOT_NAMING))[:500]
    return replace(known or Problem("sink-failed", "The database of the sink reports an error", LOOK_UP), found=found)


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


def no_streaming_source(of: str, location: str | None) -> PipelineError:
    return PipelineError(
        "output-unreadable",
        f"A stream cannot read a table{of}: Spark has no streaming source for it",
        where=location,
        hint="read it as a static DataFrame: spark.read.jdbc(...)",
    )
