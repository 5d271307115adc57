"""Publishing and what can go wrong with the server, without Spark: staged tables are made by SQL."""

import socket
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import psycopg
import pyarrow as pa
import pytest
from psycopg.conninfo import conninfo_to_dict
from pyspark.sql import types as T
from sqlalchemy import text

import slackwater as sw
from slackwater.core.errors import PipelineError, Refused, SinkUnreadable, StreamFailed
from slackwater.core.sink import Owner, WriteContext
from slackwater.runtime.run.failures import is_transient
from slackwater.sinks.common.database import Address, address_of
from slackwater.sinks.common.marker import MarkedTarget, Marker, check_logged
from slackwater.sinks.common.registry import open_output
from slackwater.sinks.postgres.sink import PostgresOutput
from slackwater.sinks.postgres.staging import Staging, stager
from slackwater.sinks.postgres.table import (
    Mode,
    PostgresName,
    Publication,
    StagedColumn,
    check_types,
    create_statements,
    match_columns,
    read_columns,
    run,
    staged_columns,
)
from slackwater.sinks.postgres.writer import PostgresWriter
from tests.support.errors import raises_code
from tests.support.postgres_server import PostgresServer

SOCKET = ".s.PGSQL.5432"
COMMIT = b"COMMIT\0"
Drop = Literal["request", "reply"]


class DroppingProxy:
    """Passes bytes on, until ``drop_next`` names what of the next COMMIT is lost; then once it breaks off."""

    def __init__(self, folder: Path, server: Path) -> None:
        self.folder = folder
        self.drop_next: Drop | None = None
        self.dropped = 0
        self._lock = threading.Lock()
        self._server = server
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / SOCKET))
        self._listener.listen()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        """Stop accepting and wait for the connections to end."""
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _drop_of(self, data: bytes) -> Drop | None:
        """What of these bytes is lost. Of COMMITs on two connections at once it is one."""
        if COMMIT not in data:
            return None
        with self._lock:
            dropped, self.drop_next = self.drop_next, None
            self.dropped += dropped is not None
            return dropped

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(str(self._server / SOCKET))
            replies = threading.Thread(target=_pass_on, args=(server, client), daemon=True)
            replies.start()
            while data := _received(client):
                if dropped := self._drop_of(data):
                    if dropped == "reply":
                        # The client hears nothing more; the end of the connection comes once the server has committed.
                        client.shutdown(socket.SHUT_RDWR)
                        server.sendall(data)
                        server.shutdown(socket.SHUT_WR)
                    break
                server.sendall(data)
            with suppress(OSError):
                server.shutdown(socket.SHUT_WR)
            replies.join(10)


@contextmanager
def dropping_proxy(server: Path) -> Iterator[DroppingProxy]:
    """A proxy before the server whose socket is in this folder. Below /tmp: paths of sockets are short."""
    with tempfile.TemporaryDirectory(prefix="slackwater-proxy-") as folder:
        proxy = DroppingProxy(Path(folder), server)
        try:
            yield proxy
        finally:
            proxy.close()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    while data := _received(source):
        with suppress(OSError):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


def _received(source: socket.socket) -> bytes:
    with suppress(OSError):
        return source.recv(65536)
    return b""


CONTEXT = WriteContext("5f0e", "clicks/orders", 3, "append")
TABLE = PostgresName("public", "out")
STAGED = {"staged": 3}


@pytest.fixture
def database(postgres: PostgresServer) -> str:
    name = postgres.new_database()
    with psycopg.connect(postgres.url(name)) as connection:
        connection.execute("CREATE TABLE out (id int PRIMARY KEY)")
        connection.execute("CREATE TABLE staged AS SELECT generate_series(1, 3) AS c0")
    return name


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[DroppingProxy]:
    folder = Path(postgres.url("").partition("host=")[2])
    with dropping_proxy(folder) as proxy:
        yield proxy


@pytest.mark.parametrize("dropped", ["request", "reply"])
def test_a_connection_lost_at_commit(
    dropped: Drop, database: str, postgres: PostgresServer, proxy: DroppingProxy
) -> None:
    """The client cannot tell whether the transaction was committed; the marker can."""
    writer = _writer(f"postgresql://slackwater@/{database}?host={proxy.folder}")
    writer.target.claim(Owner(CONTEXT.stream_id, CONTEXT.stream, "/srv/home"))
    proxy.drop_next = dropped
    if dropped == "request":
        with raises_code(StreamFailed, "sink-unreachable"):
            writer._publish(STAGED, 0)
        assert _ids(postgres.url(database)) == []
        assert writer.target.last_written() == -1
    writer._publish(STAGED, 0)
    assert proxy.dropped == 1
    assert _ids(postgres.url(database)) == [1, 2, 3]
    assert writer.target.last_written() == 0
    assert not [name for name in _tables(postgres.url(database)) if name == "staged"]


def test_a_row_that_violates_a_constraint_publishes_nothing(database: str, postgres: PostgresServer) -> None:
    url = postgres.url(database)
    _execute(url, "INSERT INTO out VALUES (3)")
    writer = _writer(url)
    with raises_code(StreamFailed, "sink-constraint") as failed:
        writer._publish(STAGED, 0)
    assert "already exists" in (failed.value.found or "")
    assert _ids(url) == [3]
    assert writer.target.last_written() == -1
    _execute(url, "DELETE FROM out")
    writer._publish(STAGED, 0)
    assert _ids(url) == [1, 2, 3]


@pytest.mark.parametrize("mode", ["insert", "upsert", "replace"])
@pytest.mark.parametrize(
    ("happened", "found"),
    [("TRUNCATE staged", "0 rows"), ("DELETE FROM staged WHERE c0 = 2", "2 rows"), ("DROP TABLE staged", "no table")],
)
def test_staged_rows_that_the_server_has_lost(
    mode: Mode, happened: str, found: str, database: str, postgres: PostgresServer
) -> None:
    url = postgres.url(database)
    _execute(url, "INSERT INTO out VALUES (9)")
    writer = _writer(url, Publication(TABLE, mode, ("id",), {"id": "c0"}))
    _execute(url, happened)
    with raises_code(StreamFailed, "sink-staged-lost", found=found) as lost:
        writer._publish(STAGED, 0)
    assert is_transient(lost.value)
    assert _ids(url) == [9]
    assert writer.target.last_written() == -1
    _execute(url, "DROP TABLE IF EXISTS staged; CREATE TABLE staged AS SELECT generate_series(1, 3) AS c0")
    writer._publish(STAGED, 0)
    assert _ids(url) == [1, 2, 3, *([] if mode == "replace" else [9])]


def test_a_table_that_takes_other_rows_than_it_is_given_has_lost_none(database: str, postgres: PostgresServer) -> None:
    url = postgres.url(database)
    _execute(
        url,
        "CREATE FUNCTION odd() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN IF NEW.id % 2 = 0 THEN RETURN NULL; END IF; RETURN NEW; END'; "
        "CREATE TRIGGER odd BEFORE INSERT ON out FOR EACH ROW EXECUTE FUNCTION odd()",
    )
    _writer(url)._publish(STAGED, 0)
    assert _ids(url) == [1, 3]
    _execute(url, "DROP TRIGGER odd ON out; CREATE TABLE staged AS SELECT generate_series(1, 3) AS c0")
    _writer(url, Publication(TABLE, "upsert", ("id",), {"id": "c0"}))._publish(STAGED, 1)
    assert _ids(url) == [1, 2, 3]


def test_a_server_that_has_lost_a_published_batch(database: str, postgres: PostgresServer) -> None:
    """One that took over without the newest transactions: the next batch would leave a gap."""
    url = postgres.url(database)
    writer = _writer(url)
    writer._publish({}, 0)
    writer._publish(STAGED, 1)
    _execute(url, "UPDATE slackwater_marker SET batch_id = 0; DELETE FROM out")
    with raises_code(StreamFailed, "sink-set-back", found="batch 0"):
        writer._publish({}, 2)
    assert writer.target.last_written() == 0
    _execute(url, "DELETE FROM slackwater_marker")
    with pytest.raises(Refused):
        writer._publish({}, 2)


def test_an_unlogged_table_is_refused(database: str, postgres: PostgresServer) -> None:
    url = postgres.url(database)
    _execute(
        url,
        'CREATE UNLOGGED TABLE "Odd" (id int); CREATE TABLE parts (id int) PARTITION BY RANGE (id);'
        "CREATE UNLOGGED TABLE part PARTITION OF parts FOR VALUES FROM (0) TO (9);"
        "CREATE VIEW seen AS SELECT * FROM out",
    )
    for table in ("Odd", "parts"):
        with raises_code(PipelineError, "sink-unlogged") as refused, Address(url).engine().connect() as connection:
            check_logged(connection, PostgresName("public", table).quoted, table)
        _execute(url, refused.value.hint or "")
    with Address(url).engine().connect() as connection:
        for table in ("Odd", "parts", "out", "seen", "none"):
            check_logged(connection, PostgresName("public", table).quoted, table)


@pytest.mark.parametrize(
    ("granted", "lacks"),
    [("CREATE ON SCHEMA public", "INSERT ON public.out"), ("INSERT ON out", "CREATE ON SCHEMA public")],
)
def test_a_user_that_may_not_write(granted: str, lacks: str, database: str, postgres: PostgresServer) -> None:
    sink = sw.sinks.postgres(postgres.url(database), "out")
    with sink.address.engine().connect() as connection:
        for statement in (
            "REVOKE ALL ON SCHEMA public FROM PUBLIC",
            "CREATE ROLE grantee",
            "GRANT USAGE ON SCHEMA public TO grantee",
            f"GRANT {granted} TO grantee",
            "SET ROLE grantee",
        ):
            connection.execute(text(statement))
        with pytest.raises(Refused) as refused:
            sink._check_privileges(connection, CONTEXT)
    assert (refused.value.code, refused.value.expected) == ("sink-grant", lacks)


def test_a_wrong_or_missing_password(
    database: str, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = _with_password_user(postgres, database)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    for password in (None, "wrong"):
        if password:
            monkeypatch.setenv("PGPASSWORD", password)
        with raises_code(SinkUnreadable, "output-login"):
            PostgresOutput(Address(url), TABLE, keep_batch_id=False).last_written()
    monkeypatch.delenv("PGPASSWORD")

    monkeypatch.setenv("ORDERS_PASSWORD", "open/s@same")
    (tmp_path / "secret").write_text("open/s@same\n")
    for reference in ("env:ORDERS_PASSWORD", f"file:{tmp_path}/secret"):
        sink = sw.sinks.postgres(url, "out", password=reference)
        assert open_output(sink.identity()).last_written() == -1
        assert sink.identity()["password"] == reference
    monkeypatch.delenv("ORDERS_PASSWORD")
    with raises_code(SinkUnreadable, "output-password-missing"):
        open_output({"kind": "postgres", "url": url, "table": "out", "password": "env:ORDERS_PASSWORD"}).last_written()


def test_a_password_in_the_url_is_used_and_never_recorded(database: str, postgres: PostgresServer) -> None:
    url = _with_password_user(postgres, database)
    sink = sw.sinks.postgres(url.replace("guarded@", "guarded:open%2Fs%40same@"), "out")
    assert "same" not in repr(sink) + str(sink.identity())
    assert open_output(sink.identity()).last_written() == -1


def test_a_server_that_cannot_be_reached() -> None:
    for url in (
        "postgresql://me@nowhere.invalid/db",
        "postgresql://me@127.0.0.1:1/db",
        "postgresql://me@/db?host=/none",
    ):
        output = open_output({"kind": "postgres", "url": url, "table": "out"})
        with raises_code(SinkUnreadable, "output-unreachable"):
            output.last_written()


@pytest.mark.parametrize(
    "url", [None, "", "out.db", "postgresql://", "postgresql://me:pa/ss@host/db", "sqlite:///out.db"]
)
def test_an_address_that_cannot_be_used(url: Any) -> None:
    with raises_code(PipelineError, "sink-url") as refused:
        sw.sinks.postgres(url, "out")
    assert "pa/ss" not in str(refused.value.as_dict())


def test_two_addresses_of_one_database() -> None:
    same = {
        address_of(url).location
        for url in (
            "postgresql://me@host/db",
            "postgres://you:secret@HOST:5432/db",
            "postgresql+psycopg://host/db?sslmode=require",
            "postgresql:///db?host=host&port=5432",
        )
    }
    assert len(same) == 1
    assert address_of("postgresql://host:5433/db").location not in same


@pytest.mark.parametrize(
    ("query", "recorded"),
    [
        ("options=-c%20search_path%3Dfoo", "options=-c%20search_path%3Dfoo"),
        ("options=-csearch_path=foo", "options=-csearch_path%3Dfoo"),
        # As it was always recorded.
        ("application_name=a+b&dbname=c%2Bd", "application_name=a+b&dbname=c%2Bd"),
        ("host=%2Ftmp%2Fpg&&sslmode=require", "host=/tmp/pg&sslmode=require"),
        ("host=a:1,b&options", "host=a:1,b&options="),
        ("application_name=%c3%bc~", "application_name=%C3%BC~"),
    ],
)
def test_parameters_are_recorded_as_libpq_reads_them(query: str, recorded: str) -> None:
    address = address_of(f"postgresql://host/db?{query}")
    assert address.url == f"postgresql://host/db?{recorded}"
    assert address_of(address.url) == address
    if query.count("=") == query.count("&") + 1:
        assert conninfo_to_dict(address.url) == conninfo_to_dict(f"postgresql://host/db?{query}")


@pytest.mark.parametrize(
    "url", ["postgresql://me@/a%20b?password=p+q%20%2B", "postgresql://me@/?dbname=a%20b&Password=p+q%20%2B"]
)
def test_a_password_among_the_parameters_is_read_as_libpq_reads_it(url: str) -> None:
    address = address_of(url)
    assert address.secret() == "p+q +"
    assert "p+q" not in address.url
    assert address.location == "postgresql:///a b"


def test_parameters_of_other_databases_are_those_of_a_web_form() -> None:
    address = address_of("mysql+pymysql://host/db?password=p+q&init_command=a%20b")
    assert (address.url, address.secret()) == ("mysql+pymysql://host/db?init_command=a+b", "p q")


@pytest.mark.parametrize(
    "url",
    [
        "mysql+pymysql://host/db?user=me&passwd=hunter2",
        "mssql+pyodbc:///?odbc_connect=DRIVER%3DFreeTDS%3BUID%3Dme%3BPWD%3Dhunter2",
        "mssql+pyodbc:///?odbc_connect=DRIVER%3DFreeTDS%3BUID%3Dme%3BPWD%3D%7Bhunter2%3Bx%7D%3B",
        "postgresql://me@host/db?sslpassword=hunter2",
        "trino://me@host/db?access_token=hunter2",
        "mysql+pymysql://host/db?init_command=set+token%3D'hunter2'",
    ],
)
def test_another_secret_among_the_parameters_is_refused_and_not_shown(url: str) -> None:
    with raises_code(PipelineError, "sink-url", says="env:NAME") as refused:
        address_of(url)
    assert "hunter2" not in str(refused.value.as_dict())


@pytest.mark.parametrize(
    "url",
    [
        "mssql+pyodbc://me@host/db?driver=ODBC+Driver+18&TrustServerCertificate=yes",
        "mssql+pyodbc:///?odbc_connect=DRIVER%3DFreeTDS%3BTrusted_Connection%3Dyes",
        "postgresql://me@host/db?passfile=/run/pass&sslkey=/run/key&options=-csearch_path%3Dtokens",
    ],
)
def test_other_parameters_are_no_secrets(url: str) -> None:
    assert address_of(url).url == url


def test_a_literal_password_is_refused_and_not_shown() -> None:
    literal = "hunter2"
    with raises_code(PipelineError, "sink-password") as refused:
        sw.sinks.postgres("postgresql://me@host/db", "out", password=literal)
    assert literal not in str(refused.value.as_dict())


def _with_password_user(postgres: PostgresServer, database: str) -> str:
    """A user who needs a password; its address without it."""
    rules = postgres._data / "pg_hba.conf"
    if "guarded" not in rules.read_text():
        rules.write_text("local all guarded scram-sha-256\n" + rules.read_text())
        postgres.execute("SELECT pg_reload_conf()")
        postgres.execute("CREATE ROLE guarded LOGIN PASSWORD 'open/s@same'")
    return postgres.url(database).replace("slackwater@", "guarded@")


def _writer(url: str, publication: Publication | None = None) -> PostgresWriter:
    address = Address(url)
    target = MarkedTarget(address, Marker(str(TABLE), TABLE.schema), f"{address.location} {TABLE}")
    target.begin_epoch(CONTEXT)
    return PostgresWriter(target, CONTEXT, (), publication or Publication(TABLE, "insert", (), {"id": "c0"}))


def _execute(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


def _ids(url: str) -> list[int]:
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute("SELECT id FROM out ORDER BY id")]


def _tables(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.url(postgres.new_database())


def stage(url: str, columns: Sequence[StagedColumn], *values: Sequence[Any]) -> list[dict[str, Any]]:
    """Stage one batch of columns; what the task returns."""
    staging = Staging(
        url,
        "public",
        "slackwater_stage_test_",
        tuple(f"{column.staged_name} {column.kind.staged}" for column in columns),
        tuple(column.name for column in columns),
        tuple(place for place, column in enumerate(columns) if column.kind.is_text),
        tuple(place for place, column in enumerate(columns) if column.kind.is_json),
    )
    batch = pa.record_batch([pa.array(each) for each in values], [column.staged_name for column in columns])
    return [row for result in stager(staging)([batch]) for row in result.to_pylist()]


def test_each_attempt_has_a_table_of_its_own_and_only_named_ones_are_published(url: str) -> None:
    columns = staged_columns(T.StructType().add("id", "long").add("name", "string"))
    first, retried = (stage(url, columns, [1, 2], ["a", None])[0] for _ in range(2))
    assert first["staged"] != retried["staged"]
    assert first["row_count"] == 2
    assert stage(url, columns, pa.array([], pa.int64()), pa.array([], pa.string())) == []
    with Address(url).engine().begin() as connection:
        for statement in create_statements(TABLE, columns, (), batch=True, version=150000):
            run(connection, statement)
        filled = match_columns(TABLE, columns, read_columns(connection, TABLE), batch=True)
        publication = Publication(TABLE, "insert", (), filled, batch_column=True)
        publication.publish(connection, {retried["staged"]: retried["row_count"]}, 7, url)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT * FROM out ORDER BY 1").fetchall() == [(1, "a", 7), (2, None, 7)]
        unlogged = connection.execute(
            "SELECT relname FROM pg_class WHERE relpersistence = 'u' AND relkind = 'r'"
        ).fetchall()
    assert unlogged == [(first["staged"],)]


@pytest.mark.parametrize(
    ("spark", "values"),
    [
        (T.StringType(), ["fine", "a\0b"]),
        (T.ArrayType(T.StringType()), [["fine"], ["a", "\0"]]),
        (T.StructType().add("a", "string"), ['{"a":"\\u0000"}']),
        (T.StructType().add("a", "string"), ['{"a":"\\\\\\u0000"}']),
    ],
)
def test_a_zero_byte_is_refused_with_its_column(url: str, spark: T.DataType, values: list[Any]) -> None:
    columns = staged_columns(T.StructType().add("words", spark))
    with pytest.raises(ValueError, match=r"\[slackwater sink-zero-byte\] in column words"):
        stage(url, columns, values)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)


def test_an_escaped_backslash_before_zeros_is_no_zero_byte(url: str) -> None:
    columns = staged_columns(T.StructType().add("words", T.StructType().add("a", "string")))
    assert stage(url, columns, ['{"a":"\\\\u0000"}'])[0]["row_count"] == 1


@pytest.mark.parametrize(
    ("spark", "taken", "refused"),
    [
        (T.LongType(), ("bigint", "integer", "numeric(5)"), ("real", "double precision", "text")),
        (T.DecimalType(10, 2), ("numeric", "numeric(12, 2)", "numeric(10, 4)"), ("numeric(10, 1)", "integer")),
        (T.DecimalType(10, 0), ("bigint", "numeric(4)"), ("numeric(5, -2)",)),
        (T.StringType(), ("text", "varchar(3)", "char(3)", "uuid", "jsonb", "mood"), ("integer", "bytea")),
        (T.TimestampType(), ("timestamptz",), ("timestamp", "timestamptz(3)", "date")),
        (T.TimestampNTZType(), ("timestamp",), ("timestamptz", "timestamp(0)")),
        (T.ArrayType(T.IntegerType()), ("integer[]", "bigint[]", "jsonb"), ("text[]", "integer")),
        (T.ArrayType(T.DecimalType(5, 2)), ("numeric[]", "jsonb"), ("numeric(5, 1)[]",)),
        (T.MapType(T.StringType(), T.LongType()), ("jsonb", "json", "text"), ("integer",)),
        (T.DoubleType(), ("double precision",), ("real", "numeric", "integer")),
        (T.NullType(), ("integer", "text"), ()),
    ],
    ids=lambda value: value.simpleString() if isinstance(value, T.DataType) else "",
)
def test_a_column_takes_a_type_only_if_no_value_changes_silently(
    url: str, spark: T.DataType, taken: tuple[str, ...], refused: tuple[str, ...]
) -> None:
    columns = staged_columns(T.StructType().add("v", spark))
    with Address(url).engine().begin() as connection:
        run(connection, "CREATE TYPE mood AS ENUM ('good')")
        for declared in (*taken, *refused):
            run(connection, f"CREATE TABLE out (v {declared})")
            found = read_columns(connection, TABLE)
            if declared in taken:
                filled = match_columns(TABLE, columns, found, batch=False)
                run(connection, f"CREATE TEMP TABLE staged (c0 {columns[0].kind.staged})")
                run(connection, f"INSERT INTO out SELECT {filled['v']} FROM staged")
                run(connection, "DROP TABLE staged")
            else:
                with raises_code(PipelineError, "sink-column-type"):
                    match_columns(TABLE, columns, found, batch=False)
            run(connection, "DROP TABLE out")


@pytest.mark.parametrize(
    ("schema", "code"),
    [
        (T.StructType().add("a", "string").add("a", "long"), "sink-columns"),
        (T.StructType().add("ü" * 32, "string"), "sink-columns"),
        (T.StructType().add("_slackwater_batch", "long"), "sink-columns"),
        (T.StructType().add("a", T.CalendarIntervalType()), "sink-type"),
        (T.StructType().add("a", T.ArrayType(T.CalendarIntervalType())), "sink-type"),
    ],
)
def test_a_query_that_no_table_can_take(schema: T.StructType, code: str) -> None:
    with raises_code(PipelineError, code):
        check_types(staged_columns(schema), TABLE)
