import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from slackwater.core.errors import DataError, EnvironmentMissing, NotFound
from slackwater.core.records import GenerationRecord
from slackwater.ledger import tables
from slackwater.ledger.database import Database, parse_url
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.tables import Kind, Table, versions
from tests.ledger.programs import start_program
from tests.support.errors import raises_code
from tests.support.ledgers import STREAM, stream_record
from tests.support.postgres_server import PostgresServer

TABLES = [one for one in vars(tables).values() if isinstance(one, Table) and one is not versions]
FIRST = GenerationRecord(STREAM, 1, "/home/checkpoints/0001")


def test_a_ledger_is_made_only_when_asked_for(blank_url: str) -> None:
    with raises_code(NotFound, "ledger-missing"):
        Ledger.open(blank_url, create=False)
    with Ledger.open(blank_url, create=True) as ledger:
        assert ledger.streams() == []


def test_looking_for_a_ledger_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        Ledger.open(tmp_path / "home" / "ledger.db", create=False)
    assert list(tmp_path.iterdir()) == []


def test_what_was_written_is_there_when_opened_again(ledger_url: str) -> None:
    with Ledger.open(ledger_url, create=True) as ledger:
        ledger.register_stream(stream_record(), FIRST)
    with Ledger.open(ledger_url, create=False) as ledger:
        assert ledger.streams() == [stream_record()]


def test_the_schema_has_the_tables_that_the_code_uses(ledger_url: str) -> None:
    types = {
        Kind.INTEGER: {"integer", "bigint"},
        Kind.STRING: {"varchar", "character varying", "text"},
        Kind.BYTES: {"blob", "bytea"},
        Kind.OBJECT: {"json"},
        Kind.LIST: {"json"},
    }
    found = _columns(ledger_url)
    assert found.keys() == {table.name for table in TABLES}
    for table in TABLES:
        columns = found[table.name]
        assert columns.keys() == table.columns.keys(), table.name
        for name, kind in table.columns.items():
            assert columns[name] in types[kind], (table.name, name)


@pytest.mark.parametrize("version", ["2", "0008", "ae1027a6acf"])
def test_another_version_of_the_schema_is_refused_and_left_alone(ledger_url: str, version: str) -> None:
    database = Database(parse_url(ledger_url))
    with database.write() as connection:
        connection.update(versions, {"version_num": version}, "1 = 1")
    database.close()
    with raises_code(DataError, "ledger-version", found=version):
        Ledger.open(ledger_url, create=True)


def test_a_file_that_is_no_database_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.write_text("not a database, but long enough to be taken for one at first sight" * 20)
    with pytest.raises(DataError) as caught:
        Ledger.open(path, create=True)
    assert (caught.value.code, caught.value.where) == ("ledger-unreadable", str(path))
    assert caught.value.found == "a file that is no SQLite database (SQLITE_NOTADB)"


def test_a_place_that_cannot_be_used_is_reported(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").mkdir()
    with raises_code(EnvironmentMissing, "ledger-unreachable"):
        Ledger.open(tmp_path / "ledger.db", create=True)


def test_an_unreachable_server_is_reported_without_the_password(tmp_path: Path) -> None:
    with raises_code(EnvironmentMissing, "ledger-unreachable") as caught:
        Ledger.open(f"postgresql://ann:s3cret@/ledger?host={tmp_path}", create=False)
    assert "s3cret" not in f"{caught.value} {caught.value.as_dict()}"


def test_sqlite_writes_ahead_and_through_to_the_disk(sqlite_url: str) -> None:
    database = Database(parse_url(sqlite_url))
    names = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
    found = []
    for unflushed in (True, False, True):
        with database.write(unflushed=unflushed) as connection:
            found.append([connection.scalar(f"PRAGMA {name}") for name in names])
    database.close()
    normal, full = ["wal", 1, 1, 30_000], ["wal", 2, 1, 30_000]
    assert found == [normal, full, normal]


def test_postgresql_flushes_what_no_checkpoint_holds(postgres: PostgresServer, empty_postgres: str) -> None:
    url = postgres.url(postgres.new_database(empty_postgres))
    database = Database(parse_url(f"{url}{'&' if '?' in url else '?'}options=-csynchronous_commit%3Don"))
    found = []
    for unflushed in (True, False):
        with database.write(unflushed=unflushed) as connection:
            found.append(connection.scalar("SHOW synchronous_commit"))
    database.close()
    assert found == ["off", "on"]


def test_several_processes_may_make_the_ledger_at_once(blank_url: str) -> None:
    programs = [start_program("open_ledger", blank_url) for _ in range(4)]
    assert [program.read_line() for program in programs] == ["ready"] * 4
    for program in programs:
        program.write_line("go")
    assert [program.finish() for program in programs] == ["opened"] * 4


def test_a_ledger_survives_a_restart_of_its_server(postgres: PostgresServer, empty_postgres: str) -> None:
    with Ledger.open(postgres.url(postgres.new_database(empty_postgres)), create=False) as ledger:
        ledger.register_stream(stream_record(), FIRST)
        postgres.stop()
        with pytest.raises(EnvironmentMissing):
            ledger.streams()
        postgres.start()
        assert ledger.streams() == [stream_record()]


def test_a_role_that_may_only_read(postgres: PostgresServer, empty_postgres: str) -> None:
    name = postgres.new_database(empty_postgres)
    with Ledger.open(postgres.url(name), create=True) as ledger:
        ledger.register_stream(stream_record(), FIRST)
        assert not ledger.read_only
    postgres.execute("CREATE ROLE reader LOGIN")
    with psycopg.connect(postgres.url(name), autocommit=True) as connection:
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    url = postgres.url(name).replace("slackwater@", "reader@")
    with Ledger.open(url, create=False) as ledger:
        assert ledger.read_only
        assert ledger.streams() == [stream_record()]
        ledger.record_sink_mark("weather/hourly", 3)
        assert ledger.sink_marks("weather/hourly") == []
        with pytest.raises(EnvironmentMissing) as caught:
            ledger.register_stream(stream_record("daily"))
    assert caught.value.code == "ledger-read-only"
    with raises_code(EnvironmentMissing, "ledger-read-only"):
        Ledger.open(url, create=True)


def _columns(url: str) -> dict[str, dict[str, str]]:
    if "://" not in url:
        with closing(sqlite3.connect(url)) as connection:
            names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            found = {
                name: {row[1]: row[2].lower() for row in connection.execute(f"PRAGMA table_info({name})")}
                for name in names
            }
    else:
        found = defaultdict(dict)
        query = (
            "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'public'"
        )
        with psycopg.connect(url) as server:
            for table, column, type_name in server.execute(query):
                found[table][column] = type_name
    assert found.pop(versions.name).keys() == versions.columns.keys()
    return found
