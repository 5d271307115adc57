"""The demo's table in PostgreSQL: in a schema of its own, held while a batch waits, and gone at the end."""

import threading
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from examples.demo.compare import row_of
from examples.demo.gold_table import GoldTable, new_gold_table
from examples.demo.postgres_server import check_programs
from slackwater.core.errors import EnvironmentMissing
from tests.support.errors import raises_code
from tests.support.postgres_server import PostgresServer

DAY = {"day": datetime(2013, 1, 2, tzinfo=UTC), "station": "EWR", "readings": 24, "mean_temperature_f": Decimal("30.1")}


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.url(postgres.new_database())


def write(table: GoldTable) -> None:
    with table.connect() as connection:
        connection.execute(table.statement("CREATE TABLE {marker} (batch_id bigint)"))
        connection.execute(table.statement("INSERT INTO {marker} VALUES (7)"))
        columns = "day timestamptz, station text, readings bigint, mean_temperature_f numeric, _slackwater_batch bigint"
        connection.execute(f"CREATE TABLE {table.name} ({columns})".encode())
        for batch in (6, 7):
            connection.execute(f"INSERT INTO {table.name} VALUES (%s, %s, %s, %s, {batch})".encode(), [*DAY.values()])


def schemas(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'slackwater_demo_%'")
        return {row[0] for row in found}


def test_a_row_written_twice_is_counted_twice_and_the_schema_is_dropped(url: str) -> None:
    with new_gold_table(url, keep=False) as table:
        write(table)
        assert table.rows() == Counter({row_of(DAY): 2})
        assert table.newest_batch() == 7
        assert schemas(url) == {table.schema}
    assert schemas(url) == set()
    with new_gold_table(url, keep=True) as kept:
        pass
    assert schemas(url) == {kept.schema}


def test_a_batch_that_is_about_to_be_published_waits_for_the_row(url: str) -> None:
    with new_gold_table(url, keep=False) as table:
        write(table)

        def publish() -> None:
            with table.connect() as connection:
                connection.execute(table.statement("UPDATE {marker} SET batch_id = 8"))

        publishing = threading.Thread(target=publish)
        with table.held() as is_waited_for:
            assert not is_waited_for()
            publishing.start()
            while not is_waited_for():
                assert publishing.is_alive()
            assert table.newest_batch() == 7
        publishing.join(30)
        assert table.newest_batch() == 8


def test_a_password_goes_to_the_environment_only(url: str) -> None:
    with new_gold_table(url.replace("slackwater@", "slackwater:open%40sesame@"), keep=False) as table:
        assert table.environment() == {
            "WEATHER_DATABASE": url,
            "WEATHER_TABLE": f"{table.schema}.daily_weather",
            "PGPASSWORD": "open@sesame",
        }


def test_a_database_that_cannot_be_used(url: str) -> None:
    for unusable in ("postgresql://me@127.0.0.1:1/db", url.replace("/test_", "/none_")):
        with pytest.raises(EnvironmentMissing) as missing, new_gold_table(unusable, keep=False):
            pass
        assert (missing.value.code, "--postgres-url" in str(missing.value.hint)) == ("demo-database", True)


def test_a_server_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with raises_code(EnvironmentMissing, "postgres-missing", says="apt-get install postgresql"):
        check_programs(debian=tmp_path)
    for name in ("initdb", "postgres"):
        program = tmp_path / "16" / "bin" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.touch()
    check_programs(debian=tmp_path)


def test_a_server_starts_whatever_locale_the_caller_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LC_ALL", raising=False)
    monkeypatch.setenv("LANG", "xx_XX.UTF-8")
    with PostgresServer.running() as server, psycopg.connect(server.url("postgres")) as connection:
        found = connection.execute("SELECT pg_encoding_to_char(encoding), datcollate FROM pg_database").fetchall()
    assert set(found) == {("UTF8", "C")}
