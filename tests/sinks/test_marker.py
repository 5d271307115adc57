"""The marker's protocol on PostgreSQL and SQLite: each batch once, and never by a run that was replaced."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from slackwater.core.errors import Refused, StreamFailed
from slackwater.core.sink import Owner, WriteContext
from slackwater.sinks.common import marker
from slackwater.sinks.common.database import Address, writing
from slackwater.sinks.common.marker import Marker
from tests.support.errors import raises_code
from tests.support.postgres_server import PostgresServer

OLD = WriteContext("5f0e", "clicks/per_page", 3, "append")
NEW = replace(OLD, epoch=4)
OTHER = replace(OLD, stream_id="other", stream="clicks/other")
MARKER = Marker("public.out")


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    if request.param == "sqlite":
        made = create_engine(f"sqlite:///{tmp_path}/marks.db", poolclass=NullPool)
    else:
        server: PostgresServer = request.getfixturevalue("postgres")
        made = Address(server.url(server.new_database())).engine()
    MARKER.create_table(made)
    with made.begin() as connection:
        connection.execute(text("CREATE TABLE out (batch BIGINT, epoch BIGINT)"))
        MARKER.claim(connection, Owner(OLD.stream_id, OLD.stream, "/srv/home"))
    yield made
    made.dispose()


def test_a_batch_is_written_once(engine: Engine) -> None:
    assert [_write(engine, OLD, batch) for batch in (0, 1, 1, 0, 2)] == [True, True, False, False, True]
    assert _rows(engine) == [(0, 3), (1, 3), (2, 3)]


def test_a_transaction_that_is_rolled_back_marks_nothing(engine: Engine) -> None:
    _write(engine, OLD, 0)
    with engine.connect() as connection:
        assert MARKER.advance(connection, OLD, 1)
        connection.rollback()
    assert _newest(engine) == 0
    assert _write(engine, OLD, 1)


def test_a_replaced_run_is_refused_as_soon_as_the_next_one_starts(engine: Engine) -> None:
    _write(engine, OLD, 0)
    with engine.begin() as connection:
        assert MARKER.begin_epoch(connection, NEW).batch_id == 0
    for batch in (0, 1):
        with raises_code(Refused, "sink-fenced"):
            _write(engine, OLD, batch)
    with pytest.raises(Refused), engine.begin() as connection:
        MARKER.begin_epoch(connection, OLD)
    assert _write(engine, NEW, 1)
    assert _rows(engine) == [(0, 3), (1, 4)]


def test_another_stream_is_refused(engine: Engine) -> None:
    _write(engine, OLD, 0)
    for act in (
        lambda: _write(engine, OTHER, 1),
        lambda: _begin(engine, OTHER),
        lambda: _claim(engine, Owner("other", "clicks/other", "/srv/home")),
    ):
        with raises_code(Refused, "sink-owned"):
            act()
    assert _rows(engine) == [(0, 3)]


def test_a_row_that_does_not_exist_is_made_by_the_first_batch(engine: Engine) -> None:
    marker = Marker("public.other")
    for expected in (True, False):
        with engine.begin() as connection:
            assert marker.advance(connection, OLD, 7) is expected


def test_creating_the_table_twice_at_once(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE slackwater_marker"))
    failures: list[BaseException] = []

    def create() -> None:
        try:
            MARKER.create_table(engine)
        except (Refused, SQLAlchemyError) as error:
            failures.append(error)

    threads = [threading.Thread(target=create) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_an_old_run_that_waits_for_the_row_is_refused_when_it_gets_it(postgres: PostgresServer) -> None:
    """Its update waits for the new run's transaction and must look at the row again after it."""
    engine = Address(postgres.url(postgres.new_database())).engine()
    MARKER.create_table(engine)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE out (batch BIGINT, epoch BIGINT)"))
        MARKER.begin_epoch(connection, OLD)
    found: list[str] = []

    def late() -> None:
        try:
            found.append(str(_write(engine, OLD, 0)))
        except Refused as error:
            found.append(error.code)

    with engine.begin() as connection:
        assert MARKER.advance(connection, NEW, 0)
        thread = threading.Thread(target=late)
        thread.start()
        _wait_for_waiting(engine)
    thread.join()
    assert found == ["sink-fenced"]


def _wait_for_waiting(engine: Engine) -> None:
    waiting = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    while True:
        with engine.connect() as connection:
            if connection.execute(waiting).scalar_one():
                return


def _write(engine: Engine, context: WriteContext, batch: int) -> bool:
    with engine.begin() as connection:
        first = MARKER.advance(connection, context, batch)
        if first:
            row = {"batch": batch, "epoch": context.epoch}
            connection.execute(text("INSERT INTO out VALUES (:batch, :epoch)"), row)
        return first


def _begin(engine: Engine, context: WriteContext) -> None:
    with engine.begin() as connection:
        MARKER.begin_epoch(connection, context)


def _claim(engine: Engine, owner: Owner) -> None:
    with engine.begin() as connection:
        MARKER.claim(connection, owner)


def _newest(engine: Engine) -> int:
    with engine.connect() as connection:
        mark = MARKER.read(connection)
    assert mark is not None
    return mark.batch_id


def _rows(engine: Engine) -> list[tuple[int, int]]:
    with engine.connect() as connection:
        return [(row[0], row[1]) for row in connection.execute(text("SELECT * FROM out ORDER BY batch"))]


def test_a_start_does_not_wait_without_end_for_the_transaction_of_a_driver_that_was_paused(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite waits as long as its client is made to wait; PostgreSQL would wait for ever."""
    monkeypatch.setattr(marker, "LOCK_WAIT_S", 1)
    again = Owner(OLD.stream_id, OLD.stream, "/home")
    starts: list[Callable[[], object]] = [lambda: _begin(engine, NEW), lambda: _claim(engine, again)]
    _write(engine, OLD, 0)
    with engine.connect() as paused:
        assert MARKER.advance(paused, OLD, 1)
        for start in starts:
            with pytest.raises(StreamFailed) as busy, writing("out"):
                start()
            assert busy.value.code in {"sink-busy", "sink-failed"}
            if engine.dialect.name == "postgresql":
                assert busy.value.code == "sink-busy"
                assert "pg_terminate_backend" in (busy.value.hint or "")
        paused.rollback()
    _begin(engine, NEW)
